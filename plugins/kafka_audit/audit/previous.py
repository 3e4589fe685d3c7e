"""Which earlier audit an audit is compared with: chosen once, before anything is compared, and kept in the audit's folder.

``<audit>/comparison/previous.json`` holds the choice, so that the gate, the report and a report that is rendered again years later
compare with the same audit, whatever was sealed or deleted since. The manifest seals the file, and ``verify`` checks the audits that it
names.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kafka_audit.audit.gate_result import read_result
from kafka_audit.errors import IntegrityError
from kafka_audit.store.chain import newest_before, previous_of, sealed_as
from kafka_audit.store.chain_state import Seal, seal_in
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, Snapshot
from kafka_audit.store.manifest import MANIFEST, FileHashes, bytes_of, manifest_sha256, parse_object, read_manifest, tree_files
from kafka_audit.store.mirrors import bring
from kafka_audit.store.sealed import identity_problems, place_of
from kafka_audit.store.signing_key import signing_key

COMPARISON = "comparison"
PREVIOUS = "comparison/previous.json"
FIGURES = "comparison/figures.json"
_COMPARED = ("run.json", "settings", "lag", "gate", "inputs/controls", "inputs/policy", COMPARISON)
"""What is read of an earlier audit."""
_FINDINGS = tuple(f"{part}/findings.parquet/" for part in ("settings", "lag"))
_LONGEST_WALK = 1_000
_SCHEMA_VERSION = 1

PassedOver = tuple[tuple[str, str], ...]
"""The audits that were passed over, newest first, each as (audit_id, why)."""


@dataclass(frozen=True, kw_only=True)
class Chosen:
    """``newest``: the newest sealed audit at that time. ``seal``: the one to compare with; None if no earlier audit judged this cluster.

    ``passed_over``: the audits between the two, newest first, as (audit_id, why they cannot be compared with).
    """

    newest: Seal | None
    seal: Seal | None
    passed_over: PassedOver = ()


def choose_previous(audit: Audit, snapshot: Snapshot) -> Chosen:
    """The choice of an audit that judges ``snapshot``, as it was kept; else it is made now and kept, unless the audit is sealed.

    It is the newest sealed audit that was not void, judged something, is of the same Kafka cluster, and stands on no later evidence.
    """
    if (audit.path / PREVIOUS).exists():
        return read_choice(audit)
    newest = newest_before(audit.path)
    seal, passed_over = first_fit(newest, audit.path.parent, lambda folder: unfit(folder, snapshot))
    if not (audit.path / MANIFEST).exists():
        write_json(audit.path / PREVIOUS, {"newest": newest and asdict(newest), **chosen_record(seal, passed_over)})
    return Chosen(newest=newest, seal=seal, passed_over=passed_over)


def first_fit(newest: Seal | None, audits: Path, why_not: Callable[[Path], str | None]) -> tuple[Seal | None, PassedOver]:
    """The first audit of the chain, from ``newest`` back, of which ``why_not`` says nothing; and those before it with what it said.

    One that is gone or was changed is chosen, too: that must be said, and an older one may have failures that this one did not have.
    """
    passed: list[tuple[str, str]] = []
    for seal, folder in sealed_before(newest, audits):
        why = why_not(folder) if intact(seal, folder) else None
        if why is None:
            return seal, tuple(passed)
        passed.append((seal.audit_id, why))
    return None, tuple(passed)


def chosen_record(seal: Seal | None, passed_over: PassedOver) -> dict[str, Any]:
    """A choice as an audit keeps it in JSON."""
    skipped = [{"audit_id": audit_id, "why": why} for audit_id, why in passed_over]
    return {"schema_version": _SCHEMA_VERSION, "seal": seal and asdict(seal), "passed_over": skipped}


def chosen_in(record: Mapping[str, Any]) -> tuple[Seal | None, PassedOver]:
    """What :func:`chosen_record` made; KeyError, TypeError or ValueError when it is something else."""
    seal = seal_in(record["seal"]) if record["seal"] is not None else None
    return seal, tuple((str(one["audit_id"]), str(one["why"])) for one in record["passed_over"])


def read_choice(audit: Audit) -> Chosen:
    """What ``comparison/previous.json`` says; IntegrityError (exit 5) when it cannot be understood."""
    path = audit.path / PREVIOUS
    record = parse_object(path, bytes_of(path))
    try:
        newest = seal_in(record["newest"]) if record["newest"] is not None else None
        seal, passed_over = chosen_in(record)
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(f"{path}: does not say which audit came before ({problem!r:.200}): run the report again") from problem
    return Chosen(newest=newest, seal=seal, passed_over=passed_over)


def sealed_before(newest: Seal | None, audits: Path) -> Iterator[tuple[Seal, Path]]:
    """The chain from its newest audit to the first: each audit's seal and its folder.

    It ends after one that is missing, was changed, or does not say which audit came before.
    """
    seal = newest
    for _ in range(_LONGEST_WALK):
        if seal is None:
            return
        folder = audits / seal.audit_id
        yield seal, folder
        if changed(seal, folder) is not None or names_none_before(seal, folder) is not None:
            return
        seal = previous_of(read_manifest(folder), folder / MANIFEST)


def changed(seal: Seal, folder: Path) -> str | None:
    """Why the manifest of a sealed audit is not the one that its seal names; None if it is."""
    if folder.is_symlink():
        return f"audit {seal.audit_id} is a link in the place of its folder"
    try:
        found = manifest_sha256(folder)
    except IntegrityError as problem:
        return str(problem)
    if found is None:
        return f"audit {seal.audit_id} is no longer there: it was deleted or moved away"
    return None if found == seal.manifest_sha256 else f"the manifest of audit {seal.audit_id} was changed after it was sealed"


def not_signed(seal: Seal, folder: Path) -> str | None:
    """Why an installation that signs cannot trust an earlier audit: it is not the one that was sealed there with the installation's key.

    None if it is, or if the installation does not sign. ConfigurationError when its key cannot be used.
    """
    key = signing_key()
    if key is None:
        return None
    try:
        manifest = read_manifest(folder)
        problems = [*identity_problems(manifest, folder.name, place_of(folder)), *key.problems(folder)]
        if not problems and sealed_as(folder) != seal:
            problems = [f"{MANIFEST}: has another place in the chain than the one by which it was found"]
    except IntegrityError as problem:
        problems = [str(problem)]
    return f"audit {seal.audit_id} has no signature of this installation ({problems[0]})" if problems else None


def names_none_before(seal: Seal, folder: Path) -> str | None:
    """Why the manifest of a sealed audit does not say which audit came before; None if it does, or is of the first audit."""
    try:
        before = previous_of(read_manifest(folder), folder / MANIFEST)
    except IntegrityError as problem:
        return str(problem)
    if before is not None and before.sequence >= seal.sequence:
        return f"{folder / MANIFEST}: the audit before it has the number {before.sequence}, and it has {seal.sequence} itself"
    return None


def changed_files(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """The files that a comparison reads of a sealed audit and that are not as they were sealed, by name.

    IntegrityError when the manifest lists no files, or one of them is a link or a device.
    """
    read, files = tuple(f"{part}/" for part in _COMPARED), manifest.get("files")
    if not isinstance(files, dict):
        raise IntegrityError(f"{folder / MANIFEST}: has no list of files")
    listed = {name: entry for name, entry in files.items() if name in _COMPARED or name.startswith(read)}
    found: dict[str, Any] = {}
    hashes = FileHashes()
    bring(folder, _COMPARED)
    for part in _COMPARED:
        place = folder / part
        if place.is_dir():
            found |= {f"{part}/{name}": entry for name, entry in tree_files(place, hashes).items()}
        elif place.is_file():
            sha256, size = hashes.of(place)
            found[part] = {"sha256": sha256, "bytes": size}
    return sorted(name for name in {*listed, *found} if listed.get(name) != found.get(name))


def cluster_id_of(audit: Audit) -> str:
    """The id of the Kafka cluster that a sealed audit is about, as its figures say; empty if they do not."""
    path = audit.path / FIGURES
    return str(parse_object(path, bytes_of(path)).get("cluster_id") or "") if path.is_file() else ""


def unfit(folder: Path, snapshot: Snapshot) -> str | None:
    """Why an audit that is as it was sealed is nothing to compare with; None if it is."""
    manifest = read_manifest(folder)
    try:
        return _judged_nothing(folder, manifest) or _not_before(folder, manifest, snapshot)
    except IntegrityError as problem:
        return f"its results cannot be read ({problem!s:.200})"
    except (KeyError, TypeError, AttributeError):
        return None  # its manifest names no snapshot, which no release writes: the comparison says so


def _judged_nothing(folder: Path, manifest: Mapping[str, Any]) -> str | None:
    if not was_fit(Audit(path=folder)):
        return "it was void: its evidence was not fit to be judged"
    if not any(name.startswith(_FINDINGS) for name in manifest["files"]):
        return "it judged nothing: it was cut short before the findings"
    return None


def _not_before(folder: Path, manifest: Mapping[str, Any], snapshot: Snapshot) -> str | None:
    """Why an audit says nothing about how the cluster was before the snapshot; None if it does."""
    cluster_id, other = str(snapshot.manifest.get("cluster_id") or ""), cluster_id_of(Audit(path=folder))
    if _taken(str(manifest["snapshot"]["snapshot_id"])) > _taken(snapshot.snapshot_id):  # this audit was begun first and sealed last
        return "its evidence was taken later than that of this audit, by the clocks of those who took it"
    if not other or not cluster_id:
        return "one of the two audits does not say which Kafka cluster it is of"
    return f"it is of another Kafka cluster ({other})" if other != cluster_id else None


def intact(seal: Seal, folder: Path) -> bool:
    """Whether all that is read of an audit is as it was sealed."""
    try:
        return changed(seal, folder) is None and not changed_files(folder, read_manifest(folder))
    except IntegrityError:
        return False


def was_fit(audit: Audit) -> bool:
    """Whether the evidence gate of an audit found its evidence fit to be judged; IntegrityError when its file is broken."""
    path = audit.gate / "evidence.json"
    return path.is_file() and read_result(path).passed


def _taken(snapshot_id: str) -> str:
    """The time at which an id was made: the part of it that sorts by time."""
    return snapshot_id.partition("-")[0]
