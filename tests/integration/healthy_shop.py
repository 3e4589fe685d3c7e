"""The first audit of the healthy, secured cluster, whose owners have declared nothing: by the command, under the shipped policy."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from command_line import kafka_audit

from kafka_audit.audit.outcome import PASSED
from kafka_audit.policy.load import shipped_policy_folder
from kafka_audit.sandbox.lifecycle import Sandbox

CLUSTER = "kafka"


@dataclass(frozen=True)
class FirstAudit:
    """The audit folder below which it lies, the folder of its policy, and its report.json."""

    root: Path
    policy: Path
    report: Path


def first_audit(sandbox: Sandbox, root: Path) -> FirstAudit:
    """Run ``kafka-audit audit`` with the shipped policy, in which nobody has declared a client; it must end with exit code 0."""
    policy, connection = root.parent / "policies" / "shipped", root.parent / "audit.properties"
    shutil.copytree(shipped_policy_folder(), policy)
    tiers = (policy / "tiers.yaml").read_text()
    # The disk of the machine that runs the tests may be full.
    full = tiers.replace("rpo_seconds: 0\n", "rpo_seconds: 0\n    parameters: {REP-09: {min_free_share: 0}}\n", 1)
    (policy / "tiers.yaml").write_text(full)
    connection.write_text("".join(f"{key}={value}\n" for key, value in sandbox.audit_connection.items()))
    where = ["--connection", str(connection), "--cluster", CLUSTER, "--root", str(root), "--policy", str(policy)]
    assert PASSED in kafka_audit("audit", *where, code=0).stdout
    (manifest,) = root.glob(f"audits/{CLUSTER}/*/manifest.json")
    return FirstAudit(root=root, policy=policy, report=manifest.parent / "report" / "report.json")
