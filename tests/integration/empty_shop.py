"""The audit of a cluster to which nobody has written anything yet, step by step in this process, with a control of the user's own."""

from dataclasses import dataclass
from pathlib import Path

from judged_here import judged, now, snapshot_of
from own_control import write_own_control

from kafka_audit.audit.formats import DEFAULT_FORMATS
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.cli.demo import POLICIES
from kafka_audit.findings import Severity
from kafka_audit.index.write import write_report_and_index
from kafka_audit.policy import load_policy
from kafka_audit.sandbox.earlier_snapshots import make_past
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.layout import Audit, Snapshot

CLUSTER = "empty"


@dataclass(frozen=True)
class EmptyCluster:
    """A snapshot of the cluster with earlier ones before it, and the folders of the policy and of our own control."""

    snapshot: Snapshot
    policy: Path
    controls: Path


def read_empty(sandbox: Sandbox, root: Path) -> EmptyCluster:
    """Take the snapshots of a cluster without a seed, below ``root``."""
    own, policy = write_own_control(root, pass_when="config['auto.create.topics.enable'].value = 'false'"), root / "policy"
    policy.mkdir()
    (policy / "tiers.yaml").write_text((POLICIES / "healthy" / "tiers.yaml").read_text().split("declared_topics")[0])
    (policy / "slas.yaml").write_text("version: 1\n")
    make_past(sandbox, "healthy", root=root, cluster=CLUSTER)
    return EmptyCluster(snapshot=snapshot_of(sandbox, root, CLUSTER, when=now()), policy=policy, controls=own)


def audit_empty(empty: EmptyCluster) -> Audit:
    """Judge the snapshot by both gates and all controls, and write the report. Needs a Spark session."""
    from expectations.gate import judge_evidence, judge_findings

    snapshot, folders, at = empty.snapshot, [shipped_controls(), empty.controls], now()
    named = [word for folder in folders for word in ("--controls", str(folder))]
    audit = judged(snapshot, CLUSTER, "--policy", str(empty.policy), *named)
    catalogue = load_catalogue(folders)
    severities = {control.id: control.severity for control in catalogue.controls}
    judge_evidence(snapshot, audit.gate, now=at)
    judge_findings(audit, snapshot, audit.gate, fail_on=Severity.HIGH, min_coverage=0.9, controls=severities)
    write_report_and_index(audit, snapshot, catalogue, load_policy(empty.policy), generated_at=at, formats=DEFAULT_FORMATS)
    return audit
