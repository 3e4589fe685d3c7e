"""Reads and judges a cluster in the process of a test, by the steps that the tasks of an audit take."""

from datetime import datetime, timezone
from pathlib import Path

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot, new_id


def now() -> datetime:
    """The time, in UTC."""
    return datetime.now(timezone.utc)


def snapshot_of(sandbox: Sandbox, root: Path, cluster: str, *, when: datetime) -> Snapshot:
    """Take a whole snapshot. Its id is of the second ``when``, and snapshots of one cluster are in the order of their ids."""
    evidence, snapshot_id = EvidenceRoot(path=root), new_id(when, cluster)
    settings = ConnectionSettings.from_mapping(sandbox.audit_connection)
    take_snapshot(settings=settings, root=evidence, cluster=cluster, snapshot_id=snapshot_id, now=now)
    return evidence.snapshot(cluster, snapshot_id)


def judged(snapshot: Snapshot, cluster: str, *folders: str) -> Audit:
    """An audit of the snapshot, judged by the session of Spark that runs. ``folders``: options of verify, as ``--policy`` and a folder."""
    from spark_jobs.verify import main

    audit = snapshot.root.audit(cluster, snapshot.snapshot_id)
    identity = {"audit_id": audit.path.name, "cluster": cluster, "snapshot_id": snapshot.snapshot_id}
    write_json(audit.run_file, {**identity, "started_at": now().isoformat()})
    assert main(["--snapshot", str(snapshot.path), "--audit", str(audit.path), *folders]) == 0
    return audit
