"""The audit DAG with ``KAFKA_AUDIT_SHARDS``: tasks that share out the cluster, and what is said when one of them fails."""

from pathlib import Path

import pytest
from dag_run import Run
from steps import Steps
from test_audit_in_store import url  # noqa: F401  (fixture)

from kafka_audit.audit.request import DAG_ID
from kafka_audit.errors import CollectionError
from kafka_audit.policy import load_policy
from kafka_audit.store.parts import part_writer

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db")]


@pytest.fixture
def dag(load_dag, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KAFKA_AUDIT_SHARDS", "2")
    return load_dag(DAG_ID)


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch, steps: Steps) -> Steps:
    """The steps, with stand-ins for the reading and joining of parts."""
    from kafka_audit.collect import parts

    def read_part(part, **about) -> None:
        where = {name: about[name] for name in ("root", "cluster", "snapshot_id")}
        if part in parts.missing_parts(part.count, **where):
            steps._call(part.name)
            with part_writer(where["root"], where["cluster"], where["snapshot_id"], part.name) as writer:
                writer.seal({})

    monkeypatch.setattr(parts, "read_part", read_part)
    monkeypatch.setattr(parts, "join_parts", lambda count, **where: steps.take_whole_snapshot(policy=load_policy(None), **where))
    return steps


def test_with_several_shards_tasks_share_the_cluster_out_and_the_others_stay_the_same(dag, load_dag, monkeypatch) -> None:
    from kafka_audit.airflow.retries import SNAPSHOT_RETRIES

    monkeypatch.setenv("KAFKA_AUDIT_SHARDS", "1")
    whole = load_dag(DAG_ID)
    assert set(dag.task_dict) - set(whole.task_dict) == {"read_groups", "read_topics"}
    for name in set(whole.task_dict) - {"plan", "snapshot"}:
        assert dag.get_task(name).upstream_task_ids == whole.get_task(name).upstream_task_ids
    for name, before in (("read_groups", {"plan"}), ("read_topics", {"plan", "read_groups"}), ("snapshot", {"plan", "read_topics"})):
        assert dag.get_task(name).upstream_task_ids == before
    for name in ("read_groups", "read_topics"):
        task = dag.get_task(name)
        assert (task.retry_policy, task.max_active_tis_per_dag) == (SNAPSHOT_RETRIES, 2)
        assert task.op_kwargs_expand_input.value == {"index": [0, 1]}


def test_a_split_run_ends_green(dag, root: Path, parts: Steps) -> None:
    run = Run(dag)
    assert (run.state, run.failed) == ("success", set())
    of_groups, of_topics, joined = parts.calls[:2], parts.calls[2:4], parts.calls[4]
    assert (set(of_groups), set(of_topics), joined) == (
        {"groups-01-of-02", "groups-02-of-02"},
        {"topics-01-of-02", "topics-02-of-02"},
        "snapshot",
    )


@pytest.mark.parametrize("place", ["root", "url"], ids=["in a folder", "in a store, each task on a machine of its own"])
def test_the_gate_says_why_a_part_was_not_read_and_a_later_try_can_still_succeed(dag, load_dag, parts: Steps, request, place) -> None:
    request.getfixturevalue(place)
    parts.raises["topics-02-of-02"] = CollectionError("no bootstrap server could be reached")
    run = Run(dag)
    assert run.failed == {"read_topics", "snapshot", "gate"}
    assert "parts of it are missing (topics-02-of-02); topics-02-of-02: no bootstrap server could be reached" in run.gate
    assert "snapshot" not in parts.calls

    parts.raises.clear()
    assert Run(load_dag(DAG_ID)).state == "success"
    assert parts.calls.count("topics-01-of-02") == 1
