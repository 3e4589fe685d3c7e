"""The tasks that tell people: they exist only where somebody is to be told, and tell of audits that end and of those that do not."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from dag_run import Run
from indexed_cluster import IndexedCluster
from news_overviews import failed
from receivers import HttpServer, http_server
from steps import Steps

from kafka_audit.errors import CollectionError, ConfigurationError, NotToldError
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, new_id

AUDIT, WATCH = "kafka_reliability_audit", "kafka_reliability_watch"
pytestmark = pytest.mark.airflow


@pytest.fixture
def chat(monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    """A chat that is to be told."""
    with http_server() as server:
        extra = {"config": {"path": f"json://127.0.0.1:{server.port}"}}
        monkeypatch.setenv("AIRFLOW_CONN_OPS_CHAT", json.dumps({"conn_type": "apprise", "extra": extra}))
        monkeypatch.setenv("KAFKA_AUDIT_NOTIFY", "ops_chat")
        yield server


@pytest.fixture
def dags(monkeypatch: pytest.MonkeyPatch):
    """The DAGs as they are loaded with more settings of the environment."""
    from airflow.dag_processing.dagbag import DagBag

    def load(**settings: str) -> dict:
        for name, value in settings.items():
            monkeypatch.setenv(f"KAFKA_AUDIT_{name}", value)
        found = DagBag(dag_folder=str(Path(__file__).parents[2] / "dags"))
        assert found.import_errors == {}
        return found.dags

    return load


def test_without_the_setting_nothing_tells_and_nothing_watches(dagbag) -> None:
    assert WATCH not in dagbag.dags
    assert "tell" not in dagbag.dags[AUDIT].task_dict


def test_with_it_an_audit_tells_beside_its_gate_whatever_happened_before(dags) -> None:
    audit = dags(NOTIFY="ops_chat")[AUDIT]
    tell = audit.get_task("tell")
    assert tell.upstream_task_ids == {"plan", "report"}
    assert (tell.downstream_task_ids, str(tell.trigger_rule.value)) == (set(), "all_done")
    assert audit.get_task("gate").upstream_task_ids == dags()[AUDIT].get_task("gate").upstream_task_ids == {"plan", "publish"}
    assert tell.retries == 3


def test_a_wrong_setting_stops_messages_and_no_audit(dags) -> None:
    found = dags(NOTIFY="slack://token", NOTIFY_SEVERITY="urgent", STALE_HOURS="soon")
    assert {AUDIT, WATCH} <= set(found)


def test_one_watch_looks_at_every_cluster_and_keeps_the_rules_of_every_dag(dags) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    watch = dags(NOTIFY="ops_chat", CLUSTERS="orders=kafka_orders,payments=kafka_payments", WATCH_SCHEDULE="@hourly")[WATCH]
    assert watch.get_task("watch").op_kwargs_expand_input.value == {"cluster": ["orders", "payments"]}
    assert (watch.schedule, watch.catchup, watch.max_active_runs, watch.is_paused_upon_creation) == ("@hourly", False, 1, False)
    assert timedelta() < watch.dagrun_timeout <= timedelta(hours=6)
    assert (watch.owner, bool(watch.tags)) == ("kafka-audit", True)
    for name in ("NOTIFY", "NOTIFY_SEVERITY", "STALE_HOURS", "FINISH_WITHIN", "WATCH_SCHEDULE", "CLUSTERS"):
        assert f"`KAFKA_AUDIT_{name}`" in watch.doc_md
    again = DagSerialization.from_dict(json.loads(json.dumps(DagSerialization.to_dict(watch))))
    assert set(again.task_dict) == {"watch"}


def test_what_was_not_accepted_is_tried_again_and_a_wrong_setting_is_not() -> None:
    from kafka_audit.airflow.retries import worth_retrying

    assert worth_retrying(NotToldError("a service did not accept the message"))
    assert not worth_retrying(ConfigurationError("KAFKA_AUDIT_NOTIFY: names no connection"))


@pytest.mark.usefixtures("airflow_db", "steps")
def test_an_audit_tells_what_it_found_once_it_is_sealed(
    root: Path, chat: HttpServer, load_dag, monkeypatch: pytest.MonkeyPatch, steps: Steps
) -> None:
    def write(audit, *given, **more) -> None:
        steps.write_report(audit, *given, **more)
        IndexedCluster.write_index(audit, cluster="kafka", failed=failed(high=2))

    monkeypatch.setattr("kafka_audit.airflow.results.write_report_and_index", write)
    monkeypatch.setenv("KAFKA_AUDIT_STALE_HOURS", "8000")
    run = Run(load_dag(AUDIT))
    assert (run.state, run.failed) == ("success", set())
    assert run.returned("tell") == {"ops_chat": ["new_failures"]}
    assert "2 failures (2 high)" in chat.bodies[0]["message"]
    assert len(chat.received) == 1


@pytest.mark.usefixtures("airflow_db")
def test_an_audit_that_ends_without_a_report_is_told_and_only_its_gate_and_step_are_red(
    root: Path, chat: HttpServer, load_dag, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_STALE_HOURS", "8000")
    steps.raises["snapshot"] = CollectionError("no bootstrap server could be reached (127.0.0.1:1: refused)")
    run = Run(load_dag(AUDIT))
    assert run.failed == {"snapshot", "gate"}
    assert run.returned("tell") == {"ops_chat": ["unfinished"]}
    assert "step snapshot failed" in chat.bodies[0]["message"]


@pytest.mark.usefixtures("airflow_db", "steps")
def test_a_connection_that_is_missing_fails_the_task_at_once_and_not_the_gate(
    root: Path, load_dag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_NOTIFY", "nobody")
    run = Run(load_dag(AUDIT))
    assert run.failed == {"tell"}
    assert "there is no such Airflow connection" in str(run.errors["tell"])


@pytest.mark.usefixtures("airflow_db")
def test_the_watch_tells_of_a_stale_cluster_and_of_an_audit_that_does_not_end(
    root: Path, chat: HttpServer, load_dag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_FINISH_WITHIN", "90")
    began = datetime.now(timezone.utc) - timedelta(hours=30)
    audit = EvidenceRoot(path=root).audit("kafka", new_id(began, "audit"))
    write_json(audit.run_file, {"audit_id": audit.path.name, "started_at": began.isoformat()})
    for _ in range(2):
        run = Run(load_dag(WATCH))
        assert run.state == "success"
    assert [one.rendered_map_index for one in run.instances()] == ["kafka"]
    [body] = chat.bodies
    assert "Nothing recent is known: the newest audit is of" in body["message"]
    assert f"audit {audit.path.name} began at" in body["message"]
