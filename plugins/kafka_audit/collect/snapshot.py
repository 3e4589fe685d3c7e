"""Takes one snapshot of a cluster: reads its datasets, writes each to a file, and seals the folder."""

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kafka_audit import __version__
from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.capabilities import words
from kafka_audit.collect.collection import SECOND_LOOK_SECONDS, Collection
from kafka_audit.collect.facts import Facts
from kafka_audit.collect.offsets import LagSlas
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.tables import ErrorLog
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sealed import OFFSETS, SNAPSHOT
from kafka_audit.store.sweep import sweep

DEADLINE_SECONDS = {SNAPSHOT: 600.0, OFFSETS: 120.0}


@dataclass(frozen=True, kw_only=True)
class SnapshotResult:
    """A sealed snapshot. ``reused`` = it existed already and the cluster was not asked again."""

    path: Path
    snapshot_id: str
    manifest: Mapping[str, Any]
    reused: bool
    requests: Mapping[tuple[str, int | str], int] = field(default_factory=dict)


def take_snapshot(
    *,
    kind: str = SNAPSHOT,
    settings: ConnectionSettings,
    root: EvidenceRoot,
    cluster: str,
    snapshot_id: str,
    scope: Scope | None = None,
    policy: LagSlas | None = None,
    now: Callable[[], datetime],
    progress: Callable[[str], None] = lambda _: None,
    second_look_seconds: float = SECOND_LOOK_SECONDS,
    deadline_seconds: float | None = None,
) -> SnapshotResult:
    """Read the cluster into the root's folder for this kind, cluster and id; an existing snapshot of that id is returned as it is.

    ``kind``: SNAPSHOT for every dataset, OFFSETS for groups, commits and log ends only, light enough for every few minutes. ``now`` gives
    the current time in UTC. ``policy`` tells which SLAs in seconds are asked about; without it none is. ``deadline_seconds``: 600 for a
    whole snapshot, 120 for an offsets snapshot unless it is given.
    CollectionError when the cluster cannot be read at all or the disk refuses the files; then no folder remains. Anything less is a row
    in ``errors``.
    """
    existing = root.find_snapshot(cluster, snapshot_id, kind)
    if existing is not None:
        progress(f"snapshot {snapshot_id} exists already; nothing was read")
        return SnapshotResult(path=existing.path, snapshot_id=snapshot_id, manifest=existing.manifest, reused=True)
    sweep(root, cluster, progress)
    started_at = now()
    progress(f"connecting to {', '.join(settings.bootstrap_servers)}")
    with (
        Cluster(settings, deadline_seconds=deadline_seconds or DEADLINE_SECONDS[kind]) as connected,
        root.snapshot_writer(cluster, snapshot_id, kind) as writer,
    ):
        collection = Collection(
            cluster=connected,
            light=kind == OFFSETS,
            scope=scope or Scope(),
            policy=policy,
            now=now,
            second_look_seconds=second_look_seconds,
        )
        for dataset, table in collection.datasets():
            writer.write(dataset, table)
            progress(f"{dataset}: {table.num_rows} rows")
        about = about_snapshot(collection.facts, collection.errors, collection.scope, started_at=started_at, finished_at=now())
        path = writer.seal(about)
        requests = dict(connected.request_counts)
    sealed = root.snapshot(cluster, snapshot_id, kind)
    return SnapshotResult(path=path, snapshot_id=snapshot_id, manifest=sealed.manifest, reused=False, requests=requests)


def about_snapshot(facts: Facts, errors: ErrorLog, scope: Scope, *, started_at: datetime, finished_at: datetime) -> dict[str, Any]:
    """The fields of a snapshot's manifest."""
    return {
        "cluster_id": facts.cluster_id,
        "started_at": started_at.isoformat(),
        "finished_at": finished_at.isoformat(),
        "scope": {"topics": list(scope.topics), "groups": list(scope.groups)},
        "versions": {"kafka_audit": __version__, "kafka_python": version("kafka-python"), "python": platform.python_version()},
        "errors": errors.counts(),
        "capabilities": dict(words(facts.capabilities())),
    }
