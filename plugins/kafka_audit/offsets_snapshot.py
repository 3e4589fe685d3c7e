"""Takes one offsets snapshot: groups, commits and log ends only, light enough for every few minutes."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.scope import Scope
from kafka_audit.snapshot import Collecting, SnapshotResult, store
from kafka_audit.store.layout import OFFSETS, EvidenceRoot

if TYPE_CHECKING:
    from kafka_audit.cluster.facade import Cluster
    from kafka_audit.collect.sla_offsets import LagSlas

DEADLINE_SECONDS = 120.0


def take_offsets_snapshot(
    *,
    settings: ConnectionSettings,
    root: EvidenceRoot,
    cluster: str,
    snapshot_id: str,
    scope: Scope | None = None,
    policy: "LagSlas | None" = None,
    now: Callable[[], datetime],
    progress: Callable[[str], None] = lambda _: None,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> SnapshotResult:
    """Read groups, commits and log ends and write ``<root>/offsets/<cluster>/<snapshot_id>``.

    Arguments, errors and what becomes of an existing one are those of :func:`kafka_audit.snapshot.take_snapshot`.
    """

    def collecting(connected: "Cluster") -> Collecting:
        from kafka_audit.collect.offsets_collection import OffsetsCollection  # noqa: PLC0415 - kafka-python is needed only to read
        from kafka_audit.collect.sla_offsets import seconds_of  # noqa: PLC0415 - as above

        return OffsetsCollection(cluster=connected, scope=scope or Scope(), max_lag_seconds=seconds_of(policy), now=now)

    return store(
        OFFSETS,
        collecting,
        settings=settings,
        root=root,
        cluster=cluster,
        snapshot_id=snapshot_id,
        now=now,
        progress=progress,
        deadline_seconds=deadline_seconds,
    )
