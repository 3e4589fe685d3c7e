"""The right to run one DAG gives access to one cluster, one connection and its evidence only, whatever a run's parameters or XComs say."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from dag_run import WHEN, Run
from steps import Steps

from kafka_audit.audit.request import (
    DAG_ID,
    AuditRequest,
    ClusterRequest,
    CommitHistoryRequest,
    OffsetsRequest,
    PolicyRequest,
    check_request,
)
from kafka_audit.errors import ConfigurationError

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db", "listed")]
KINDS: dict[str, type[ClusterRequest]] = {
    DAG_ID: AuditRequest,
    "kafka_offsets_snapshot": OffsetsRequest,
    "kafka_offsets_roll_up": PolicyRequest,
    "kafka_commit_history": CommitHistoryRequest,
}


@pytest.fixture
def listed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two clusters, each with a connection of its own."""
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "orders=kafka_orders,payments=kafka_payments")
    for name in ("ORDERS", "PAYMENTS"):
        extra = {"bootstrap.servers": "127.0.0.1:1"}
        monkeypatch.setenv(f"AIRFLOW_CONN_KAFKA_{name}", json.dumps({"conn_type": "kafka", "extra": extra}))


def other(kind: type[ClusterRequest]) -> dict[str, str]:
    """What another cluster's DAG of the same kind has."""
    return {name: value for name, value in (("cluster", "payments"), ("kafka_conn_id", "kafka_payments")) if name in kind.model_fields}


def test_a_dag_of_each_kind_reads_its_own_cluster() -> None:
    for dag_kind, kind in KINDS.items():
        said = check_request(kind, f"{dag_kind}__payments", {}, None).model_dump()
        assert {name: said[name] for name in other(kind)} == other(kind)


@pytest.mark.parametrize("dag_kind", KINDS)
def test_another_cluster_or_connection_is_refused_wherever_a_run_asks_for_it(dag_kind: str) -> None:
    kind, dag_id = KINDS[dag_kind], f"{dag_kind}__orders"
    for name, value in other(kind).items():
        for params, conf in (({name: value}, None), ({}, {name: value}), ({name: value}, {name: value})):
            with pytest.raises(ConfigurationError) as refused:
                check_request(kind, dag_id, params, conf)
            assert (
                f"{name}: {dag_id} reads the cluster orders by the connection kafka_orders only (given: {value!r}); "
                "KAFKA_AUDIT_CLUSTERS gives another cluster DAGs of its own"
            ) in str(refused.value)


@pytest.mark.parametrize("name", ["cluster", "kafka_conn_id"])
@pytest.mark.parametrize("value", [None, "", ["payments"], {"x": 1}, "orders\n", "ORDERS", 1])
def test_nothing_but_the_dags_own_name_will_do(name: str, value: Any) -> None:
    with pytest.raises(ConfigurationError, match=f"{name}: .* reads the cluster orders"):
        check_request(AuditRequest, f"{DAG_ID}__orders", {name: value}, None)


@pytest.mark.parametrize("dag_kind", KINDS)
def test_airflow_shows_both_and_takes_no_other_value(load_dag, dag_kind: str) -> None:
    from airflow.sdk.exceptions import ParamValidationError

    dag = load_dag(f"{dag_kind}__orders")
    for name, value in other(KINDS[dag_kind]).items():
        assert dag.params.get_param(name).schema["enum"] == [dag.params[name]]
        with pytest.raises(ParamValidationError):
            dag.params.update({name: value})


@pytest.mark.parametrize(("dag_kind", "refusing"), [*zip(KINDS, ("plan", "snapshot_offsets", "plan_roll_up", "read_commits"), strict=True)])
def test_a_run_that_airflow_lets_through_is_refused_before_anything_is_read_or_written(
    *, load_dag, root: Path, steps: Steps, dag_kind: str, refusing: str
) -> None:
    """Airflow asks the schema that it has stored; here it asks nothing."""
    kind = KINDS[dag_kind]
    dag = load_dag(f"{dag_kind}__orders")
    for params in (dag.params, *(task.params for task in dag.tasks)):
        for name in other(kind):
            if name in params:
                params.get_param(name).schema = {}
    run = Run(dag, **other(kind))
    assert (run.state, refusing in run.failed) == ("failed", True)
    assert "reads the cluster orders by the connection kafka_orders only" in str(run.errors[refusing])
    assert steps.calls == []
    assert not root.exists()


