"""A complete audit of a cluster to which nobody has written anything yet."""

import json
from pathlib import Path

import pytest
from command_line import AirflowDatabase, kafka_audit, only_audit

from kafka_audit.catalogue.load import shipped_controls
from kafka_audit.cli.demo import POLICIES
from kafka_audit.sandbox.earlier_snapshots import make_past
from kafka_audit.sandbox.lifecycle import Sandbox

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.airflow]


def test_an_empty_cluster_is_judged_by_what_it_has_and_by_a_control_that_is_one_file_of_our_own(
    empty_cluster: Sandbox, tmp_path: Path, airflow_database: AirflowDatabase
) -> None:
    own, policy = tmp_path / "controls", tmp_path / "policy"
    own.mkdir()
    shipped = (shipped_controls() / "topic_auto_creation_disabled.yaml").read_text()
    text = shipped.replace("id: topic_auto_creation_disabled", "id: our_own_rule").replace("code: BRK-02", "code: OWN-01")
    (own / "our_own_rule.yaml").write_text(text)
    policy.mkdir()
    (policy / "tiers.yaml").write_text((POLICIES / "healthy" / "tiers.yaml").read_text().split("declared_topics")[0])
    (policy / "slas.yaml").write_text("version: 1\n")
    root, connection = tmp_path / "root", tmp_path / "audit.properties"
    airflow_database.give(root)
    connection.write_text("".join(f"{key}={value}\n" for key, value in empty_cluster.audit_connection.items()))
    make_past(empty_cluster, "healthy", root=root, cluster="empty")
    base = ["audit", "--connection", str(connection), "--cluster", "empty", "--policy", str(policy)]
    done = kafka_audit(*base, "--root", str(root), "--controls", str(own), code=0)
    report = json.loads((only_audit(root, "empty").report / "report.json").read_text())
    counts = {control["code"]: control["counts"] for control in report["controls"]}
    assert counts["TOP-01"]["population"] == counts["TOP-01"]["passed"] == 0
    assert counts["BRK-02"]["passed"] == counts["OWN-01"]["passed"] == 3
    assert "PASSED" in done.stdout
