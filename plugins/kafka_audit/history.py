"""The earlier snapshots of a cluster that an audit may compare its own with."""

from dataclasses import dataclass
from typing import Any

from kafka_audit.errors import IntegrityError
from kafka_audit.evidence import EvidenceRoot, Snapshot, problems_of

_READABLE = 20


@dataclass(frozen=True, kw_only=True)
class History:
    """Usable earlier snapshots, oldest first; ``unusable`` ones with the reason; ``foreign``: ids of another cluster's of the same name."""

    snapshots: tuple[Snapshot, ...] = ()
    unusable: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """What an audit keeps of it: ids and manifest hashes of the snapshots used, and those left out."""
        used = [{"snapshot_id": one.snapshot_id, "manifest_sha256": one.manifest_sha256} for one in self.snapshots]
        return {"used": used, "left_out": list(self.unusable), "of_another_cluster": list(self.foreign)}


def read_history(snapshot: Snapshot, limit: int) -> History:
    """The newest ``limit`` snapshots that are older than this one, of the same Kafka cluster, each checked against its manifest.

    One that was changed is left out with the reason: it proves nothing. Those of a cluster that stood under this name before are another
    cluster's history.
    """
    root = EvidenceRoot(path=snapshot.path.parents[2])
    earlier = [name for name in root.snapshot_ids(str(snapshot.manifest["cluster"])) if name < snapshot.snapshot_id]
    usable: list[Snapshot] = []
    unusable: list[str] = []
    foreign: list[str] = []
    for snapshot_id in earlier[-limit:] if limit else []:
        try:
            one = root.snapshot(str(snapshot.manifest["cluster"]), snapshot_id)
            problems = problems_of(one.path)
        except IntegrityError as problem:
            unusable.append(f"{snapshot_id}: {problem}")
            continue
        if problems:
            unusable.append(f"{snapshot_id}: {'; '.join(problems[:3])}")
        elif one.manifest.get("cluster_id") != snapshot.manifest.get("cluster_id"):
            foreign.append(snapshot_id)
        else:
            usable.append(one)
    return History(snapshots=tuple(usable), unusable=tuple(unusable[-_READABLE:]), foreign=tuple(foreign[-_READABLE:]))
