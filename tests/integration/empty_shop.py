"""The audit of a cluster to which nobody has written anything yet, step by step in this process, with a control of the user's own."""

from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path

from kafka_audit.audit.formats import DEFAULT_FORMATS
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.cli.demo import POLICIES
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.findings import Severity
from kafka_audit.index.write import write_report_and_index
from kafka_audit.policy import load_policy
from kafka_audit.sandbox.earlier_snapshots import make_past
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot, new_id

CLUSTER = "empty"


@dataclass(frozen=True)
class EmptyCluster:
    """A snapshot of the cluster with earlier ones before it, and the folders of the policy and of our own control."""

    snapshot: Snapshot
    policy: Path
    controls: Path


def read_empty(sandbox: Sandbox, root: Path) -> EmptyCluster:
    """Take the snapshots of a cluster without a seed, below ``root``."""
    own, policy = root / "own controls", root / "policy"
    own.mkdir()
    shipped = (shipped_controls() / "topic_auto_creation_disabled.yaml").read_text()
    text = shipped.replace("id: topic_auto_creation_disabled", "id: our_own_rule").replace("code: BRK-02", "code: OWN-01")
    (own / "our_own_rule.yaml").write_text(text)
    policy.mkdir()
    (policy / "tiers.yaml").write_text((POLICIES / "healthy" / "tiers.yaml").read_text().split("declared_topics")[0])
    (policy / "slas.yaml").write_text("version: 1\n")
    make_past(sandbox, "healthy", root=root, cluster=CLUSTER)
    now = datetime.now(timezone.utc)
    evidence, snapshot_id = EvidenceRoot(path=root), new_id(now, "empty")
    settings = ConnectionSettings.from_mapping(sandbox.audit_connection)
    take_snapshot(settings=settings, root=evidence, cluster=CLUSTER, snapshot_id=snapshot_id, now=lambda: datetime.now(timezone.utc))
    return EmptyCluster(snapshot=evidence.snapshot(CLUSTER, snapshot_id), policy=policy, controls=own)


def audit_empty(empty: EmptyCluster) -> Audit:
    """Judge the snapshot by both gates and all controls, and write the report. Needs a Spark session."""
    from expectations.gate import judge_evidence, judge_findings
    from spark_jobs.verify import main

    snapshot, folders = empty.snapshot, [shipped_controls(), empty.controls]
    audit, judged = snapshot.root.audit(CLUSTER, snapshot.snapshot_id), datetime.now(timezone.utc)
    run = {"audit_id": audit.path.name, "cluster": CLUSTER, "snapshot_id": snapshot.snapshot_id, "started_at": judged.isoformat()}
    write_json(audit.run_file, run)
    judge_evidence(snapshot, audit.gate, now=judged)
    arguments = ["--snapshot", str(snapshot.path), "--audit", str(audit.path), "--policy", str(empty.policy)]
    assert main([*arguments, *(word for folder in folders for word in ("--controls", str(folder)))]) == 0
    catalogue = load_catalogue(folders)
    severities = {control.id: control.severity for control in catalogue.controls}
    judge_findings(audit, snapshot, audit.gate, fail_on=Severity.HIGH, min_coverage=0.9, controls=severities)
    write_report_and_index(audit, snapshot, catalogue, load_policy(empty.policy), generated_at=judged, formats=DEFAULT_FORMATS)
    return audit
