"""Takes the earlier snapshots of a seeded cluster that its audit compares with, and then makes the seed's change."""

import time
from datetime import datetime, timezone
from pathlib import Path

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.jars.fetch import Progress
from kafka_audit.sandbox import changes
from kafka_audit.sandbox.definition import load
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.layout import EvidenceRoot, new_id

_SECOND_LOOK_S = 1.0
"""The disk that the seed fails stays failed, so the snapshot need not read unhealthy partitions twice."""


def make_past(sandbox: Sandbox, seed: str, *, root: Path, cluster: str, progress: Progress = lambda message: None) -> None:
    """Take the seed's earlier snapshots, at least a second apart, then change the cluster."""
    definition = load(seed)
    for number in range(definition.earlier_snapshots):
        started = time.monotonic()
        now = datetime.now(timezone.utc)
        progress(f"Taking earlier snapshot {number + 1} of {definition.earlier_snapshots}")
        take_snapshot(
            settings=ConnectionSettings.from_mapping(sandbox.audit_connection, where=str(sandbox.directory)),
            root=EvidenceRoot(path=root),
            cluster=cluster,
            snapshot_id=new_id(now, f"{now.isoformat()} {number}"),
            now=lambda: datetime.now(timezone.utc),
            second_look_seconds=_SECOND_LOOK_S,
        )
        time.sleep(max(0.0, 1.1 - (time.monotonic() - started)))  # ids differ, and sort, by the second
    changes.apply(definition, sandbox.bootstrap)
