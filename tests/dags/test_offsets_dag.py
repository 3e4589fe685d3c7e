"""The offsets DAG with a fake cluster: the files of a run, its asset event, and what it refuses."""

from pathlib import Path

import pytest
from dag_run import WHEN, Run
from steps import Steps

from kafka_audit.errors import CollectionError
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.sealed import Sealed

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db", "root")]
DAG = "kafka_offsets_snapshot"
COUNTS = {
    "groups": 1,
    "partitions_behind": 2,
    "partitions_lost": 1,
    "partitions_beyond_end": 1,
    "partitions_unknown": 1,
    "errors": {"committed_offsets": 1},
}


@pytest.fixture
def dag(load_dag):
    return load_dag(DAG)


def snapshots(root: Path, cluster: str = "kafka") -> list[Path]:
    return [path.parent for path in root.glob(f"offsets/{cluster}/*/manifest.json")]


def test_a_run_ends_before_the_next_is_due_and_only_an_unreachable_cluster_is_tried_again(dag) -> None:
    from kafka_audit.airflow.retries import SNAPSHOT_RETRIES

    (only,) = dag.tasks
    assert only.execution_timeout < dag.dagrun_timeout
    assert dag.dagrun_timeout.total_seconds() < 300
    assert only.retry_policy is SNAPSHOT_RETRIES


def test_a_run_seals_a_snapshot_and_updates_the_clusters_asset(dag, root: Path, steps: Steps, events) -> None:
    run = Run(dag)
    assert run.state == "success"
    (folder,) = snapshots(root)
    assert Sealed.verified(folder).manifest["kind"] == "offsets"
    assert folder.name.startswith(WHEN.strftime("%Y%m%dT%H%M%SZ-"))
    said = {"cluster": "kafka", "snapshot_id": folder.name, **COUNTS}
    assert run.returned("snapshot_offsets") == said
    assert events() == [("offsets/kafka", "kafka-audit://offsets/kafka", said)]


def test_a_late_run_says_when_it_really_read_the_cluster(dag, root: Path, steps: Steps) -> None:
    Run(dag)
    (folder,) = snapshots(root)
    assert not read_json(folder / "manifest.json")["started_at"].startswith(WHEN.date().isoformat())


def test_a_cleared_task_finds_its_snapshot_and_another_run_takes_another(load_dag, root: Path, steps: Steps) -> None:
    Run(load_dag(DAG))
    (folder,) = snapshots(root)
    before = (folder / "manifest.json").read_bytes()
    Run(load_dag(DAG))
    assert (folder / "manifest.json").read_bytes() == before
    Run(load_dag(DAG), when=WHEN.replace(minute=5))
    assert len(snapshots(root)) == 2


@pytest.mark.usefixtures("folders_allowed")
def test_a_run_of_a_listed_cluster_updates_that_clusters_asset(
    *, load_dag, root: Path, steps: Steps, events, policy_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "payments=kafka_default")
    assert Run(load_dag(f"{DAG}__payments"), policy_dir=str(policy_copy)).state == "success"
    assert snapshots(root, "payments") and not snapshots(root)
    assert [uri for _, uri, _ in events()] == ["kafka-audit://offsets/payments"]
    assert steps.policies == [policy_copy]


@pytest.mark.parametrize(
    ("conf", "message"),
    [
        ({"group": "a*"}, "group: is not a parameter of kafka_offsets_snapshot; did you mean 'groups'"),
        ({"policy_dir": "relative"}, "write an absolute path"),
        ({"topics": " , "}, "the scope has no pattern for topics"),
    ],
)
def test_what_cannot_be_used_is_refused_before_the_cluster_is_touched(dag, steps: Steps, events, conf: dict, message: str) -> None:
    run = Run(dag, **conf)
    assert run.state == "failed"
    assert message in str(run.errors["snapshot_offsets"])
    assert steps.calls == []
    assert events() == []


def test_a_connection_that_is_not_defined_is_named(dag, steps: Steps, events, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AIRFLOW_CONN_KAFKA_DEFAULT")
    assert "there is no Airflow connection 'kafka_default'" in str(Run(dag).errors["snapshot_offsets"])
    assert (steps.calls, events()) == ([], [])


def test_an_unreachable_cluster_leaves_a_red_run_a_gap_and_no_event(dag, root: Path, steps: Steps, events) -> None:
    steps.raises["offsets"] = CollectionError("no bootstrap server could be reached (127.0.0.1:1: refused)")
    run = Run(dag)
    assert run.state == "failed"
    assert "no bootstrap server could be reached" in str(run.errors["snapshot_offsets"])
    assert snapshots(root) == []
    assert events() == []


def test_an_offsets_snapshot_starts_the_audit_that_is_scheduled_on_it(
    load_dag, root: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow.models.asset import AssetDagRunQueue
    from airflow.models.dag import DagModel
    from airflow.utils.session import create_session
    from sqlalchemy import select

    monkeypatch.setenv("KAFKA_AUDIT_SCHEDULE", "asset")
    audit = load_dag("kafka_reliability_audit")
    Run(audit)
    with create_session() as session:
        session.get(DagModel, audit.dag_id).is_paused = False
    Run(load_dag(DAG), when=WHEN.replace(minute=10))
    with create_session() as session:
        assert set(session.scalars(select(AssetDagRunQueue.target_dag_id))) == {audit.dag_id}
