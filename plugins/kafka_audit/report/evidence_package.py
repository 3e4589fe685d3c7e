"""Packs a sealed audit and its reviews into one zip file that an auditor checks with ``sha256sum`` alone (``package_readme.py``)."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_audit.audit.formats import REPORT_FILES, NotWritten
from kafka_audit.audit.reviews import Review, reviews_of
from kafka_audit.audit.unpacked import PLACE_IN_CHAIN
from kafka_audit.errors import IntegrityError
from kafka_audit.report.package_readme import Packed, readme
from kafka_audit.report.sealed_report import CheckedAudit, refuse_sealed_place, report_files, report_of
from kafka_audit.store.chain import sealed_as
from kafka_audit.store.chain_state import STATE, Seal, read_state, seal_in
from kafka_audit.store.durable_files import new_file
from kafka_audit.store.locks import held_to_read
from kafka_audit.store.manifest import MANIFEST, SIGNATURE, FileHashes
from kafka_audit.store.sealed import Sealed
from kafka_audit.store.stored_zip import StoredZip

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey


@dataclass(frozen=True, kw_only=True)
class NotPacked:
    """What a package lacks: formats of the report that could not be made, and reviews that are not as they were sealed."""

    formats: tuple[NotWritten, ...]
    reviews: tuple[Review, ...]


def write_package(found: CheckedAudit, to: Path, keys: Sequence["Ed25519PublicKey"] = ()) -> NotPacked:
    """Write the package of a sealed audit and its reviews to the new file ``to``. Returns what is not in it; its README says so, too.

    The same audit, reviews and release give the same bytes. With ``keys`` a review without a valid signature of one of them is left out.

    IntegrityError (exit 5) when a file changed since it was checked, ConfigurationError (exit 2) when ``to`` is there already or lies
    among sealed folders.
    """
    refuse_sealed_place(found.root.path, to)
    report = report_of(found)
    seal, previous = _seals(found)
    reviews = reviews_of(found.root, found.cluster, found.audit_id, keys)
    unreliable = tuple(one for one in reviews if one.problems)
    packed = Packed(
        cluster=found.cluster,
        seal=seal,
        previous=previous,
        verdict=f"{report.outcome.verdict} (exit code {report.outcome.exit_code})",
        snapshot_id=found.snapshot.snapshot_id,
        snapshot_sha256=found.snapshot.manifest_sha256,
        signed=(found.audit.path / SIGNATURE).is_file(),
        release=report.tool.version,
        reviews=tuple(one for one in reviews if not one.problems),
    )
    with new_file(to) as stream, StoredZip(stream, f"kafka-audit-{found.cluster}-{found.audit_id}") as package:
        with report_files(report, found.audit.path, REPORT_FILES) as (files, missing):
            package.add("README.txt", readme(packed, missing, unreliable).encode("ascii", "backslashreplace"))
            package.add(PLACE_IN_CHAIN, _chain(found, packed))
            for file in files:
                package.copy(f"reports/{file.name}", file, FileHashes().of(file)[0])
        _folder(package, packed.audit, found.audit.path, found.manifest)
        _folder(package, packed.snapshot, found.snapshot.path, found.snapshot.manifest)
        for one in packed.reviews:
            _folder(package, packed.review(one), one.folder, Sealed.open(one.folder).manifest)
        if previous is not None:
            package.copy(f"{packed.before}/{MANIFEST}", found.audit.path.parent / previous.audit_id / MANIFEST, previous.manifest_sha256)
    return NotPacked(formats=missing, reviews=unreliable)


def _seals(found: CheckedAudit) -> tuple[Seal, Seal | None]:
    """The places of the audit and of the one before it in the chain."""
    seal, previous = sealed_as(found.audit.path), found.manifest.get("previous")
    if seal is None:
        raise IntegrityError(f"{found.audit.path} is not sealed any more: one of its steps is being repeated; wait until the run has ended")
    try:
        return seal, seal_in(previous) if previous is not None else None
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(f"{found.audit.path / MANIFEST}: previous: names no audit ({problem!r:.200})") from problem


def _folder(package: StoredZip, inside: str, folder: Path, manifest: dict[str, Any]) -> None:
    """Copy a sealed folder: what its manifest lists, the manifest, and its signature."""
    for name, entry in sorted(manifest["files"].items()):
        package.copy(f"{inside}/{name}", folder / name, str(entry["sha256"]))
    for name in (MANIFEST, SIGNATURE):
        if (folder / name).exists():
            package.copy(f"{inside}/{name}", folder / name, FileHashes().of(folder / name)[0])


def _chain(found: CheckedAudit, packed: Packed) -> bytes:
    """The audit's place in the chain of its cluster; nothing that a later audit changes, so that a later package has the same bytes."""
    folder = found.audit.path.parent
    with held_to_read(folder):
        state = read_state(folder)
    if state is not None and state.last < packed.seal.sequence:
        raise IntegrityError(f"{folder / STATE}: has given {state.last} numbers, and {found.audit_id} has number {packed.seal.sequence}")
    about = {
        "cluster": found.cluster,
        "audit": asdict(packed.seal),
        "previous": asdict(packed.previous) if packed.previous else None,
        "reopened": found.manifest.get("reopened", []),
        "replaces": found.manifest.get("replaces", []),
        "state": "agrees" if state is not None else "missing",
    }
    return (json.dumps(about, indent=2, sort_keys=True) + "\n").encode()
