"""``kafka-audit fix``: prints the commands that repair what an audit found."""

from pathlib import Path
from typing import Annotated

import typer

from kafka_audit.cli.options import sealed_folder
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.report.fix_plan import read_plan
from kafka_audit.report.fix_script import render
from kafka_audit.store.layout import Audit
from kafka_audit.store.sealed import AUDIT, Sealed, place_of
from kafka_audit.store.signing import read_public_key, signature_problems


def fix(
    audit: Annotated[Path, typer.Argument(parser=sealed_folder, metavar="AUDIT", help="Folder or URL of one audit.")],
    key: Annotated[
        list[Path] | None, typer.Option(help="Public key; requires a signature made with its private key. May be repeated.")
    ] = None,
) -> None:
    """Print a shell script that repairs an audit's failures, for a person to read and run. Changes nothing itself."""
    folder = audit.resolve()
    if not folder.is_dir():
        raise ConfigurationError(f"there is no folder {folder}: name the folder of one audit")
    place = place_of(folder)
    if place is None and not (folder / "manifest.json").is_file():
        raise ConfigurationError(f"{folder} is not the folder of an audit: name ROOT/audits/CLUSTER/AUDIT_ID")
    kind = Sealed.open(folder, place).manifest.get("kind")
    if kind != AUDIT:
        raise ConfigurationError(f"{folder} is a sealed {kind}: name the folder of an audit, audits/CLUSTER/AUDIT_ID below the root")
    Sealed.verified(folder, place)
    if key and (problems := signature_problems(folder, [read_public_key(one) for one in key])):
        raise IntegrityError(f"{folder}: {problems[0]}. Run nothing that it says")
    typer.echo(render(read_plan(Audit(path=folder))).encode(), nl=False)  # bytes: another encoding would name other topics
