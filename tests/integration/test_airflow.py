"""Two audits of a healthy cluster: the first by the command, the second by a real Airflow with scheduler, workers and UI, on the same folder."""

import json
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psutil
import pyarrow.parquet as pq
import pytest
from airflow_processes import belonging_to, left_of
from command_line import AirflowDatabase
from healthy_shop import CLUSTER, FirstAudit, first_audit

from kafka_audit.airflow.environment import airflow_home
from kafka_audit.audit.outcome import PASSED
from kafka_audit.sandbox.brokers import free_ports
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.chain import sealed_as
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.sealed import Sealed

pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.spark]
DAG = "kafka_reliability_audit"
OFFSETS_DAG = "kafka_offsets_snapshot"


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

    def has_loaded(self, dag_id: str, since: str) -> bool:
        """Whether Airflow has read the DAG's file since that time: it knows from its database the DAGs that it had before."""
        status, dag = self.call("GET", f"/api/v2/dags/{dag_id}")
        return status == 200 and str(dag["last_parsed_time"]) > since

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


class Running(NamedTuple):
    """The address of a running Airflow, its audit folder, and when it was started (UTC, ISO 8601)."""

    address: str
    root: Path
    since: str


@pytest.fixture(scope="module")
def first(healthy_cluster: Sandbox, airflow_database: AirflowDatabase, tmp_path_factory: pytest.TempPathFactory) -> FirstAudit:
    root = tmp_path_factory.mktemp("airflow") / "audit-root"
    airflow_database.give(root)
    return first_audit(healthy_cluster, root)


@pytest.fixture(scope="module")
def airflow(healthy_cluster: Sandbox, first: FirstAudit) -> Iterator[Running]:
    """Airflow on the folder of the first audit; nothing of it is left at the end."""
    from kafka_audit.airflow.standalone import running_airflow

    port, since = free_port(), datetime.now(timezone.utc).isoformat()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KAFKA_AUDIT_FOLDERS", str(first.policy.parent))
        with running_airflow(root=first.root, connection=healthy_cluster.audit_connection, port=port):
            yield Running(f"http://127.0.0.1:{port}", first.root, since)
    assert left_of(airflow_home(first.root), 30.0) == []


@pytest.fixture(scope="module")
def api(airflow: Running) -> Api:
    made = Api(airflow.address, "admin")
    until = time.monotonic() + 300
    while not all(made.has_loaded(dag_id, airflow.since) for dag_id in (DAG, OFFSETS_DAG)):
        assert time.monotonic() < until, "the DAGs were not loaded"
        time.sleep(1)  # the first parse of the DAG folder
    return made


@pytest.fixture(scope="module")
def second(api: Api, airflow: Running, first: FirstAudit) -> tuple[str, Path]:
    """A run of the scheduler's that has ended, and the folder of its audit."""
    run_id = api.trigger(policy_dir=str(first.policy))
    state, tasks = api.wait(run_id)
    assert (state, set(tasks.values())) == ("success", {"success"}), tasks
    one, other = sorted(airflow.root.glob(f"audits/{CLUSTER}/*/manifest.json"))
    assert one.parent == first.report.parents[1]
    return run_id, other.parent


def test_the_first_audit_ends_green_and_says_what_green_does_not_cover(first: FirstAudit) -> None:
    report = read_json(first.report)
    assert (report["verdict"], report["exit_code"]) == (PASSED, 0)
    assert {(one["code"], one["severity"]) for one in report["findings"] if one["status"] == "fail"} <= {("PRD-05", "medium")}
    (undeclared,) = [one for one in report["findings"] if one["code"] == "PRD-05"]
    assert "topics without a declared producer (clients.yaml), such as clickstream, customers" in undeclared["observed"]
    assert "groups without a declared consumer" in undeclared["observed"]
    reasons = {one["reason"].split(":")[0]: set(one["codes"]) for one in report["set_aside"]["listed"]}
    assert {"AUD-01", "CON-05", "GRP-02", "REP-05", "REP-07", "TOP-14", "TOP-15"} <= reasons["baseline taken"]
    assert {"CON-10", "CON-11", "PRD-03", "PRD-04", "TOP-08", "TOP-09"} <= reasons["not declared"]
    assert report["history"][0]["first_audit"] is True
    assert report["coverage"]["ratio"] >= 0.9


def test_airflow_listens_on_loopback_only(api: Api, airflow: Running) -> None:
    family = list(belonging_to(airflow_home(airflow.root)))
    listening = {each.laddr for one in family for each in one.net_connections() if each.status == psutil.CONN_LISTEN}
    assert {each.port for each in listening} >= {int(airflow.address.rpartition(":")[2])}
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


