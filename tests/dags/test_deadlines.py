"""The deadlines of the audit DAG, and whom they tell."""

import asyncio
import logging
from datetime import timedelta

import pytest

from kafka_audit.errors import ConfigurationError

pytestmark = pytest.mark.airflow
RUN = {"dag_id": "kafka_reliability_audit", "dag_run_id": "manual__1", "queued_at": "2026-11-20T12:00:00Z"}
RUNNING = {**RUN, "state": "running", "start_date": "2026-11-20T12:00:05Z"}
QUEUED = {**RUN, "state": "queued", "start_date": None}


def test_the_audit_dag_has_both_deadlines_and_they_survive_serialisation(load_dag, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.sdk import DeadlineReference
    from airflow.serialization.serialized_objects import DagSerialization

    for name in ("KAFKA_AUDIT_START_WITHIN", "KAFKA_AUDIT_FINISH_WITHIN"):
        monkeypatch.delenv(name)
    dag = load_dag("kafka_reliability_audit")
    found = {alert.callback.path.rsplit(".", 1)[-1]: alert for alert in dag.deadline}
    assert {name: alert.interval for name, alert in found.items()} == {
        "tell_if_not_started": timedelta(minutes=30),
        "tell_if_not_finished": timedelta(minutes=90),
    }
    assert {alert.reference for alert in dag.deadline} == {DeadlineReference.DAGRUN_QUEUED_AT}
    assert found["tell_if_not_finished"].interval < dag.dagrun_timeout
    assert len(DagSerialization.to_dict(dag)["dag"]["deadline"]) == 2


def test_deadlines_are_set_in_minutes_and_switched_off_with_0(monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_audit.airflow.deadlines import audit_deadlines

    monkeypatch.setenv("KAFKA_AUDIT_START_WITHIN", "0")
    monkeypatch.setenv("KAFKA_AUDIT_FINISH_WITHIN", "45")
    (only,) = audit_deadlines(reviewed=False)
    assert (only.interval, only.callback.kwargs) == (timedelta(minutes=45), {"minutes": 45})
    monkeypatch.setenv("KAFKA_AUDIT_FINISH_WITHIN", "0")
    assert audit_deadlines(reviewed=False) == []


@pytest.mark.parametrize("variable", ["KAFKA_AUDIT_FINISH_WITHIN", "KAFKA_AUDIT_START_WITHIN"])
@pytest.mark.parametrize("value", ["soon", "-5", "1.5", "10081", "²"])
def test_a_bad_deadline_names_the_variable(monkeypatch: pytest.MonkeyPatch, variable: str, value: str) -> None:
    from kafka_audit.airflow.deadlines import audit_deadlines

    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"{variable}: '.*' is not usable: write whole minutes"):
        audit_deadlines(reviewed=False)


@pytest.mark.parametrize(
    ("name", "run", "said"),
    [
        ("tell_if_not_started", QUEUED, "The run manual__1 of kafka_reliability_audit has not started within 30 minutes"),
        ("tell_if_not_started", RUNNING, None),
        ("tell_if_not_started", {**RUNNING, "state": "failed"}, None),
        ("tell_if_not_finished", QUEUED, "has not finished within 30 minutes: it was queued at 2026-11-20T12:00:00Z and is queued"),
        ("tell_if_not_finished", RUNNING, "and is running"),
        ("tell_if_not_finished", {**RUNNING, "state": "failed"}, None),
        ("tell_if_not_finished", {**RUNNING, "state": "success"}, None),
    ],
)
def test_people_are_told_only_of_a_run_that_is_late(name: str, run: dict, said: str | None, caplog: pytest.LogCaptureFixture) -> None:
    from kafka_audit.airflow import deadlines

    asyncio.run(getattr(deadlines, name)(context={"dag_run": run, "deadline": {}}, minutes=30))
    told = [record for record in caplog.records if record.name == deadlines.__name__]
    assert [record.levelno for record in told] == ([logging.ERROR] if said else [])
    assert all(said in record.getMessage() for record in told)
