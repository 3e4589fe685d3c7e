"""The parts of a snapshot that several tasks read, until they are joined: folders like those of snapshots, below a hidden name.

Of a root in a store their objects lie below ``work/``. Which parts there are, the store alone says: a task may run on a machine that has no
copy, or one of a part that is gone from the store.
"""

import contextlib
import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kafka_audit.errors import AuditError
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.mirrors import remote_at
from kafka_audit.store.sealed import PART, Sealed, SnapshotWriter
from kafka_audit.store.unfinished import hidden_name, parts_name

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class SnapshotPart(Sealed):
    """One part of a snapshot that several processes read."""

    kinds = (PART,)
    repair = "remove that folder, then clear the tasks that read the cluster and run them again"


def parts_folder(root: EvidenceRoot, cluster: str, snapshot_id: str) -> Path:
    """The folder of the parts of a snapshot; it is removed when they are joined."""
    return parts_name(root.snapshot_dir(cluster, snapshot_id))


def part_writer(root: EvidenceRoot, cluster: str, snapshot_id: str, name: str) -> SnapshotWriter:
    """A writer for the part of that name; it is used as that of a snapshot is. Nothing signs a part."""
    final = parts_folder(root, cluster, snapshot_id) / name
    return SnapshotWriter(cluster=cluster, snapshot_id=snapshot_id, final=final, folder=hidden_name(final), kind=PART)


def read_already(folder: Path, names: Sequence[str]) -> set[str]:
    """Which of the parts of those names are in the folder of all parts, whole; of a root in a store, their manifests are copied here."""
    if remote := remote_at(folder):
        remote.bring_parts([folder / name for name in names])
    return {name for name in names if (folder / name / MANIFEST).is_file()}


def remove_parts(folder: Path) -> None:
    """Remove the parts of a snapshot that is sealed. Those that a store does not let go are left to its lifecycle rules."""
    if remote := remote_at(folder):
        try:
            remote.remove_parts(folder)
        except AuditError as problem:
            log.warning("the snapshot is sealed, and its parts are left in the store: %s", problem)
    shutil.rmtree(folder, ignore_errors=True)


def note_of(folder: Path, name: str) -> Path:
    """The file beside a part that says why it was not read."""
    return folder / f"{name}.failed.json"


def send_note(note: Path) -> None:
    """Send a note to the store of the root, where there is one. That it is refused is no error: what the note tells is."""
    if (remote := remote_at(note)) and note.is_file():
        with contextlib.suppress(AuditError):
            remote.send_file(note)


def has_note(note: Path) -> bool:
    """Whether there is such a note; of a root in a store, it is copied here."""
    if remote := remote_at(note):
        remote.bring_file(note)
    return note.is_file()
