"""One audit by Airflow as docker-compose.celery.yaml has it: PostgreSQL, Redis, two Celery workers that share no disk, a root in an S3 store.

Each task runs on the other worker than the one before it, the snapshot is split into two shares, and one worker is lost while it judges.
"""

import json
import time
from collections.abc import Iterator
from urllib.parse import quote

import pyarrow.parquet as pq
import pytest
from airflow_api import DAG
from airflow_processes import left_of, processes_of
from celery_machines import API_SERVER, WORKERS, Installation, health, installation
from healthy_shop import CLUSTER, FirstAudit
from object_store import ObjectStore
from postgres_and_redis import NEEDS_POSTGRES_AND_REDIS
from test_audit_check import said

from kafka_audit.audit.outcome import PASSED
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import Audit, EvidenceRoot
from kafka_audit.store.objects import Objects
from kafka_audit.store.sealed import AUDIT, Sealed

pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.spark, *NEEDS_POSTGRES_AND_REDIS]
TASKS = ("plan", "read_groups", "read_topics", "snapshot", "evidence_gate", "verify", "findings_gate", "report", "publish", "gate")
LOST = WORKERS[1]
"""The worker that runs ``verify``."""


@pytest.fixture(scope="module")
def running(
    healthy_cluster: Sandbox, healthy_audit: FirstAudit, object_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    connection = {"conn_type": "kafka", "extra": dict(healthy_cluster.audit_connection)}
    settings = {"AIRFLOW_CONN_KAFKA_DEFAULT": json.dumps(connection), "KAFKA_AUDIT_POLICY": str(healthy_audit.policy)}
    settings["KAFKA_AUDIT_SHARDS"] = "2"
    folder = tmp_path_factory.mktemp("celery")
    with installation(folder, store=object_store, first_workers_tasks=TASKS[::2], settings=settings) as made:
        made.api.wait_for_dag(DAG, "")
        yield made
    assert [left for one in made.machines.values() for left in left_of(one.home, 30.0)] == []


@pytest.fixture(scope="module")
def run_id(running: Installation) -> str:
    """A run that somebody triggered and that has ended well, although a worker was lost in the middle of a Spark job."""
    started = running.api.trigger()
    until = time.monotonic() + 600
    while not any("SparkSubmit" in command for command in processes_of(running.machines[LOST].home)):
        assert time.monotonic() < until, running.api.told(started)
        time.sleep(0.2)
    running.replace(LOST)
    state, tasks = running.api.wait(started)
    assert (state, tasks) == ("success", dict.fromkeys(TASKS, "success"))
    return started


@pytest.fixture(scope="module")
def audit(running: Installation, run_id: str, object_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audit]:
    """The audit of the run, as a machine sees it that had no part in it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in object_store.environment.items():
            patch.setenv(name, value)
        patch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path_factory.mktemp("reader")))
        root = EvidenceRoot.at(running.root)
        (audit_id,) = root.ids(CLUSTER, AUDIT)
        yield root.bring_audit(CLUSTER, audit_id)


def findings(audit: Audit) -> list[tuple[str, ...]]:
    """Every verdict of an audit: of which control, on what, and why if there is none."""
    columns = ["control_id", "resource", "status", "severity", "reason"]
    tables = [pq.read_table(audit.path / part / "findings.parquet", columns=columns) for part in ("settings", "lag")]
    return sorted(tuple(map(str, row.values())) for table in tables for row in table.to_pylist())


def test_each_worker_ran_every_other_task_of_the_audit(running: Installation, run_id: str) -> None:
    assert [running.machines[name].tasks for name in WORKERS] == [set(TASKS[::2]), set(TASKS[1::2])]


def test_only_the_task_of_the_lost_worker_was_tried_again(running: Installation, run_id: str) -> None:
    _, found = running.api.call("GET", f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances")
    assert {one["task_id"]: one["try_number"] for one in found["task_instances"]} == {**dict.fromkeys(TASKS, 1), "verify": 2}
    assert len([one for one in found["task_instances"] if one["task_id"] == "read_topics"]) == 2


def test_the_health_check_of_each_worker_says_that_it_is_well(running: Installation, run_id: str) -> None:
    for name in WORKERS:
        assert f"celery@{name}: OK" in health(name, running.machines[name])


def test_the_verdicts_are_those_of_an_audit_on_one_machine(audit: Audit, healthy_audit: FirstAudit) -> None:
    alone = Audit(path=healthy_audit.report.parents[1])
    assert findings(audit) == findings(alone)
    reports = [read_json(one.report / "report.json") for one in (audit, alone)]
    assert {(report["verdict"], report["exit_code"], report["history"][0]["first_audit"]) for report in reports} == {(PASSED, 0, True)}


def test_the_audit_is_sealed_and_intact_and_nothing_of_it_is_left_open(running: Installation, audit: Audit) -> None:
    assert Sealed.verified(audit.path).manifest["sequence"] == 1
    assert list(Objects(url=running.root).names("work")) == []
    assert "intact   1 audits" in said("verify", "--chain", CLUSTER, "--root", running.root)


def test_the_api_server_shows_the_audit_from_a_mirror_of_its_own(running: Installation, run_id: str, audit: Audit) -> None:
    status, text = running.api.call("GET", f"/kafka-audit/dags/{DAG}/runs/{quote(run_id, safe='')}")
    assert status == 200
    assert audit.path.name in text and PASSED in text
    (read,) = running.machines[API_SERVER].mirror.glob(f"*/audits/{CLUSTER}/*/manifest.json")
    assert read.read_bytes() == (audit.path / "manifest.json").read_bytes()
