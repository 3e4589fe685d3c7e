"""What an audit tells OpenLineage, with Airflow's provider where that is installed."""

import json
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_audit.audit import lineage_facts as facts_module
from kafka_audit.audit.lineage_facts import lineage_facts
from kafka_audit.audit.outcome import Outcome
from kafka_audit.audit.published import publish
from kafka_audit.audit.request import AuditPlan, AuditRequest, make_plan
from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import write_json

pytestmark = pytest.mark.airflow
COUNTS = {"passed": 0, "failed": 0, "errored": 0, "not_assessed": 0, "not_applicable": 0}


def control(code: str, set_aside: int = 0, **counts: int) -> dict:
    return {"control_id": code.lower(), "code": code, "title": f"{code}\u202e", "set_aside": set_aside, "counts": {**COUNTS, **counts}}


@pytest.fixture
def plan(root: Path) -> AuditPlan:
    """An audit of three topics with a report on five controls."""
    when = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)
    made = make_plan(AuditRequest(), root=root, dag_id="kafka_reliability_audit", run_id="r", run_after=when)
    with made.evidence_root.snapshot_writer(made.cluster, made.snapshot_id) as writer:
        writer.write("topics", pa.table({"topic": ["payments", "orders", "a\u202eb"]}))
        writer.seal({"started_at": when.isoformat(), "finished_at": when.isoformat(), "errors": {}})
    write_json(made.audit.run_file, {"started_at": when.isoformat()})
    controls = [
        control("TOP-01", passed=3),
        control("TOP-02", passed=2, failed=1),
        control("TOP-03", passed=2, not_assessed=1),
        control("TOP-04", passed=2, set_aside=1),
        {**control("TOP-05"), "counts": None},
    ]
    write_json(made.audit.report / "report.json", {"verdict": "FAILED", "controls": controls})
    return made


def test_a_control_is_a_test_that_passes_only_if_all_of_it_was_assessed(plan: AuditPlan) -> None:
    found = lineage_facts(plan)
    assert found.topics == ("a\u202eb", "orders", "payments")
    assert [one.status for one in found.controls] == ["pass", "fail", "skip", "skip", "skip"]
    assert found.controls[1].counts == "2 passed, 1 failed, 0 errored, 0 not assessed, 0 not applicable"
    assert found.controls[0].title == "TOP-01\\u202e"
    assert found.left_out == ""


def test_nothing_passes_on_evidence_that_is_not_fit(plan: AuditPlan) -> None:
    report = plan.audit.report / "report.json"
    write_json(report, {**json.loads(report.read_text()), "verdict": "VOID"})
    assert {one.status for one in lineage_facts(plan).controls} == {"fail", "skip"}
    write_json(report, {"controls": [{"code": "TOP-01"}]})
    with pytest.raises(IntegrityError, match=r"report\.json: controls are not those of a report"):
        lineage_facts(plan)


def test_lists_are_bounded_and_say_what_they_leave_out(plan: AuditPlan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts_module, "MOST_TOPICS", 1)
    monkeypatch.setattr(facts_module, "MOST_CONTROLS", 3)
    found = lineage_facts(plan)
    assert (found.topics, len(found.controls)) == (("a\u202eb",), 3)
    assert found.left_out == "Of 3 topics, 1 are named and 2 are not. Of 5 controls, 3 are named and 2 are not."


def test_topics_go_in_and_the_audit_comes_out(plan: AuditPlan) -> None:
    pytest.importorskip("airflow.providers.openlineage.extractors", reason="apache-airflow-providers-openlineage is not installed")
    from openlineage.client.serde import Serde

    from kafka_audit.airflow.lineage import audit_lineage

    outcome = Outcome(verdict="FAILED", exit_code=3, reasons=("one",))
    lineage = audit_lineage(plan, publish(plan, outcome, {}))
    assert [(one.namespace, one.name) for one in lineage.inputs[1:]] == [
        ("kafka://127.0.0.1:1", "orders"),
        ("kafka://127.0.0.1:1", "payments"),
    ]
    output = json.loads(Serde.to_json(lineage.outputs[0]))
    assert (output["namespace"], output["name"]) == ("kafka-audit://audits", "kafka")
    assert output["facets"]["version"]["datasetVersion"] == plan.audit_id
    assert output["facets"]["documentation"]["description"] == f"Audit {plan.audit_id} of the Kafka cluster kafka: FAILED."
    tests = json.loads(Serde.to_json(lineage.run_facets["test"]))["tests"]
    assert [(one["name"], one["status"]) for one in tests[:2]] == [("TOP-01", "pass"), ("TOP-02", "fail")]
