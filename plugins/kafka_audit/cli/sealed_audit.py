"""``kafka-audit report`` and ``kafka-audit export``: a sealed audit's report again, and the audit as one file for an auditor."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from kafka_audit.audit.formats import NotWritten
from kafka_audit.cli import options
from kafka_audit.errors import UnforeseenError
from kafka_audit.report.evidence_package import write_package
from kafka_audit.report.sealed_report import CheckedAudit, checked_audit, write_again
from kafka_audit.store.durable_files import sha256_of
from kafka_audit.store.signing import read_public_key

AuditFolder = Annotated[
    Path,
    typer.Argument(
        parser=options.sealed_folder, metavar="AUDIT", help="Folder or URL of one sealed audit: audits/CLUSTER/AUDIT_ID below the root."
    ),
]
Key = Annotated[list[Path] | None, typer.Option(help="Public key; requires a signature made with its private key. May be repeated.")]


def report(
    audit: AuditFolder,
    formats: options.Formats = options.DEFAULT_FORMATS,
    to: Annotated[Path | None, typer.Option(metavar="DIR", help="Folder for the files; default: report-AUDIT_ID.")] = None,
    key: Key = None,
) -> None:
    """Write the report of a sealed audit again from its own files, without judging again; its hashes are checked first."""
    chosen = options.chosen_formats(formats)
    found = _checked(audit, key)
    files, missing = write_again(found, chosen, to or Path(f"report-{found.audit_id}"))
    for file in files:
        typer.echo(options.printable(str(file)))
    _say_missing(missing)


def export(
    audit: AuditFolder,
    to: Annotated[Path, typer.Option(metavar="FILE.zip", help="The new file; one that is there already is not overwritten.")],
    key: Key = None,
) -> None:
    """Pack a sealed audit with its snapshot, reports and rules into one zip file that sha256sum alone can check; see its README.txt."""
    found = _checked(audit, key)
    missing = write_package(found, to)
    typer.echo(options.printable(f"{to}: sha256 {sha256_of(to)}"))
    typer.echo(f"Send this over another channel than the file: audit {found.audit_id}, manifest sha256 {found.manifest_sha256}")
    _say_missing(missing)


def _say_missing(missing: Sequence[NotWritten]) -> None:
    """UnforeseenError (exit 1) that names the formats which are missing among the files that were written."""
    if missing:
        raise UnforeseenError(f"{'; '.join(map(str, missing))}. What else was asked for is written. Report this as a bug")


def _checked(audit: Path, key: list[Path] | None) -> CheckedAudit:
    return checked_audit(audit, [read_public_key(one) for one in key or ()])
