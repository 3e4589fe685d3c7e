"""``KAFKA_AUDIT_ON_FAIL=review``: the tasks of the human step, and what becomes of an answer. Nobody waits: the answer is there at once."""

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from dag_run import Run
from steps import Steps

from kafka_audit.audit.reviews import reviews_of
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sealed import Sealed

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db")]
ANSWERED = datetime(2026, 11, 20, 13, 0, tzinfo=timezone.utc)
REVIEW_TASKS = {"needs_review", "review", "record_review"}
FORM = {"reason": "Replicas come with the new rack.", "ticket": "OPS-7", "expires": "2026-12-31", "owner": "Olga Owner"}


@pytest.fixture
def reviewing(monkeypatch: pytest.MonkeyPatch, load_dag):
    """The audit DAG with reviews."""
    for name, value in {"ON_FAIL": "review", "REVIEW_HOURS": "8", "REVIEW_MAX_DAYS": "60", "REVIEWERS": "7=Rita Reviewer"}.items():
        monkeypatch.setenv(f"KAFKA_AUDIT_{name}", value)
    return load_dag("kafka_reliability_audit")


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A person who answers at once, in the place of Airflow's waiting; what they were asked is in ``asked``."""
    from airflow.providers.standard.operators.hitl import HITLOperator

    answer: dict[str, Any] = {
        "chosen_options": ["Approve"],
        "params_input": dict(FORM),
        "responded_at": ANSWERED,
        "responded_by_user": {"id": "7", "name": "Rita Reviewer"},
        "timedout": False,
    }
    asked: list[tuple[str, str]] = []

    def answers(operator: Any, context: Any) -> Any:
        asked.append((operator.subject, operator.body))
        return operator.execute_complete(context, answer)

    monkeypatch.setattr(HITLOperator, "execute", answers)
    return {"answer": answer, "asked": asked}


def failing(steps: Steps) -> None:
    steps.findings, steps.failing = ("FAIL", 3), ["orders", "billing"]


def found(root: Path) -> list[Any]:
    evidence = EvidenceRoot(path=root)
    return [one for audit in root.glob("audits/kafka/*/run.json") for one in reviews_of(evidence, "kafka", audit.parent.name)]


def test_without_the_variable_there_is_no_human_step(dag) -> None:
    assert not REVIEW_TASKS & set(dag.task_dict)
    assert {task.max_active_tis_per_dag for task in dag.tasks} == {None}


def test_the_review_follows_the_report_and_the_gate_waits_for_none_of_it(reviewing) -> None:
    from airflow.providers.standard.operators.hitl import ApprovalOperator

    tasks = reviewing.task_dict
    assert tasks["needs_review"].upstream_task_ids == {"plan", "report"}
    assert tasks["needs_review"].downstream_task_ids == {"review"}
    assert tasks["record_review"].upstream_task_ids == {"plan", "review"}
    assert tasks["gate"].upstream_task_ids == {"plan", "publish"}
    assert {name for name, task in tasks.items() if not task.downstream_task_ids} == {"gate", "record_review"}
    assert {name: str(task.trigger_rule.value) for name, task in tasks.items() if name in REVIEW_TASKS} == {
        "needs_review": "all_done",
        "review": "all_success",
        "record_review": "all_success",
    }
    review = tasks["review"]
    assert isinstance(review, ApprovalOperator)
    assert (review.defaults, review.response_timeout, review.retries) == (["Reject"], timedelta(hours=8), 0)
    assert review.assigned_users == [{"id": "7", "name": "Rita Reviewer"}]
    assert set(review.params) == set(FORM)
    assert set(reviewing.params) & set(FORM) == set(), "the form of a run asks for nothing of it"


def test_a_review_that_waits_neither_blocks_the_next_audit_nor_is_ended_by_the_timeout_of_the_run(reviewing) -> None:
    assert reviewing.max_active_runs == 9
    assert reviewing.dagrun_timeout > timedelta(hours=8 + 2)
    limits = {name: task.max_active_tis_per_dag for name, task in reviewing.task_dict.items()}
    assert limits.pop("review") is None, "waiting counts as running there"
    assert set(limits.values()) == {1}
    assert all(task.execution_timeout for task in reviewing.tasks)


def test_every_field_of_the_form_explains_itself_and_lets_a_rejection_leave_it_empty(reviewing) -> None:
    review = reviewing.task_dict["review"]
    for name in FORM:
        param = review.params.get_param(name)
        assert param.schema["title"] and len(param.schema["description_md"]) > 20, name
        param.resolve()


def test_the_dag_survives_serialisation(reviewing) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    again = DagSerialization.from_dict(json.loads(json.dumps(DagSerialization.to_dict(reviewing))))
    assert set(again.task_dict) >= REVIEW_TASKS


def test_loading_the_dag_with_reviews_imports_nothing_heavy() -> None:
    script = """
import runpy, sys
import airflow.sdk
before = set(sys.modules)
runpy.run_path("dags/kafka_reliability_audit.py")
heavy = ("great_expectations", "pandas", "pyspark", "kafka", "confluent_kafka", "pyarrow", "fastapi", "sqlglot", "numpy", "yaml")
print([name for name in heavy if name in set(sys.modules) - before])
"""
    environment = {**os.environ, "KAFKA_AUDIT_ON_FAIL": "review"}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=Path(__file__).parents[2], env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip().splitlines()[-1:] == ["[]"], done.stdout + done.stderr


