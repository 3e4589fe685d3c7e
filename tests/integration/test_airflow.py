"""Two audits of a healthy cluster: the first by the command, the second by a real Airflow with scheduler, workers and UI, on the same folder.

A person starts the second one in a browser, by a stricter gate, which it fails: so people are told, and a reviewer accepts the risk.
"""

import json
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import psutil
import pyarrow.parquet as pq
import pytest
from airflow_api import DAG, Api
from airflow_browser import Person
from airflow_processes import belonging_to, left_of
from chromium import NEEDS_BROWSER
from healthy_shop import CLUSTER, FirstAudit
from process_words import words_of
from receivers import HttpServer, MailServer, http_server, mail_server

from kafka_audit.airflow.environment import airflow_home
from kafka_audit.audit.outcome import FAILED, PASSED
from kafka_audit.audit.reviews import reviews_of
from kafka_audit.sandbox.brokers import free_ports
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.chain import sealed_as
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sealed import Sealed

pytestmark = [pytest.mark.airflow, pytest.mark.kafka, pytest.mark.spark, *NEEDS_BROWSER]
OFFSETS_DAG = "kafka_offsets_snapshot"


class Running(NamedTuple):
    """The address of a running Airflow, its audit folder, when it was started (UTC, ISO 8601), and who is told."""

    address: str
    root: Path
    since: str
    chat: HttpServer
    mail: MailServer


@pytest.fixture(scope="module")
def airflow(healthy_cluster: Sandbox, healthy_audit: FirstAudit) -> Iterator[Running]:
    """Airflow on the folder of the first audit; nothing of it is left at the end."""
    from kafka_audit.airflow.standalone import running_airflow

    port, since = free_ports(1)[0], datetime.now(timezone.utc).isoformat()
    with http_server() as chat, mail_server() as mail:
        smtp = {"from_email": "audit@example.com", "to": "ops@example.com", "disable_ssl": True, "disable_tls": True}
        settings = {
            "KAFKA_AUDIT_FOLDERS": str(healthy_audit.policy.parent),
            "KAFKA_AUDIT_ON_FAIL": "review",
            "KAFKA_AUDIT_NOTIFY": "ops_chat,ops_mail",
            "AIRFLOW_CONN_OPS_CHAT": json.dumps({"conn_type": "apprise", "extra": {"config": {"path": f"json://127.0.0.1:{chat.port}"}}}),
            "AIRFLOW_CONN_OPS_MAIL": json.dumps({"conn_type": "smtp", "host": "127.0.0.1", "port": mail.port, "extra": smtp}),
        }
        with running_airflow(root=healthy_audit.root, connection=healthy_cluster.audit_connection, port=port, settings=settings):
            yield Running(f"http://127.0.0.1:{port}", healthy_audit.root, since, chat, mail)
    assert left_of(airflow_home(healthy_audit.root), 30.0) == []


@pytest.fixture(scope="module")
def api(airflow: Running) -> Api:
    made = Api(airflow.address, "admin")
    for dag_id in (DAG, OFFSETS_DAG):
        made.wait_for_dag(dag_id, airflow.since)  # the first parse of the DAG folder
    return made


@pytest.fixture(scope="module")
def person(airflow: Running, api: Api, browser: Any) -> Person:
    return Person(browser, airflow.address, "admin")


@pytest.fixture(scope="module")
def second(api: Api, airflow: Running, healthy_audit: FirstAudit, person: Person) -> tuple[str, Path]:
    """A run that a person started by the form, whose gate has ended and whose review waits, and the folder of its audit."""
    person.start_audit(policy_dir=str(healthy_audit.policy), fail_on="medium or worse")
    until = time.monotonic() + 300
    while not (runs := api.call("GET", f"/api/v2/dags/{DAG}/dagRuns?order_by=-run_after&run_type=manual")[1]["dag_runs"]):
        assert time.monotonic() < until, "the form started no run"
        time.sleep(1)
    person.leave()
    run_id = str(runs[0]["dag_run_id"])
    assert runs[0]["conf"]["fail_on"] == "medium"
    api.wait_for_task(run_id, "review", "awaiting_input")
    api.wait_for_task(run_id, "gate", "failed")
    one, other = sorted(airflow.root.glob(f"audits/{CLUSTER}/*/manifest.json"))
    assert one.parent == healthy_audit.report.parents[1]
    return run_id, other.parent


