"""The audit DAG on a root in an object store: each task runs as on a machine of its own, with an empty mirror."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dag_run import Run
from object_store import ObjectStore
from steps import Steps
from test_audit_check import said

from kafka_audit.errors import CollectionError
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import Audit, EvidenceRoot
from kafka_audit.store.objects import Objects
from kafka_audit.store.sealed import AUDIT, Sealed

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db")]


@pytest.fixture
def url(object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URL of an empty root, which is the root of this installation; every task gets an empty mirror."""
    from airflow.listeners import hookimpl
    from airflow.sdk.listener import get_listener_manager

    machines = 0

    class EachOnItsOwnMachine:
        @hookimpl
        def on_task_instance_running(self, previous_state: Any, task_instance: Any) -> None:
            nonlocal machines
            machines += 1
            monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path / f"machine-{machines}"))

    for name, value in object_store.environment.items():
        monkeypatch.setenv(name, value)
    named = object_store.new_root()
    monkeypatch.setenv("KAFKA_AUDIT_ROOT", named)
    monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path / "machine-0"))
    listener = EachOnItsOwnMachine()
    get_listener_manager().add_listener(listener)
    yield named
    get_listener_manager().pm.unregister(listener)


def audit_of(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Audit:
    """The one audit, as another machine sees it."""
    monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path / "reader"))
    root = EvidenceRoot.at(url)
    (audit_id,) = root.ids("kafka", AUDIT)
    return root.bring_audit("kafka", audit_id)


def test_steps_on_different_machines_make_one_sealed_audit(
    load_dag, steps: Steps, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = Run(load_dag("kafka_reliability_audit"))
    assert (run.state, run.failed) == ("success", set())
    told = [run.returned(task) for task in ("plan", "snapshot", "report", "publish", "gate")]
    assert not [value for value in told if str(tmp_path) in str(value)]  # no task is told a path of another machine
    assert run.returned("gate")["report"].startswith(f"{url}/audits/kafka/")
    audit = audit_of(url, tmp_path, monkeypatch)
    assert Sealed.verified(audit.path).manifest["sequence"] == 1
    assert (audit.report / "report.html").read_text() == "<p>PASSED</p>"
    assert list(Objects(url=url).names("work")) == []
    assert "intact   1 audits" in said("verify", "--chain", "kafka", "--root", url)


def test_the_gate_says_why_a_step_on_another_machine_failed(
    load_dag, steps: Steps, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.raises["verify"] = CollectionError("the executors were lost")
    run = Run(load_dag("kafka_reliability_audit"))
    assert "the executors were lost" in run.gate
    audit = audit_of(url, tmp_path, monkeypatch)
    assert read_json(audit.path / "failures" / "verify.json")["message"] == "the executors were lost"
