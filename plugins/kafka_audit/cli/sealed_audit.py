"""``kafka-audit report`` and ``kafka-audit export``: a sealed audit's report again, and the audit as one file for an auditor."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from kafka_audit.audit.formats import NotWritten
from kafka_audit.cli import options
from kafka_audit.errors import IntegrityError, UnforeseenError
from kafka_audit.report.evidence_package import write_package
from kafka_audit.report.sealed_report import checked_audit, write_again
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
    found = checked_audit(audit, _keys(key))
    files, missing = write_again(found, chosen, to or Path(f"report-{found.audit_id}"))
    for file in files:
        typer.echo(options.printable(str(file)))
    _say_missing(missing)


def export(
    audit: AuditFolder,
    to: Annotated[Path, typer.Option(metavar="FILE.zip", help="The new file; one that is there already is not overwritten.")],
    key: Key = None,
) -> None:
    """Pack a sealed audit with its snapshot, reports, rules and reviews into one zip file that sha256sum alone can check.

    Its README.txt says how.
    """
    keys = _keys(key)
    found = checked_audit(audit, keys)
    lacks = write_package(found, to, keys)
    typer.echo(options.printable(f"{to}: sha256 {sha256_of(to)}"))
    typer.echo(f"Send this over another channel than the file: audit {found.audit_id}, manifest sha256 {found.manifest_sha256}")
    if lacks.reviews:
        listed = "; ".join(f"{one.review_id}: {', '.join(one.problems)}" for one in lacks.reviews)
        raise IntegrityError(
            f"reviews that are not as they were sealed are not in {to}, and its README.txt says so: {listed}. The rest is written; "
            "restore them from a copy and export again"
        )
    _say_missing(lacks.formats)


def _say_missing(missing: Sequence[NotWritten]) -> None:
    """UnforeseenError (exit 1) that names the formats which are missing among the files that were written."""
    if missing:
        raise UnforeseenError(f"{'; '.join(map(str, missing))}. What else was asked for is written. Report this as a bug")


def _keys(named: list[Path] | None) -> list[Ed25519PublicKey]:
    return [read_public_key(one) for one in named or ()]