@pytest.fixture
def edit_xcom() -> Iterator[Callable[..., None]]:
    """Edits what a task has returned, before the next task begins: as the REST API lets people do who may edit runs of the DAG."""
    from airflow.listeners import hookimpl
    from airflow.models.xcom import XComModel
    from airflow.sdk.listener import get_listener_manager
    from airflow.utils.session import create_session
    from sqlalchemy import select

    listeners = []

    def edit(task_id: str, key: str, change: Callable[[Any], Any]) -> None:
        class Listener:
            @hookimpl
            def on_task_instance_success(self, previous_state: Any, task_instance: Any) -> None:
                if task_instance.task_id != task_id:
                    return
                with create_session() as session:
                    rows = session.scalars(select(XComModel).where(XComModel.run_id == task_instance.run_id, XComModel.key == key)).all()
                    (row,) = (one for one in rows if (one.dag_id, one.task_id) == (task_instance.dag_id, task_id))
                    row.value = change(row.value)

        listeners.append(Listener())
        get_listener_manager().add_listener(listeners[-1])

    yield edit
    for listener in listeners:
        get_listener_manager().pm.unregister(listener)


def test_an_edited_plan_is_refused_by_every_task_and_the_run_ends_red(*, load_dag, root: Path, steps: Steps, edit_xcom) -> None:
    edit_xcom("plan", "return_value", lambda plan: {**plan, "cluster": "payments", "kafka_conn_id": "kafka_payments"})
    run = Run(load_dag(f"{DAG_ID}__orders"))
    assert run.state == "failed"
    assert {"snapshot", "report", "gate"} <= run.failed
    for task in ("snapshot", "report", "gate"):
        assert "the plan is not that of this run (cluster: planned 'payments', the run itself gives 'orders'" in str(run.errors[task])
    assert steps.calls == []
    assert [path.relative_to(root).parts[:2] for path in root.rglob("*.json")] == [("audits", "orders")]


@pytest.mark.parametrize(
    ("key", "change"),
    [
        ("request", lambda request: {**request, "cluster": "payments"}),
        ("request", lambda request: {**request, "policy_dir": "/etc"}),
        ("today", lambda _: "2036-01-01"),
        ("arguments", lambda arguments: [*arguments[:3], "payments", *arguments[4:]]),
    ],
    ids=["cluster", "policy", "today", "arguments"],
)
def test_an_edited_plan_deletes_nothing(*, load_dag, root: Path, steps: Steps, edit_xcom, key: str, change: Callable[[Any], Any]) -> None:
    history = root / "history" / "payments" / "commits" / "raw" / "00000001"
    history.mkdir(parents=True)
    manifest = history / "manifest.json"
    manifest.write_text('{"partitions": []}')
    os.utime(manifest, (0, 0))
    edit_xcom("plan_roll_up", key, change)
    run = Run(load_dag("kafka_offsets_roll_up__orders"), when=WHEN)
    refusing = "roll_up_offsets" if key == "arguments" else "delete_expired"
    assert run.state == "failed"
    assert "the plan is not that of this run" in str(run.errors[refusing])
    assert manifest.is_file()
    assert (steps.calls == []) == (key == "arguments")


def plan_of_run(run_id: str, root: Path) -> tuple[dict[str, Any], Any]:
    """The plan of a run of the DAG of ``orders``, and the context of its tasks."""
    from kafka_audit.audit.request import make_plan

    run = SimpleNamespace(dag_id=f"{DAG_ID}__orders", run_id=run_id, run_after=WHEN, conf={})
    request = check_request(AuditRequest, run.dag_id, {}, None)
    plan = make_plan(request, root=root.resolve(), dag_id=run.dag_id, run_id=run_id, run_after=WHEN)
    return plan.model_dump(mode="json"), {"params": {}, "dag_run": run}


@pytest.mark.parametrize(
    "change",
    [
        {"kafka_conn_id": "kafka_payments"},
        {"root": "/somewhere"},
        {"policy_dir": "/etc"},
        {"controls_dirs": "/etc"},
        {"dag_id": f"{DAG_ID}__payments"},
        {"snapshot_id": "20261120T120000Z-ab12cd34ab12cd34"},
        {"fail_on": "critical"},
        {"more": 1},
    ],
    ids=str,
)
def test_no_field_of_a_plan_can_be_edited(root: Path, change: dict[str, Any]) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    from kafka_audit.airflow.step import checked_plan

    plan, context = plan_of_run("one", root)
    assert checked_plan(plan, context).model_dump(mode="json") == plan
    with pytest.raises(AirflowFailException, match=f"the plan is not that of this run \\({next(iter(change))}: planned"):
        checked_plan({**plan, **change}, context)


def test_a_plan_is_that_of_its_own_run_only(root: Path) -> None:
    """The XCom of another run of the same DAG would bring that run's ids, and write into its audit."""
    from airflow.sdk.exceptions import AirflowFailException

    from kafka_audit.airflow.step import checked_plan

    with pytest.raises(AirflowFailException, match="audit_id: planned"):
        checked_plan(plan_of_run("one", root)[0], plan_of_run("two", root)[1])
