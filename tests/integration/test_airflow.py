"""A real Airflow with scheduler, workers and UI audits real brokers; another audit runs without these services and is interrupted."""

import contextlib
import json
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import pyarrow.parquet as pq
import pytest
from command_line import AirflowDatabase

from kafka_audit.airflow.environment import airflow_home
from kafka_audit.airflow.run_dag import only_one, run_audit_through_airflow
from kafka_audit.errors import CollectionError
from kafka_audit.sandbox.brokers import free_ports
from kafka_audit.sandbox.earlier_snapshots import make_past
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.chain import sealed_as
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.sealed import Sealed

pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.spark]
ROOT = Path(__file__).parents[2]
POLICY = ROOT / "plugins" / "kafka_audit" / "sandbox" / "policy" / "healthy"
DAG = "kafka_reliability_audit"
OFFSETS_DAG = "kafka_offsets_snapshot"


@pytest.fixture(scope="module")
def brokers(healthy_cluster: Sandbox) -> str:
    return healthy_cluster.bootstrap


def free_port() -> int:
    return free_ports(1)[0]


class Api:
    """Airflow's REST API and the plugin's pages, as one user."""

    def __init__(self, base: str, user: str | None) -> None:
        self.base = base
        self.token = ""
        if user:
            self.token = self.call("POST", "/auth/token", {"username": user, "password": user})[1]["access_token"]

    def call(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """(status, JSON or text)."""
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data=data, headers=headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, text = answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            status, text = refused.code, refused.read().decode()
        try:
            return status, json.loads(text)
        except ValueError:
            return status, text

    def trigger(self, dag_id: str = DAG, **conf: Any) -> str:
        status, run = self.call("POST", f"/api/v2/dags/{dag_id}/dagRuns", {"logical_date": None, "conf": conf})
        assert status == 200, run
        return str(run["dag_run_id"])

    def state(self, run: str) -> str | None:
        """The state of a run (its path), None where Airflow does not say it just now."""
        try:
            status, answer = self.call("GET", run)
        except OSError:
            return None
        return str(answer["state"]) if status == 200 else None

    def wait(self, run_id: str, dag_id: str = DAG, seconds: float = 1200) -> tuple[str, dict[str, str]]:
        """The run's final state and its tasks' states."""
        run, until = f"/api/v2/dags/{dag_id}/dagRuns/{quote(run_id)}", time.monotonic() + seconds
        while (state := self.state(run)) not in ("success", "failed"):
            assert time.monotonic() < until, f"run {run_id} did not end: {state}"
            time.sleep(1)
        _, tasks = self.call("GET", f"{run}/taskInstances")
        return str(state), {task["task_id"]: task["state"] for task in tasks["task_instances"]}


@pytest.fixture(scope="module")
def airflow(
    tmp_path_factory: pytest.TempPathFactory, healthy_cluster: Sandbox, airflow_database: AirflowDatabase
) -> Iterator[tuple[str, Path]]:
    """(address, audit folder) of a running Airflow; nothing of it is left at the end."""
    from kafka_audit.airflow.standalone import running_airflow

    root = tmp_path_factory.mktemp("airflow") / "audit-root"
    airflow_database.give(root)
    port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_AUDIT_FOLDERS", str(POLICY.parent))
        with running_airflow(root=root, connection=healthy_cluster.audit_connection, port=port):
            yield f"http://127.0.0.1:{port}", root
    assert left_of(airflow_home(root), 30.0) == []


@pytest.fixture(scope="module")
def api(airflow: tuple[str, Path]) -> Api:
    made = Api(airflow[0], "admin")
    until = time.monotonic() + 300
    while any(made.call("GET", f"/api/v2/dags/{dag_id}")[0] != 200 for dag_id in (DAG, OFFSETS_DAG)):
        assert time.monotonic() < until, "the DAGs were not loaded"
        time.sleep(1)  # the first parse of the DAG folder
    return made


def belonging_to(home: Path) -> Iterator[psutil.Process]:
    """The living processes of an Airflow home."""
    for one in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if one.environ().get("AIRFLOW_HOME") == str(home) and one.status() != psutil.STATUS_ZOMBIE:
                yield one


def processes_of(home: Path) -> list[str]:
    """Command lines of the living processes that belong to an Airflow home."""
    found = []
    for one in belonging_to(home):
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            found.append(" ".join(one.cmdline()))
    return found


def left_of(home: Path, seconds: float) -> list[str]:
    """What still runs when that time is over; empty as soon as nothing does."""
    until = time.monotonic() + seconds
    while (left := processes_of(home)) and time.monotonic() < until:
        time.sleep(0.2)
    return left


def test_airflow_listens_on_loopback_only(api: Api, airflow: tuple[str, Path]) -> None:
    family = list(belonging_to(airflow_home(airflow[1])))
    listening = {each.laddr for one in family for each in one.net_connections() if each.status == psutil.CONN_LISTEN}
    assert {each.port for each in listening} >= {int(airflow[0].rpartition(":")[2])}
    assert [each for each in listening if each.ip not in ("127.0.0.1", "::1")] == []


def test_the_dag_and_the_plugin_load_without_errors(api: Api) -> None:
    assert api.call("GET", "/api/v2/importErrors")[1]["total_entries"] == 0
    assert api.call("GET", "/api/v2/plugins/importErrors")[1]["total_entries"] == 0
    assert "kafka_audit" in [plugin["name"] for plugin in api.call("GET", "/api/v2/plugins")[1]["plugins"]]


@pytest.mark.parametrize("conf", [{"min_coverage": 7}, {"cluster": "another"}, {"kafka_conn_id": "another"}], ids=str)
def test_a_run_with_a_bad_value_is_refused_when_it_is_triggered(api: Api, conf: dict[str, Any]) -> None:
    status, answer = api.call("POST", f"/api/v2/dags/{DAG}/dagRuns", {"logical_date": None, "conf": conf})
    assert status == 400
    assert next(iter(conf)) in str(answer)


def test_a_healthy_cluster_is_audited_by_the_scheduler_and_clearing_a_task_gives_the_same_audit(
    api: Api, airflow: tuple[str, Path], healthy_cluster: Sandbox
) -> None:
    base, root = airflow
    make_past(healthy_cluster, "healthy", root=root, cluster="kafka")
    run_id = api.trigger(policy_dir=str(POLICY))
    state, tasks = api.wait(run_id)
    assert (state, set(tasks.values())) == ("success", {"success"}), tasks
    (manifest,) = root.glob("audits/kafka/*/manifest.json")
    assert Sealed.open(manifest.parent).problems() == []
    assert read_json(manifest.parent / "report" / "report.json")["verdict"] == "PASSED"

    seal = sealed_as(manifest.parent)
    for task in ("report", "gate"):
        entry = f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances/{task}/xcomEntries/return_value"
        assert seal.manifest_sha256 in json.dumps(api.call("GET", entry)[1]), task

    page = f"/kafka-audit/dags/{DAG}/runs/{quote(run_id, safe='')}"
    assert Api(base, None).call("GET", page)[0] == 401
    status, text = Api(base, "viewer").call("GET", page)
    assert status == 200
    assert manifest.parent.name in text
    assert "PASSED" in text
    links = api.call("GET", f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances/gate/links")[1]
    assert links["extra_links"]["Audit report"] == f"/dags/{DAG}/runs/{quote(run_id, safe='')}/plugin/audit-report"

    before = result_of(manifest.parent)
    clear = {"dry_run": False, "dag_run_id": run_id, "task_ids": ["evidence_gate"], "include_downstream": True, "only_failed": False}
    status, answer = api.call("POST", f"/api/v2/dags/{DAG}/clearTaskInstances", clear)
    assert status == 200, answer
    state, tasks = api.wait(run_id)
    assert (state, set(tasks.values())) == ("success", {"success"}), tasks
    assert Sealed.open(manifest.parent).problems() == []
    assert result_of(manifest.parent) == before


def result_of(audit: Path) -> dict[str, Any]:
    """What an audit says: its rows, gates and report.

    Not its bytes: Spark lists a column's encodings in the footer of a Parquet file in any order, and the report names the files' hashes.
    """
    tables = {folder.relative_to(audit).as_posix(): pq.read_table(folder).to_pylist() for folder in audit.glob("*/*.parquet")}
    assert {"settings/findings.parquet", "settings/summary.parquet", "lag/findings.parquet", "lag/summary.parquet"} <= set(tables)
    documents = {name: read_json(audit / name) for name in ("run.json", "gate/evidence.json", "gate/findings.json", "report/report.json")}
    documents["report/report.json"].pop("audit_files")
    return {**tables, **documents}


def test_a_mistyped_parameter_turns_the_run_red_before_the_cluster_is_read(api: Api, airflow: tuple[str, Path]) -> None:
    run_id = api.trigger(min_covrage=0.5)
    state, tasks = api.wait(run_id)
    assert state == "failed"
    assert (tasks["plan"], tasks["snapshot"], tasks["gate"]) == ("failed", "upstream_failed", "failed")
    log = api.call("GET", f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances/plan/logs/1?full_content=true")[1]
    assert "min_covrage: is not a parameter of kafka_reliability_audit; did you mean 'min_coverage'?" in json.dumps(log, ensure_ascii=False)


def test_the_offsets_dag_reads_nothing_until_it_is_switched_on(api: Api, airflow: tuple[str, Path]) -> None:
    runs = f"/api/v2/dags/{OFFSETS_DAG}/dagRuns"
    assert api.call("GET", f"/api/v2/dags/{OFFSETS_DAG}")[1]["is_paused"] is True
    assert api.call("GET", runs)[1]["total_entries"] == 0
    assert api.call("PATCH", f"/api/v2/dags/{OFFSETS_DAG}", {"is_paused": False})[0] == 200
    try:
        until = time.monotonic() + 300
        while not api.call("GET", runs)[1]["total_entries"]:
            assert time.monotonic() < until, "the scheduler began no run"
            time.sleep(1)
        run_id = api.call("GET", runs)[1]["dag_runs"][0]["dag_run_id"]
        assert api.wait(run_id, OFFSETS_DAG) == ("success", {"snapshot_offsets": "success"})
    finally:
        api.call("PATCH", f"/api/v2/dags/{OFFSETS_DAG}", {"is_paused": True})
    taken = {path.parent.name: path.parent for path in airflow[1].glob("offsets/kafka/*/manifest.json")}
    told = api.call("GET", f"/api/v2/assets/events?source_dag_id={OFFSETS_DAG}")[1]["asset_events"]
    (event,) = (one for one in told if one["source_run_id"] == run_id)
    assert (event["uri"], event["extra"]["cluster"]) == ("kafka-audit://offsets/kafka", "kafka")
    assert event["extra"]["groups"] > 0
    assert Sealed.open(taken[event["extra"]["snapshot_id"]]).problems() == []


def test_an_unreachable_cluster_ends_in_one_clear_error_and_no_snapshot(tmp_path: Path, airflow_database: AirflowDatabase) -> None:
    airflow_database.give(tmp_path / "audit-root")
    lines: list[str] = []
    outcome = run_audit_through_airflow(
        connection={"bootstrap.servers": "127.0.0.1:1"}, cluster="nowhere", root=tmp_path / "audit-root", progress=lines.append
    )
    assert (outcome.exit_code, outcome.verdict, outcome.report) == (1, "ERROR", None)
    assert len(outcome.reasons) == 1
    assert "127.0.0.1:1" in " ".join(outcome.reasons)
    assert not list((tmp_path / "audit-root").glob("evidence/*/*"))
    assert any(line.startswith("snapshot") and line.endswith("failed") for line in lines)
    assert outcome.log.is_file()

    wrong = run_audit_through_airflow(
        connection={"bootstrap.servers": "127.0.0.1:1", "bootstrap.severs": "x"},
        cluster="nowhere",
        root=tmp_path / "audit-root",
        progress=lines.append,
    )
    assert wrong.exit_code == 2
    assert "bootstrap.severs" in " ".join(wrong.reasons)
    assert processes_of(airflow_home(tmp_path / "audit-root")) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_audit_leaves_no_process_behind(
    tmp_path: Path, brokers: str, airflow_database: AirflowDatabase, number: signal.Signals
) -> None:
    airflow_database.give(tmp_path / "audit-root")
    script = f"""
from pathlib import Path
from kafka_audit.airflow.run_dag import run_audit_through_airflow
run_audit_through_airflow(connection={{"bootstrap.servers": {brokers!r}}}, cluster="kafka", root=Path({str(tmp_path / "audit-root")!r}),
    progress=lambda line: print(line, flush=True))
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert child.stdout is not None
    for line in child.stdout:
        if line.startswith("evidence_gate"):
            break
    home = airflow_home(tmp_path / "audit-root")
    until = time.monotonic() + 300
    while not any("spark-submit" in command or "SparkSubmit" in command for command in processes_of(home)):
        assert time.monotonic() < until, "no Spark job was started"
        time.sleep(0.2)
    child.send_signal(number)
    assert child.wait(timeout=120) != 0
    # Whoever is killed cannot wait; and until all of it is gone, its run is nobody's to end.
    if number == signal.SIGKILL and processes_of(home):
        with contextlib.suppress(CollectionError), only_one(home):
            assert processes_of(home) == []
    assert left_of(home, 60 if number == signal.SIGKILL else 0) == []
    with only_one(home), contextlib.closing(sqlite3.connect(home / "airflow.db")) as database:
        assert database.execute("SELECT state FROM dag_run").fetchall() == [("failed",)]
    assert not list((tmp_path / "audit-root").glob("audits/*/*/manifest.json"))
