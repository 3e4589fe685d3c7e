"""Takes one snapshot of a cluster: runs the collectors, writes each dataset, and seals the folder."""

import platform
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from kafka_audit import __version__
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.scope import Scope
from kafka_audit.store.layout import SNAPSHOT, EvidenceRoot
from kafka_audit.store.sweep import sweep

if TYPE_CHECKING:
    from kafka_audit.cluster.facade import Cluster
    from kafka_audit.collect.errors import ErrorLog
    from kafka_audit.collect.sla_offsets import LagSlas
    from kafka_audit.collect.tables import Dataset

SECOND_LOOK_SECONDS = 5.0
DEADLINE_SECONDS = 600.0


@dataclass(frozen=True, kw_only=True)
class SnapshotResult:
    """A sealed snapshot. ``reused`` = it existed already and the cluster was not asked again."""

    path: Path
    snapshot_id: str
    manifest: Mapping[str, Any]
    reused: bool
    requests: Mapping[tuple[str, int | str], int] = field(default_factory=dict)


class Collecting(Protocol):
    """A pass over a connected cluster: its datasets, and what is known of it when they are all read."""

    scope: Scope
    errors: "ErrorLog"
    capabilities: Mapping[str, str]
    cluster_id: str | None

    def datasets(self) -> "Iterator[Dataset]":
        """Every dataset once."""


def take_snapshot(
    *,
    settings: ConnectionSettings,
    root: EvidenceRoot,
    cluster: str,
    snapshot_id: str,
    scope: Scope | None = None,
    policy: "LagSlas | None" = None,
    now: Callable[[], datetime],
    progress: Callable[[str], None] = lambda _: None,
    second_look_seconds: float = SECOND_LOOK_SECONDS,
    deadline_seconds: float = DEADLINE_SECONDS,
) -> SnapshotResult:
    """Read the cluster and write ``<root>/evidence/<cluster>/<snapshot_id>``; an existing one of that id is returned as it is.

    ``now`` gives the current time in UTC. ``policy`` tells which SLAs in seconds are asked about; without it none is.
    CollectionError when the cluster cannot be read at all or the disk refuses the files; then no folder remains. Anything less is a row
    in ``errors``.
    """

    def collecting(connected: "Cluster") -> Collecting:
        from kafka_audit.collect.collection import Collection  # noqa: PLC0415 - see store
        from kafka_audit.collect.sla_offsets import seconds_of  # noqa: PLC0415 - as above

        limits = seconds_of(policy)
        return Collection(
            cluster=connected, scope=scope or Scope(), max_lag_seconds=limits, now=now, second_look_seconds=second_look_seconds
        )

    return store(
        SNAPSHOT,
        collecting,
        settings=settings,
        root=root,
        cluster=cluster,
        snapshot_id=snapshot_id,
        now=now,
        progress=progress,
        deadline_seconds=deadline_seconds,
    )


def store(
    kind: str,
    collecting: "Callable[[Cluster], Collecting]",
    *,
    settings: ConnectionSettings,
    root: EvidenceRoot,
    cluster: str,
    snapshot_id: str,
    now: Callable[[], datetime],
    progress: Callable[[str], None],
    deadline_seconds: float,
) -> SnapshotResult:
    """Run one pass over the cluster and seal what it yields as a snapshot of this kind; see :func:`take_snapshot`."""
    existing = root.find_snapshot(cluster, snapshot_id, kind)
    if existing is not None:
        progress(f"snapshot {snapshot_id} exists already; nothing was read")
        return SnapshotResult(path=existing.path, snapshot_id=snapshot_id, manifest=existing.manifest, reused=True)
    # Imported here: kafka-python is needed to read a cluster, not to find an existing snapshot.
    from kafka_audit.cluster.facade import Cluster  # noqa: PLC0415

    sweep(root, cluster, progress)
    started_at = now()
    progress(f"connecting to {', '.join(settings.bootstrap_servers)}")
    with Cluster(settings, deadline_seconds=deadline_seconds) as connected, root.snapshot_writer(cluster, snapshot_id, kind) as writer:
        collection = collecting(connected)
        for dataset, table in collection.datasets():
            writer.write(dataset, table)
            progress(f"{dataset}: {table.num_rows} rows")
        path = writer.seal(
            {
                "cluster_id": collection.cluster_id,
                "started_at": started_at.isoformat(),
                "finished_at": now().isoformat(),
                "scope": {"topics": list(collection.scope.topics), "groups": list(collection.scope.groups)},
                "versions": {"kafka_audit": __version__, "kafka_python": version("kafka-python"), "python": platform.python_version()},
                "errors": collection.errors.counts(),
                "capabilities": dict(collection.capabilities),
            }
        )
        requests = dict(connected.request_counts)
    sealed = root.snapshot(cluster, snapshot_id, kind)
    return SnapshotResult(path=path, snapshot_id=snapshot_id, manifest=sealed.manifest, reused=False, requests=requests)
