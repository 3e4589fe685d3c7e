"""The audit DAG: the order of its tasks, which tasks are retried, and which parameters it accepts."""

import copy
import io
import signal
from types import SimpleNamespace

import pytest

from kafka_audit.errors import CollectionError, ConfigurationError, IntegrityError

pytestmark = pytest.mark.airflow


def test_the_gate_is_the_last_task_and_the_only_one_without_a_task_after_it(dag) -> None:
    assert [task.task_id for task in dag.tasks if not task.downstream_task_ids] == ["gate"]


def test_tasks_follow_the_data(dag) -> None:
    for before, after in (
        ("plan", "snapshot"),
        ("snapshot", "evidence_gate"),
        ("evidence_gate", "verify"),
        ("verify", "findings_gate"),
        ("findings_gate", "report"),
        ("report", "publish"),
        ("publish", "gate"),
    ):
        assert after in dag.get_task(before).downstream_task_ids, (before, after)


def test_report_publish_and_gate_run_whatever_happened_before_and_the_others_only_after_success(dag) -> None:
    rules = {task.task_id: str(task.trigger_rule.value) for task in dag.tasks}
    last = ("report", "publish", "gate")
    assert {name for name, rule in rules.items() if rule == "all_done"} == set(last)
    assert {rule for name, rule in rules.items() if name not in last} == {"all_success"}


def test_the_spark_job_is_named_and_carries_the_projects_settings(dag) -> None:
    task = dag.get_task("verify")
    assert task.name == "kafka_audit_verify"
    assert task.application.endswith("spark_jobs/verify.py")
    assert task.conf["spark.sql.ansi.enabled"] == "false"
    assert "TieredStopAtLevel=1" in task.conf["spark.driver.extraJavaOptions"]


def test_one_spark_application_judges_settings_and_lag(dag) -> None:
    assert [task.task_id for task in dag.tasks if hasattr(task, "application")] == ["verify"]


def test_after_an_error_only_the_snapshot_is_tried_again_and_after_the_loss_of_its_worker_every_task(dag) -> None:
    from kafka_audit.airflow.retries import NO_ERROR_TWICE, SNAPSHOT_RETRIES

    others = [task for task in dag.tasks if task.task_id != "snapshot"]
    assert dag.get_task("snapshot").retry_policy is SNAPSHOT_RETRIES
    assert [task.task_id for task in others if task.retry_policy is not NO_ERROR_TWICE] == []
    assert [task.task_id for task in others if task.retries != 1] == []
    assert {NO_ERROR_TWICE.evaluate(one, try_number=1, max_tries=1).action.value for one in (CollectionError("x"), KeyError("x"))} == {
        "fail"
    }


@pytest.mark.parametrize(
    ("problem", "action"),
    [
        (CollectionError("no bootstrap server could be reached"), "retry"),
        (ConfigurationError("sasl.mechanism: is missing"), "fail"),
        (IntegrityError("the snapshot was changed"), "fail"),
        (KeyError("a bug"), "fail"),
    ],
)
def test_a_snapshot_is_tried_again_only_when_the_cluster_could_not_be_read(problem: Exception, action: str) -> None:
    from kafka_audit.airflow.retries import SNAPSHOT_RETRIES

    assert SNAPSHOT_RETRIES.evaluate(problem, try_number=1, max_tries=2).action.value == action


def test_an_unreachable_cluster_is_worth_a_retry_and_a_full_disk_or_refused_credentials_are_not() -> None:
    from kafka_audit.airflow.retries import worth_retrying

    full = CollectionError("cannot write")
    full.__cause__ = OSError(28, "No space left on device")
    assert worth_retrying(CollectionError("no bootstrap server could be reached"))
    assert not worth_retrying(full)
    assert not worth_retrying(ConfigurationError("no such connection"))


def test_the_words_of_refused_credentials_are_those_that_the_cluster_room_uses() -> None:
    """worth_retrying tells refused credentials by their message: this test holds the two together."""
    from types import SimpleNamespace

    from kafka_audit.airflow.retries import worth_retrying
    from kafka_audit.cluster import bootstrap

    channel = SimpleNamespace(settings=SimpleNamespace(identity="PLAIN user 'audit'"))
    refused = bootstrap._credentials_refused(channel, "b1:9092", SimpleNamespace(message="refused"))
    assert not worth_retrying(refused)


@pytest.mark.parametrize("value", [{"min_coverage": 2}, {"cluster": "A B"}, {"fail_on": "never"}, {"max_age_seconds": "soon"}])
def test_airflow_refuses_a_bad_value_when_the_run_is_triggered(dag, value: dict) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    params = copy.deepcopy(dag.params)
    with pytest.raises(ParamValidationError):
        params.update(value)


def test_the_same_run_gets_the_same_ids_and_another_run_gets_others(tmp_path) -> None:
    from datetime import datetime, timedelta, timezone

    from kafka_audit.audit.request import AuditRequest, make_plan

    when = datetime(2026, 11, 20, 23, 15, tzinfo=timezone.utc)

    def ids(run_id: str, run_after: datetime) -> tuple[str, str]:
        made = make_plan(AuditRequest(), root=tmp_path, dag_id="d", run_id=run_id, run_after=run_after)
        return made.audit_id, made.snapshot_id

    assert ids("r", when) == ids("r", when)
    assert ids("r", when)[0] != ids("r", when)[1]
    assert ids("s", when) != ids("r", when)
    assert ids("r", when + timedelta(seconds=1)) > ids("r", when)
    assert ids("r", when)[0].startswith("20261120T231500Z-")


def test_after_an_interrupt_no_further_task_begins() -> None:
    from kafka_audit.airflow.run_once import Events

    events = Events(io.StringIO())
    task = SimpleNamespace(task_id="verify")
    events.on_task_instance_running(None, task)
    with pytest.raises(KeyboardInterrupt):
        events.interrupt(signal.SIGINT, None)
    # Airflow took that one for the task's failure, and would go on to report and gate, which run whatever happened before.
    with pytest.raises(KeyboardInterrupt):
        events.on_task_instance_failed(None, task, KeyboardInterrupt())
