"""Renders the report of a sealed audit again, from the audit's own files and without judging again."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_audit.audit.check import check_audit
from kafka_audit.audit.formats import REPORT_FILES, NotWritten, not_written
from kafka_audit.audit.inputs import CONTROLS, POLICY
from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.policy import load_policy
from kafka_audit.report.formats import write_formats
from kafka_audit.report.model import Report, read_report
from kafka_audit.store.durable_files import make_folder, new_file, read_json, write_failed
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot
from kafka_audit.store.sealed import AUDIT, KINDS, Sealed, placed, sealed_above
from kafka_audit.times import parse_time

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


@dataclass(frozen=True, kw_only=True)
class CheckedAudit:
    """A sealed audit at its place in a root, with its snapshot, after every hash that it names was checked."""

    audit: Audit
    root: EvidenceRoot
    cluster: str
    manifest: dict[str, Any]
    snapshot: Snapshot

    @property
    def audit_id(self) -> str:
        return self.audit.path.name

    @property
    def manifest_sha256(self) -> str:
        return Sealed(path=self.audit.path, manifest=self.manifest).manifest_sha256


def checked_audit(folder: Path, keys: Sequence["Ed25519PublicKey"] = ()) -> CheckedAudit:
    """Open a sealed audit and check all that ``kafka-audit verify`` checks of it; with ``keys`` also its signature.

    IntegrityError (exit 5) when it is not sealed or anything was changed or is gone, ConfigurationError (exit 2) when it is no audit below
    a root.
    """
    path, place = placed(folder)
    if not path.is_dir():
        raise ConfigurationError(f"there is no folder {path}: name the folder of one audit")
    if place is None or place.kind != AUDIT:
        what = f"the folder of a {place.kind}, not of an audit" if place else "not the folder of an audit"
        raise ConfigurationError(f"{path} is {what}: name ROOT/audits/CLUSTER/AUDIT_ID")
    manifest = Sealed.open(path, place).manifest
    root = EvidenceRoot(path=place.root)
    check_audit(path, root, keys).raise_problems(path)
    snapshot = root.snapshot(place.cluster, str(manifest["snapshot"]["snapshot_id"]))
    return CheckedAudit(audit=Audit(path=path), root=root, cluster=place.cluster, manifest=manifest, snapshot=snapshot)


def report_of(found: CheckedAudit) -> Report:
    """The report of a sealed audit, by the policy and the controls that are kept in it, of the time at which its own report was made.

    It says of the audit's own report which formats are missing there.

    ConfigurationError (exit 2) when this release cannot read its policy or controls.
    """
    own = found.audit.report / "report.json"
    said = read_json(own)
    try:
        generated_at = parse_time(said["generated_at"])
        generated_at.astimezone(timezone.utc)
    except (KeyError, ValueError, OverflowError) as problem:
        raise IntegrityError(f"{own}: does not say when it was made ({problem!r}): start a new audit") from problem
    catalogue, policy = load_catalogue([found.audit.inputs / CONTROLS]), load_policy(found.audit.inputs / POLICY)
    report = read_report(found.audit, found.snapshot, catalogue, policy, generated_at=generated_at)
    return replace(report, not_written=not_written(said.get("not_written")))


def write_again(found: CheckedAudit, formats: Collection[str], to: Path) -> tuple[list[Path], tuple[NotWritten, ...]]:
    """Write the report of a sealed audit to the folder ``to``, which is made if it is missing.

    Returns the files, and the formats that could not be written. The same release writes the same bytes as when the audit was made.
    ConfigurationError (exit 2) when a file is there already, or when ``to`` lies among sealed folders.
    """
    refuse_sealed_place(found.root.path, to)
    files = {name: to / REPORT_FILES[name].file for name in formats}
    for file in files.values():
        if os.path.lexists(file):
            raise ConfigurationError(f"{file} is there already and is not overwritten: name another folder with --to")
    with report_files(report_of(found), found.audit.path, formats) as (made, missing):
        try:
            make_folder(to)
        except OSError as problem:
            raise write_failed(to, problem) from problem
        for file in made:
            with file.open("rb") as source, new_file(to / file.name) as target:
                shutil.copyfileobj(source, target)
        return [to / file.name for file in made], missing


@contextlib.contextmanager
def report_files(report: Report, audit: Path, formats: Collection[str]) -> Iterator[tuple[list[Path], tuple[NotWritten, ...]]]:
    """The report in these formats as files of a temporary folder, which is removed afterwards: all findings may be too many for memory.

    Yields the files in the order of the table of formats, and the formats that could not be written.
    CollectionError (exit 1) when the temporary folder cannot hold them.
    """
    with tempfile.TemporaryDirectory(prefix="kafka-audit-report-") as folder:
        try:
            missing = write_formats(report, audit, formats, Path(folder))
        except OSError as problem:
            raise write_failed(Path(folder), problem) from problem
        files = (Path(folder) / about.file for name, about in REPORT_FILES.items() if name in formats)
        yield [file for file in files if file.exists()], missing


def refuse_sealed_place(root: Path, target: Path) -> None:
    """ConfigurationError (exit 2) when a new file at ``target`` would lie in a sealed folder, or among those of this root."""
    place = target.resolve()
    rooms = {root.resolve() / kind.parent.split("/")[0] for kind in KINDS.values()}
    sealed = sealed_above(place) or next((room for room in sorted(rooms) if place.is_relative_to(room)), None)
    if sealed is not None:
        raise ConfigurationError(f"{target} lies in {sealed}, among sealed evidence, which a new file would break: name another place")
