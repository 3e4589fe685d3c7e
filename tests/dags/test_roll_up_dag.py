"""The roll-up DAG: Spark's arguments, and that files are deleted only after a successful roll-up."""

import os
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest
from dag_run import WHEN, Run
from steps import Steps, spark_failure

from kafka_audit.policy import load_policy
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sealed import OFFSETS

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db", "folders_allowed")]
DAG = "kafka_offsets_roll_up"


@pytest.fixture
def dag(load_dag):
    return load_dag(DAG)


@pytest.fixture
def old_snapshot(root: Path, steps: Steps) -> Path:
    """An offsets snapshot of the summer before."""
    taken = steps.take_offsets_snapshot(
        root=EvidenceRoot(path=root),
        cluster="kafka",
        snapshot_id="20260720T100000Z-ab12cd34ab12cd34",
        policy=load_policy(),
        now=lambda: datetime(2026, 7, 20, 10, tzinfo=timezone.utc),
    )
    return taken.path


def test_spark_rolls_up_until_the_day_before_the_runs_own(dag, root: Path, steps: Steps) -> None:
    run = Run(dag)
    assert run.state == "success"
    assert steps.calls == ["roll_up_offsets"]
    assert steps.arguments == ["--root", str(root), "--cluster", "kafka", "--until", "2026-11-19"]
    assert run.returned("delete_expired") == {"deleted": 0, "would_go": 0, "kept": 0}


@pytest.mark.usefixtures("folders_allowed")
def test_a_run_of_a_listed_cluster_with_a_policy_of_its_own_tells_spark_so(
    load_dag, root: Path, steps: Steps, policy_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_CLUSTERS", "payments=kafka_default")
    Run(load_dag(f"{DAG}__payments"), policy_dir=str(policy_copy))
    assert steps.arguments[2:4] == ["--cluster", "payments"]
    assert steps.arguments[-2:] == ["--policy", str(policy_copy)]


def test_a_snapshot_is_kept_as_long_as_its_day_is_not_rolled_up(dag, old_snapshot: Path, steps: Steps, policy_copy: Path) -> None:
    assert Run(dag, policy_dir=str(policy_copy)).returned("delete_expired") == {"deleted": 0, "would_go": 0, "kept": 1}
    assert EvidenceRoot(path=old_snapshot.parents[2]).find_snapshot("kafka", old_snapshot.name, OFFSETS)


@pytest.fixture
def commits(root: Path) -> Callable[[], set[str]]:
    """A history with a batch of the summer before and a new one; gives the names of those that are there."""
    history = EvidenceRoot(path=root).commit_history("kafka")
    for name, when in (("00000001", datetime(2026, 7, 20, tzinfo=timezone.utc)), ("00000002", WHEN)):
        for kind in ("raw", "decoded"):
            manifest = history / kind / name / "manifest.json"
            write_json(manifest, {"partitions": []})
            os.utime(manifest, (when.timestamp(), when.timestamp()))
    return lambda: {path.parent.name for path in history.glob("*/*/manifest.json")}


def test_old_batches_of_commits_are_deleted_in_the_same_step(dag, commits: Callable, steps: Steps, policy_copy: Path) -> None:
    assert Run(dag, policy_dir=str(policy_copy)).returned("delete_expired") == {"deleted": 1, "would_go": 0, "kept": 0}
    assert commits() == {"00000002"}


def test_nothing_is_deleted_by_the_shipped_policy_and_the_log_says_what_would_have_gone(
    dag, commits: Callable, steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    run = Run(dag)
    assert (run.state, run.returned("delete_expired")) == ("success", {"deleted": 0, "would_go": 1, "kept": 0})
    assert commits() == {"00000001", "00000002"}
    assert "dry run: commits/00000001 goes: its newest record is older than" in caplog.text
    assert "set KAFKA_AUDIT_POLICY in Airflow's environment" in caplog.text


def test_the_installations_policy_is_named_once_in_the_environment(
    dag, commits: Callable, steps: Steps, policy_copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_POLICY", str(policy_copy))
    assert Run(dag).returned("delete_expired") == {"deleted": 1, "would_go": 0, "kept": 0}
    assert steps.arguments[-2:] == ["--policy", str(policy_copy)]
    assert commits() == {"00000002"}


def test_a_policy_in_the_environment_that_is_no_folder_stops_the_run_before_anything_goes(
    dag, commits: Callable, steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_POLICY", "policy")
    run = Run(dag)
    assert "KAFKA_AUDIT_POLICY: policy is not the absolute path of a folder" in str(run.errors["plan_roll_up"])
    assert commits() == {"00000001", "00000002"}


def test_a_dry_run_deletes_nothing(dag, commits: Callable, steps: Steps, policy_copy: Path) -> None:
    run = Run(dag, policy_dir=str(policy_copy), dry_run=True)
    assert run.returned("delete_expired") == {"deleted": 0, "would_go": 1, "kept": 0}
    assert commits() == {"00000001", "00000002"}


def test_nothing_is_deleted_when_the_roll_up_failed(dag, root: Path, steps: Steps) -> None:
    steps.raises["roll_up_offsets"] = spark_failure(1)
    run = Run(dag)
    assert (run.state, run.states["delete_expired"]) == ("failed", "upstream_failed")


@pytest.mark.parametrize(
    ("conf", "message"),
    [({"cluser": "a"}, "did you mean 'cluster'"), ({"policy_dir": "relative"}, "write an absolute path")],
)
def test_what_cannot_be_used_is_refused_before_spark_starts(dag, root: Path, steps: Steps, conf: dict, message: str) -> None:
    run = Run(dag, when=WHEN, **conf)
    assert message in str(run.errors["plan_roll_up"])
    assert steps.calls == []