def test_a_healthy_cluster_is_audited_by_the_scheduler_and_the_audit_is_shown(api: Api, airflow: Running, second: tuple[str, Path]) -> None:
    run_id, audit = second
    assert Sealed.open(audit).problems() == []
    assert read_json(audit / "report" / "report.json")["verdict"] == PASSED

    seal = sealed_as(audit)
    assert seal is not None
    for task in ("report", "gate"):
        entry = f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances/{task}/xcomEntries/return_value"
        assert seal.manifest_sha256 in json.dumps(api.call("GET", entry)[1]), task

    page = f"/kafka-audit/dags/{DAG}/runs/{quote(run_id, safe='')}"
    assert Api(airflow.address, None).call("GET", page)[0] == 401
    status, text = Api(airflow.address, "viewer").call("GET", page)
    assert status == 200
    assert audit.name in text
    assert "PASSED" in text
    links = api.call("GET", f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances/gate/links")[1]
    assert links["extra_links"]["Audit report"] == f"/dags/{DAG}/runs/{quote(run_id, safe='')}/plugin/audit-report"


def test_the_second_audit_compares_with_the_first_and_takes_no_baseline(second: tuple[str, Path]) -> None:
    report = read_json(second[1] / "report" / "report.json")
    assert report["exit_code"] == 0
    assert report["history"][0]["first_audit"] is False
    assert not any(one["reason"].startswith("baseline taken") for one in report["set_aside"]["listed"])
    counts = {control["code"]: control["counts"] for control in report["controls"]}
    for code in ("AUD-01", "REP-05", "REP-07", "TOP-14", "TOP-15"):
        assert counts[code]["passed"] > counts[code]["failed"] == counts[code]["not_assessed"] == 0, code


def test_clearing_a_task_gives_the_same_audit(api: Api, second: tuple[str, Path]) -> None:
    run_id, audit = second
    before = result_of(audit)
    clear = {"dry_run": False, "dag_run_id": run_id, "task_ids": ["evidence_gate"], "include_downstream": True, "only_failed": False}
    status, answer = api.call("POST", f"/api/v2/dags/{DAG}/clearTaskInstances", clear)
    assert status == 200, answer
    state, tasks = api.wait(run_id)
    assert (state, set(tasks.values())) == ("success", {"success"}), tasks
    assert Sealed.open(audit).problems() == []
    assert result_of(audit) == before


def result_of(audit: Path) -> dict[str, Any]:
    """What an audit says: its rows, gates and report.

    Not its bytes: Spark lists a column's encodings in the footer of a Parquet file in any order, and the report names the files' hashes.
    """
    tables = {folder.relative_to(audit).as_posix(): pq.read_table(folder).to_pylist() for folder in audit.glob("*/*.parquet")}
    assert {"settings/findings.parquet", "settings/summary.parquet", "lag/findings.parquet", "lag/summary.parquet"} <= set(tables)
    documents = {name: read_json(audit / name) for name in ("run.json", "gate/evidence.json", "gate/findings.json", "report/report.json")}
    documents["report/report.json"].pop("audit_files")
    return {**tables, **documents}


def test_a_mistyped_parameter_turns_the_run_red_before_the_cluster_is_read(api: Api, airflow: Running) -> None:
    run_id = api.trigger(min_covrage=0.5)
    state, tasks = api.wait(run_id)
    assert state == "failed"
    assert (tasks["plan"], tasks["snapshot"], tasks["gate"]) == ("failed", "upstream_failed", "failed")
    log = api.call("GET", f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances/plan/logs/1?full_content=true")[1]
    assert "min_covrage: is not a parameter of kafka_reliability_audit; did you mean 'min_coverage'?" in json.dumps(log, ensure_ascii=False)


def test_the_offsets_dag_reads_nothing_until_it_is_switched_on(api: Api, airflow: Running) -> None:
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
    taken = {path.parent.name: path.parent for path in airflow.root.glob("offsets/kafka/*/manifest.json")}
    told = api.call("GET", f"/api/v2/assets/events?source_dag_id={OFFSETS_DAG}")[1]["asset_events"]
    (event,) = (one for one in told if one["source_run_id"] == run_id)
    assert (event["uri"], event["extra"]["cluster"]) == ("kafka-audit://offsets/kafka", "kafka")
    assert event["extra"]["groups"] > 0
    assert Sealed.open(taken[event["extra"]["snapshot_id"]]).problems() == []