def test_the_first_audit_ends_green_and_says_what_green_does_not_cover(healthy_audit: FirstAudit) -> None:
    report = read_json(healthy_audit.report)
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


def test_an_audit_that_is_started_by_the_form_is_sealed_published_and_shown(api: Api, airflow: Running, second: tuple[str, Path]) -> None:
    run_id, audit = second
    assert Sealed.open(audit).problems() == []
    report = read_json(audit / "report" / "report.json")
    assert (report["verdict"], report["exit_code"]) == (FAILED, 3)
    assert {one["code"] for one in report["findings"] if one["status"] == "fail"} == {"PRD-05"}

    seal = sealed_as(audit)
    assert seal is not None
    entry = f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances/report/xcomEntries/return_value"
    assert seal.manifest_sha256 in json.dumps(api.call("GET", entry)[1])
    told = api.call("GET", f"/api/v2/assets/events?source_dag_id={DAG}&source_task_id=publish")[1]["asset_events"]
    (event,) = (one for one in told if one["source_run_id"] == run_id)
    assert (event["uri"], event["extra"]["verdict"], event["extra"]["audit_id"]) == (f"kafka-audit://audits/{CLUSTER}", FAILED, audit.name)

    page = f"/kafka-audit/dags/{DAG}/runs/{quote(run_id, safe='')}"
    assert Api(airflow.address, None).call("GET", page)[0] == 401
    status, text = Api(airflow.address, "viewer").call("GET", page)
    assert status == 200
    assert audit.name in text
    assert "FAILED" in text
    links = api.call("GET", f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances/gate/links")[1]
    assert links["extra_links"]["Audit report"] == f"/dags/{DAG}/runs/{quote(run_id, safe='')}/plugin/audit-report"


def test_the_second_audit_compares_with_the_first_and_takes_no_baseline(second: tuple[str, Path]) -> None:
    report = read_json(second[1] / "report" / "report.json")
    assert report["history"][0]["first_audit"] is False
    assert not any(one["reason"].startswith("baseline taken") for one in report["set_aside"]["listed"])
    counts = {control["code"]: control["counts"] for control in report["controls"]}
    for code in ("AUD-01", "REP-05", "REP-07", "TOP-14", "TOP-15"):
        assert counts[code]["passed"] > counts[code]["failed"] == counts[code]["not_assessed"] == 0, code


def test_people_are_told_by_chat_and_by_mail_that_the_gate_failed(api: Api, airflow: Running, second: tuple[str, Path]) -> None:
    api.wait_for_task(second[0], "tell", "success")
    (body,) = airflow.chat.bodies
    assert f"Kafka cluster {CLUSTER}" in body["message"] and "FAILED" in body["message"]
    page = f"{airflow.address}/kafka-audit/clusters/{CLUSTER}/"
    assert page in body["message"]
    ((recipients, mail),) = airflow.mail.mails
    assert recipients == ["ops@example.com"]
    assert page in str(mail.get_body(("html",)))


def stop_the_spark_task(airflow: Running) -> None:
    """Tell the supervisor of the task that runs a Spark job to stop, as Kubernetes does with a pod that it evicts."""
    home, words, until = airflow_home(airflow.root), {"kafka_audit.airflow.guard", "spark-submit"}, time.monotonic() + 300
    while not (guards := [one for one in belonging_to(home) if words <= set(words_of(one))]):
        assert time.monotonic() < until, "no Spark job was started"
        time.sleep(0.2)
    _, supervisor, *_ = guards[0].parents()
    supervisor.terminate()


def test_clearing_a_task_gives_the_same_audit_and_asks_again_although_one_task_is_told_to_stop(
    api: Api, airflow: Running, second: tuple[str, Path]
) -> None:
    run_id, audit = second
    before = result_of(audit)
    clear = {"dry_run": False, "dag_run_id": run_id, "task_ids": ["evidence_gate"], "include_downstream": True, "only_failed": False}
    status, answer = api.call("POST", f"/api/v2/dags/{DAG}/clearTaskInstances", clear)
    assert status == 200, answer
    stop_the_spark_task(airflow)
    api.wait_for_task(run_id, "review", "awaiting_input", tries=2)
    api.wait_for_task(run_id, "gate", "failed", tries=2)
    api.wait_for_task(run_id, "tell", "success", tries=2)
    tasks = api.call("GET", f"/api/v2/dags/{DAG}/dagRuns/{quote(run_id)}/taskInstances")[1]["task_instances"]
    assert {one["task_id"]: one["try_number"] for one in tasks if one["try_number"] > 2} == {"verify": 3}
    assert Sealed.open(audit).problems() == []
    assert result_of(audit) == before
    assert len(airflow.chat.bodies) == len(airflow.mail.mails) == 1, "nothing has changed, so nothing is told"


def wait_until_the_question_was_handed_over(airflow: Running, run_id: str, *, tries: int) -> None:
    """Return when the scheduler has heard that the process which asked has ended.

    It hears of it seconds after the task became ``awaiting_input``. When an answer comes in between, Airflow 3.3.2 takes the end of that
    process for the end of the task, whose state is ``queued`` by then, and marks the task as failed.
    """
    heard = f"task_id='review', run_id='{run_id}', try_number={tries}"
    log, until = airflow_home(airflow.root) / "standalone.log", time.monotonic() + 300
    while not any("Received executor event" in line and heard in line for line in log.read_text(errors="replace").splitlines()):
        assert time.monotonic() < until, f"the scheduler did not hear of {heard}"
        time.sleep(0.5)


def test_a_reviewer_accepts_the_risk_in_the_browser_and_the_verdict_stays(
    api: Api, airflow: Running, person: Person, second: tuple[str, Path]
) -> None:
    run_id, audit = second
    wait_until_the_question_was_handed_over(airflow, run_id, tries=2)
    expires = (datetime.now(timezone.utc) + timedelta(days=20)).date().isoformat()
    person.approve(run_id, reason="The owners declare their clients this month", ticket="OPS-7", expires=expires, owner="shop team")
    state, tasks = api.wait(run_id)
    person.leave()
    assert (state, tasks["review"], tasks["record_review"], tasks["gate"]) == ("failed", "success", "success", "failed")
    (review,) = reviews_of(EvidenceRoot(path=airflow.root), CLUSTER, audit.name)
    assert review.accepts and review.record is not None and review.record.reviewer is not None
    assert (review.record.reviewer.id, review.record.ticket, review.record.waivers) == ("admin", "OPS-7", 1)
    assert read_json(audit / "report" / "report.json")["verdict"] == FAILED
    shown = person.open(f"audits/{CLUSTER}/{audit.name}/")
    assert "Risk accepted" in shown and "OPS-7" in shown and FAILED in shown


def test_every_page_is_found_from_the_menu_and_no_link_is_dead(
    airflow: Running, person: Person, second: tuple[str, Path], browser: Any
) -> None:
    assert person.menu_entry() == f"{airflow.address}/kafka-audit/"
    person.leave()
    viewer = Person(browser, airflow.address, "viewer")
    viewer.leave()
    found = list(viewer.every_page())
    assert [one for one in found if one[1] != 200] == []
    paths = {path.split("?")[0] for path, _ in found}
    for wanted in ("matrix/", "waivers/", f"clusters/{CLUSTER}/", f"clusters/{CLUSTER}/groups/", f"clusters/{CLUSTER}/groups/one"):
        assert wanted in paths, sorted(paths)
    assert any("/controls/" in path for path in paths) and any("/topics/one" in path for path in paths)
    assert "Audit now" not in viewer.open(f"clusters/{CLUSTER}/"), "a viewer may not start runs"
    assert "Audit now" in person.open(f"clusters/{CLUSTER}/")


def test_groups_are_searched_and_sorted_in_the_browser(person: Person, second: tuple[str, Path]) -> None:
    person.open(f"clusters/{CLUSTER}/groups/")
    rows = person.page.locator("tbody tr").count()
    assert rows > 3
    person.page.get_by_role("searchbox").fill("zzz-no-such-group")
    person.page.keyboard.press("Enter")
    person.page.wait_for_url("**q=zzz-no-such-group**")
    assert person.page.locator("tbody tr").count() < rows
    assert person.errors == []


def test_prometheus_reads_the_metrics_with_a_token(airflow: Running, second: tuple[str, Path]) -> None:
    assert Api(airflow.address, None).call("GET", "/kafka-audit/metrics")[0] == 401
    status, text = Api(airflow.address, "viewer").call("GET", "/kafka-audit/metrics")
    assert status == 200
    assert f'kafka_audit_verdict{{cluster="{CLUSTER}",verdict="FAILED"}} 1' in text
    assert text.rstrip().endswith("# EOF")


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
