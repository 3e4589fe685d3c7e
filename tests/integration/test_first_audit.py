"""The first audit of a healthy, secured cluster whose owners have declared nothing, under the shipped policy, and the audit after it."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from command_line import AirflowDatabase, kafka_audit

from kafka_audit.audit.outcome import PASSED
from kafka_audit.policy.load import shipped_policy_folder
from kafka_audit.sandbox.lifecycle import Sandbox

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.airflow]
CLUSTER = "first"


@pytest.fixture(scope="module")
def audited(healthy_cluster: Sandbox, airflow_database: AirflowDatabase, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A connection file and a root below which one audit with the shipped policy has ended with exit code 0."""
    folder = tmp_path_factory.mktemp("first-audit")
    connection, root = folder / "audit.properties", folder / "root"
    airflow_database.give(root)
    connection.write_text("".join(f"{key}={value}\n" for key, value in healthy_cluster.audit_connection.items()))
    done = audit(connection, root, code=0)
    assert PASSED in done
    return connection, root


def audit(connection: Path, root: Path, code: int) -> str:
    """Audit with the shipped policy, in which nobody has declared a client; but the disk of the machine that runs the tests may be full."""
    policy = root.parent / "policy"
    if not policy.exists():
        shutil.copytree(shipped_policy_folder(), policy)
        tiers = (policy / "tiers.yaml").read_text()
        (policy / "tiers.yaml").write_text(
            tiers.replace("rpo_seconds: 0\n", "rpo_seconds: 0\n    parameters: {REP-09: {min_free_share: 0}}\n", 1)
        )
    where = ["--connection", str(connection), "--cluster", CLUSTER, "--root", str(root), "--policy", str(policy)]
    return kafka_audit("audit", *where, code=code).stdout


def reports(root: Path) -> list[dict[str, Any]]:
    """The reports of the audits below the root, in their order."""
    return [
        json.loads((path.parent / "report" / "report.json").read_text()) for path in sorted(root.glob(f"audits/{CLUSTER}/*/manifest.json"))
    ]


def test_it_ends_green_and_says_what_green_does_not_cover(audited: tuple[Path, Path]) -> None:
    (report,) = reports(audited[1])
    assert (report["verdict"], report["exit_code"]) == (PASSED, 0)
    assert {(one["code"], one["severity"]) for one in report["findings"] if one["status"] == "fail"} <= {("PRD-05", "medium")}
    (undeclared,) = [one for one in report["findings"] if one["code"] == "PRD-05"]
    assert "topics without a declared producer (clients.yaml), such as clickstream, customers" in undeclared["observed"]
    assert "groups without a declared consumer" in undeclared["observed"]
    reasons = {one["reason"].split(":")[0]: set(one["codes"]) for one in report["set_aside"]["listed"]}
    assert {"AUD-01", "CON-05", "GRP-02", "REP-05", "REP-07", "TOP-14", "TOP-15"} <= reasons["baseline taken"]
    assert {"CON-10", "CON-11", "PRD-03", "PRD-04", "TOP-08", "TOP-09"} <= reasons["not declared"]
    assert report["history"][0]["first_audit"] is True
    assert report["coverage"]["ratio"] >= 0.9


def test_the_second_audit_compares_with_the_first_and_takes_no_baseline(audited: tuple[Path, Path]) -> None:
    connection, root = audited
    time.sleep(2)  # an audit's id has a resolution of seconds
    audit(connection, root, code=0)
    second = reports(root)[-1]
    assert second["history"][0]["first_audit"] is False
    assert not any(one["reason"].startswith("baseline taken") for one in second["set_aside"]["listed"])
    counts = {control["code"]: control["counts"] for control in second["controls"]}
    for code in ("AUD-01", "REP-05", "REP-07", "TOP-14", "TOP-15"):
        assert counts[code]["passed"] > counts[code]["failed"] == counts[code]["not_assessed"] == 0, code