def test_an_accepted_risk_is_sealed_with_its_waivers_and_the_run_stays_red(reviewing, root: Path, steps: Steps, person) -> None:
    failing(steps)
    run = Run(reviewing)
    assert (run.state, run.failed) == ("failed", {"gate"})
    assert "FAILED" in run.gate
    (review,) = found(root)
    assert review.accepts and review.record.waivers == 2
    assert (review.record.dag_id, review.record.task_id) == ("kafka_reliability_audit", "review")
    assert run.returned("record_review")["manifest_sha256"] == review.manifest_sha256
    ((subject, body),) = person["asked"]
    assert "kafka" in subject and "**2 critical**" in body and review.record.audit.manifest_sha256 in body
    (audit,) = (path.parent for path in root.glob("audits/kafka/*/run.json"))
    assert Sealed.verified(audit).manifest_sha256 == review.record.audit.manifest_sha256, "the audit's folder was not touched"


@pytest.mark.parametrize(("user", "timed_out", "decision"), [({"id": "7", "name": "R"}, False, "rejected"), (None, True, "unanswered")])
def test_a_rejection_and_a_timeout_are_recorded_too(  # noqa: PLR0917 - fixtures
    reviewing, root: Path, steps: Steps, person, user: dict[str, str] | None, timed_out: bool, decision: str
) -> None:
    failing(steps)
    empty = {"reason": "", "ticket": "", "expires": None, "owner": ""}
    person["answer"].update(chosen_options=["Reject"], params_input=empty, responded_by_user=user, timedout=timed_out)
    run = Run(reviewing)
    assert (run.state, run.failed) == ("failed", {"gate"})
    (review,) = found(root)
    assert (review.record.decision, review.waivers_file, review.problems) == (decision, None, ())


def test_an_answer_that_cannot_be_used_records_nothing_and_says_what_to_correct(reviewing, root: Path, steps: Steps, person) -> None:
    failing(steps)
    person["answer"]["params_input"] = {**FORM, "owner": "Rita Reviewer", "expires": "not a date", "ticket": 5, "reason": None}
    run = Run(reviewing)
    assert (run.state, run.failed) == ("failed", {"gate", "record_review"})
    said = str(run.errors["record_review"])
    for part in ("owner: 'Rita Reviewer' is the reviewer", "expires: 'not a date'", "reason: is empty", "clear the task `review`"):
        assert part in said
    assert found(root) == []


def test_repeating_the_run_records_the_same_answer_once_and_a_new_answer_beside_it(
    reviewing, load_dag, root: Path, steps: Steps, person
) -> None:
    failing(steps)
    person["answer"].update(chosen_options=["Reject"])
    first = Run(reviewing).returned("record_review")
    person["answer"].update(chosen_options=["Approve"], responded_at=ANSWERED + timedelta(minutes=1))
    second = Run(load_dag("kafka_reliability_audit")).returned("record_review")
    assert [(one.sequence, one.record.decision) for one in found(root)] == [(1, "rejected"), (2, "accepted")]
    assert (first["sequence"], second["sequence"]) == (1, 2)
    assert Run(load_dag("kafka_reliability_audit")).returned("record_review") == second
    assert len(found(root)) == 2


@pytest.mark.parametrize(("evidence", "findings"), [(("PASS", 0), ("PASS", 0)), (("FAIL", 4), ("FAIL", 3))])
def test_nobody_is_asked_about_an_audit_that_passed_or_is_void(  # noqa: PLR0917 - fixtures
    reviewing, root: Path, steps: Steps, person, evidence, findings
) -> None:
    failing(steps)
    steps.evidence, steps.findings = evidence, findings
    run = Run(reviewing)
    assert {name: run.states[name] for name in REVIEW_TASKS} == {
        "needs_review": "success",
        "review": "skipped",
        "record_review": "skipped",
    }
    assert run.state == ("success" if findings == ("PASS", 0) else "failed")
    assert person["asked"] == [] and found(root) == []


def test_only_an_audit_that_failed_is_reviewed() -> None:
    from kafka_audit.airflow.review import is_reviewed
    from kafka_audit.audit.outcome import FAILED, VERDICTS, Outcome

    assert [one for one in VERDICTS if is_reviewed(Outcome(verdict=one, exit_code=3, reasons=()))] == [FAILED]


def test_a_run_that_was_refused_is_not_reviewed(reviewing, root: Path, steps: Steps, person) -> None:
    run = Run(reviewing, min_irs=3)
    assert run.failed == {"plan", "gate"}
    assert run.states["review"] == "skipped" and person["asked"] == []


def test_an_audit_that_was_changed_after_it_was_sealed_is_not_reviewed(
    reviewing, root: Path, steps: Steps, person, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafka_audit.airflow import results

    failing(steps)

    def then_changed(made: Any, log: Any) -> dict[str, Any]:
        (made.audit.settings / "done").write_text("other", encoding="utf-8")
        return {}

    monkeypatch.setattr(results, "tell_seal", then_changed)
    run = Run(reviewing)
    assert "does not match its manifest" in str(run.errors["needs_review"])
    assert person["asked"] == [] and found(root) == []


def test_the_command_runs_its_audit_without_a_human_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load_dag) -> None:
    from kafka_audit.airflow import run_dag
    from kafka_audit.airflow.environment import chosen

    monkeypatch.setenv("KAFKA_AUDIT_ON_FAIL", "review")
    given: dict[str, str] = {}

    def run(conf: Any, environment: dict[str, str], **_: Any) -> None:
        given.update(environment)

    monkeypatch.setattr(run_dag, "_run", run)
    run_dag.run_audit_through_airflow(connection={}, cluster="kafka", root=tmp_path / "root", progress=lambda step: None)
    assert given["KAFKA_AUDIT_ON_FAIL"] == ""
    for name, value in chosen(cluster="kafka", policy=None, controls=[]).items():
        monkeypatch.setenv(name, value)
    assert not REVIEW_TASKS & set(load_dag("kafka_reliability_audit").task_dict)
