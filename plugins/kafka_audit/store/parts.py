"""The parts of a snapshot that several tasks read, until they are joined: folders like those of snapshots, below a hidden name."""

from dataclasses import dataclass
from pathlib import Path

from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sealed import PART, Sealed, SnapshotWriter
from kafka_audit.store.unfinished import hidden_name, parts_name


@dataclass(frozen=True, kw_only=True)
class SnapshotPart(Sealed):
    """One part of a snapshot that several processes read."""

    kinds = (PART,)
    repair = "clear the tasks that read the cluster and run them again"


def parts_folder(root: EvidenceRoot, cluster: str, snapshot_id: str) -> Path:
    """The folder of the parts of a snapshot; it is removed when they are joined."""
    return parts_name(root.snapshot_dir(cluster, snapshot_id))


def part_writer(root: EvidenceRoot, cluster: str, snapshot_id: str, name: str) -> SnapshotWriter:
    """A writer for the part of that name; it is used as that of a snapshot is. Nothing signs a part."""
    final = parts_folder(root, cluster, snapshot_id) / name
    return SnapshotWriter(cluster=cluster, snapshot_id=snapshot_id, final=final, folder=hidden_name(final), kind=PART)
