"""The plugin: what loading it costs an Airflow process, and what its pages show to whom."""

import re
from base64 import b64encode
from datetime import datetime, timezone
from hashlib import sha256
from pathlib import Path

import pytest
from reviewed_audits import FailedAudit, kept

from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, seal_audit

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db")]

DAG = "kafka_reliability_audit"
AUDIT_ID = "20261120T231500Z-ab12cd34ab12cd34"
OLDER_ID = "20261119T231500Z-ab12cd34ab12cd34"
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture
def audits(root: Path) -> Path:
    """Two audits: an older one that failed in a step and has no report, and a sealed one with every file."""
    made = EvidenceRoot(path=root)
    failed = made.audit("kafka", OLDER_ID)
    write_json(failed.run_file, {"audit_id": OLDER_ID, "dag_id": DAG, "run_id": "older"})
    write_json(
        failed.path / "failures" / "snapshot.json", {"step": "snapshot", "exit_code": 1, "error": "x", "message": f"no broker {HOSTILE}"}
    )
    audit = made.audit("kafka", AUDIT_ID)
    write_json(audit.run_file, {"audit_id": AUDIT_ID, "dag_id": DAG, "run_id": "newer"})
    report = {"verdict": "FAILED", "coverage": {"ratio": 0.975}, "generated_at": "2026-11-20T23:16:00+00:00"}
    write_json(audit.report / "report.json", report)
    (audit.report / "report.html").write_text("<p>the report itself</p>", encoding="utf-8")
    (audit.report / "junit.xml").write_text("<testsuites/>", encoding="utf-8")
    (audit.gate / "data_docs").mkdir(parents=True)
    (audit.gate / "data_docs" / "index.html").write_text("<p>gates</p>", encoding="utf-8")
    (failed.path / "report").mkdir()
    for name in ("report.html", "report.json", "junit.xml"):
        (failed.path / "report" / name).symlink_to(root / "secret.html")
    (root / "secret.html").write_text("secret", encoding="utf-8")
    seal_audit(made, "kafka", AUDIT_ID, {})
    (audit.gate / "data_docs" / "outside.html").symlink_to(root / "secret.html")
    return root


def test_loading_plugins_does_not_replace_other_packages_modules() -> None:
    """Airflow would put every file below plugins/ into sys.modules under its stem, was it not for plugins/.airflowignore."""
    import sys

    import kafka
    from airflow import plugins_manager

    plugins_manager.ensure_plugins_loaded()
    assert "site-packages" in kafka.__file__
    assert sys.modules["kafka"] is kafka
    assert {"catalogue", "evidence", "policy", "snapshot", "report"}.isdisjoint(sys.modules)
    assert plugins_manager.get_import_errors() == {} if hasattr(plugins_manager, "get_import_errors") else True


def test_the_ui_accepts_the_plugin_with_its_menu_entry_and_its_tab(client, login) -> None:
    admin = client.post("/auth/token", json={"username": "admin", "password": "admin"}).json()["access_token"]
    listed = client.get("/api/v2/plugins", headers={"Authorization": f"Bearer {admin}"})
    assert listed.status_code == 200
    ours = [plugin for plugin in listed.json()["plugins"] if plugin["name"] == "kafka_audit"]
    assert len(ours) == 1
    views = {view["destination"]: view for view in ours[0]["external_views"]}
    assert set(views) == {"nav", "dag_run"}
    assert (views["nav"]["name"], views["nav"]["category"], views["nav"]["href"]) == ("Kafka reliability", "browse", "kafka-audit/")
    assert views["nav"]["url_route"] is None, "a link of its own tab: from Airflow's frame no link leads to Airflow's pages"
    errors = client.get("/api/v2/plugins/importErrors", headers={"Authorization": f"Bearer {admin}"}).json()
    assert errors["total_entries"] == 0


def test_every_route_of_the_plugin_refuses_who_is_not_logged_in(client, audits: Path) -> None:
    from kafka_audit.airflow.web.app import app

    routes = [route.path for route in app().routes]
    assert len(routes) >= 6
    values = {"cluster": "kafka", "audit_id": AUDIT_ID, "name": "report.json", "dag_id": "kafka_reliability_audit", "run_id": "r"}
    values |= {"control_id": "lag_within_sla", "review_id": AUDIT_ID}
    for path in routes:
        address = "/kafka-audit" + re.sub(r"\{(\w+)\}", lambda found: values[found.group(1)], path)
        for headers in ({}, {"Authorization": "Bearer forged"}):
            answer = client.get(address, headers=headers)
            # Airflow's own answer to a token that it did not sign is 403.
            assert answer.status_code == (403 if headers else 401), (address, answer.status_code)
            assert answer.headers["cache-control"] == "private, no-store"
            assert "report itself" not in answer.text


def test_there_are_no_public_api_pages(client, login) -> None:
    for path in ("docs", "redoc", "openapi.json"):
        assert client.get(f"/kafka-audit/{path}", headers=login).status_code == 404


def test_the_list_shows_the_newest_audit_first_with_verdict_and_coverage(client, login, audits: Path) -> None:
    page = client.get("/kafka-audit/audits/", headers=login)
    assert page.status_code == 200
    assert page.text.index(AUDIT_ID) < page.text.index(OLDER_ID)
    assert "97.5%" in page.text
    assert "FAILED" in page.text
    assert "2026-11-20 23:16:00" in page.text
    assert "ERROR" in page.text
    assert "not known" in page.text


def test_an_empty_folder_says_how_to_begin(client, login, root: Path) -> None:
    assert "There is no audit yet that you may read" in client.get("/kafka-audit/audits/", headers=login).text


def test_an_audits_page_shows_its_report_and_offers_its_files(client, login, audits: Path) -> None:
    page = client.get(f"/kafka-audit/audits/kafka/{AUDIT_ID}/", headers=login)
    for name in ("report.html", "report.json", "junit.xml", "data-docs/index.html"):
        assert f'"{name}"' in page.text
        assert client.get(f"/kafka-audit/audits/kafka/{AUDIT_ID}/{name}", headers=login).status_code == 200, name
    download = client.get(f"/kafka-audit/audits/kafka/{AUDIT_ID}/report.json", headers=login)
    assert download.headers["content-disposition"] == f'attachment; filename="kafka-{AUDIT_ID}-report.json"'
    assert download.json()["verdict"] == "FAILED"


@pytest.mark.parametrize("name", ["report/report.json", "report/report.html", "report/junit.xml", "gate/data_docs/index.html"])
def test_a_file_that_was_changed_after_the_audit_was_sealed_is_not_shown(client, login, audits: Path, name: str) -> None:
    forged = EvidenceRoot(path=audits).audit("kafka", AUDIT_ID).path / name
    forged.write_text('{"verdict": "PASSED", "forged": true}', encoding="utf-8")
    base = f"/kafka-audit/audits/kafka/{AUDIT_ID}"
    answer = client.get(f"{base}/{name.removeprefix('report/').replace('gate/data_docs', 'data-docs')}", headers=login)
    assert answer.status_code == 500
    assert f"This file is not shown: audits/kafka/{AUDIT_ID}/{name}: was changed after the audit was sealed." in answer.text
    page = client.get(f"{base}/", headers=login)
    assert page.status_code == 200
    assert not [one for one in (answer, page) if "forged" in one.text or "PASSED" in one.text]
    shown = name in ("report/junit.xml", "gate/data_docs/index.html")
    assert ("<iframe" in page.text, "UNUSABLE" in page.text) == (shown, not shown)


def test_an_audit_without_a_report_says_what_failed_and_hostile_text_stays_text(client, login, audits: Path) -> None:
    page = client.get(f"/kafka-audit/audits/kafka/{OLDER_ID}/", headers=login).text
    assert "Step snapshot failed: no broker" in page
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page


def test_nobody_is_told_where_the_audit_folder_lies(client, login, audits: Path) -> None:
    audit = EvidenceRoot(path=audits).audit("kafka", OLDER_ID)
    (audit.report / "report.json").unlink()
    (audit.report / "report.json").write_text("{", encoding="utf-8")
    step = {"step": "snapshot", "exit_code": 5, "error": "x", "message": f"cannot write {audit.path}/run.json"}
    write_json(audit.path / "failures" / "snapshot.json", step)
    for address in (f"audits/kafka/{OLDER_ID}/", "audits/"):
        assert str(audits) not in client.get(f"/kafka-audit/{address}", headers=login).text
    page = client.get(f"/kafka-audit/audits/kafka/{OLDER_ID}/", headers=login).text
    assert f"<li>audits/kafka/{OLDER_ID}/report/report.json: cannot be read as JSON" in page
    assert f"cannot write audits/kafka/{OLDER_ID}/run.json" in page


def test_no_page_may_run_other_scripts_or_load_anything(client, login, audits: Path) -> None:
    base = f"/kafka-audit/audits/kafka/{AUDIT_ID}"
    for address in ("/kafka-audit/audits/", f"{base}/", f"{base}/report.html", f"{base}/data-docs/index.html", f"{base}/junit.xml"):
        headers = client.get(address, headers=login).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy, address
        assert "unsafe" not in policy.replace("style-src 'unsafe-inline'", ""), address
        assert "frame-ancestors 'self'" in policy, address
        assert headers["x-content-type-options"] == "nosniff", address
    for address in (f"{base}/report.html", f"{base}/data-docs/index.html", f"{base}/junit.xml"):
        assert "script-src" not in client.get(address, headers=login).headers["content-security-policy"], address
    assert "sandbox" in client.get(f"{base}/report.html", headers=login).headers["content-security-policy"]


def test_pages_run_one_script_and_their_policy_has_the_hash_of_exactly_its_bytes(client, login, audits: Path) -> None:
    for address in ("", "audits/", "waivers/", "matrix/", "clusters/kafka/", "clusters/kafka/audits/", f"audits/kafka/{AUDIT_ID}/"):
        page = client.get(f"/kafka-audit/{address}", headers=login)
        assert page.status_code == 200, address
        (script,) = re.findall(r"<script>(.*?)</script>", page.text, re.S)
        assert "<script" not in page.text.replace("<script>", "", 1)
        digest = b64encode(sha256(script.encode()).digest()).decode()
        (sources,) = re.findall(r"script-src ([^;]*)", page.headers["content-security-policy"])
        assert sources == f"'sha256-{digest}'"


def test_words_that_would_reorder_or_hide_others_are_spelled_out(client, login, audits: Path) -> None:
    audit = EvidenceRoot(path=audits).audit("kafka", OLDER_ID)
    step = {"step": "snapshot", "exit_code": 1, "error": "x", "message": "one\u202ereversed\ntwo"}
    write_json(audit.path / "failures" / "snapshot.json", step)
    page = client.get(f"/kafka-audit/audits/kafka/{OLDER_ID}/", headers=login).text
    assert "one\\u202ereversed\ntwo" in page


def test_a_broken_note_or_report_of_one_audit_hides_no_other(client, login, audits: Path) -> None:
    audit = EvidenceRoot(path=audits).audit("kafka", OLDER_ID)
    (audit.path / "failures" / "snapshot.json").write_text("{")
    page = client.get("/kafka-audit/audits/", headers=login)
    assert page.status_code == 200
    assert AUDIT_ID in page.text
    assert OLDER_ID in page.text


@pytest.mark.parametrize(
    "path",
    [
        "audits/kafka/../secret.html",
        "audits/..%2f..%2fsecret/20261120T231500Z-ab12cd34ab12cd34/",
        "audits/kafka/..%2f..%2f..%2fsecret.html/",
        f"audits/kafka/{AUDIT_ID}/..%2frun.json",
        f"audits/kafka/{AUDIT_ID}/run.json",
        f"audits/kafka/{AUDIT_ID}/manifest.json",
        f"audits/kafka/{AUDIT_ID}/data-docs/..%2f..%2f..%2f..%2f..%2fsecret.html",
        f"audits/kafka/{AUDIT_ID}/data-docs/outside.html",
        f"audits/kafka/{AUDIT_ID}/data-docs/%00.html",
        "audits/kafka/20261120T231500Z-ffffffffffffffff/",
        f"audits/kafka/{OLDER_ID}/report.html",
        f"audits/kafka/{OLDER_ID}/report.json",
        f"audits/kafka/{OLDER_ID}/junit.xml",
        "audits/KAFKA/20261120T231500Z-ab12cd34ab12cd34/",
        "audits/kafka/x/",
    ],
)
def test_nothing_outside_the_reports_can_be_read(client, login, audits: Path, path: str) -> None:
    answer = client.get(f"/kafka-audit/{path}", headers=login)
    assert "secret" not in answer.text
    assert answer.status_code in (307, 404) or "text/html" in answer.headers["content-type"]
    assert "audit_id" not in answer.text


@pytest.mark.parametrize(("dag_id", "cluster"), [(DAG, "kafka"), (DAG, "demo"), (f"{DAG}__orders", "orders")])
def test_a_run_leads_to_its_audit(*, client, login, root: Path, dag_id: str, cluster: str) -> None:
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    from kafka_audit.audit.request import audit_id_of

    when = datetime(2026, 11, 20, 1, 2, 3, tzinfo=timezone.utc)
    run_id = "manual__2026-11-20T01:02:03+00:00"
    with create_session() as session:
        facts = {"run_type": DagRunType.MANUAL, "triggered_by": DagRunTriggeredByType.TEST, "state": "failed"}
        run = DagRun(dag_id=dag_id, run_id=run_id, run_after=when, **facts)
        session.add(run)
    try:
        address = f"/kafka-audit/dags/{dag_id}/runs/manual__2026-11-20T01%3A02%3A03%2B00%3A00"
        assert "has not begun its audit" in client.get(address, headers=login).text
        audit = EvidenceRoot(path=root).audit(cluster, audit_id_of(dag_id, run_id, when))
        write_json(audit.run_file, {"audit_id": audit.path.name, "dag_id": dag_id, "run_id": "another"})
        assert "has not begun its audit" in client.get(address, headers=login).text
        write_json(audit.run_file, {"audit_id": audit.path.name, "dag_id": dag_id, "run_id": run_id})
        answer = client.get(address, headers=login)
        assert answer.status_code == 307
        landed = client.get(address, headers=login, follow_redirects=True)
        assert landed.url.path == f"/kafka-audit/audits/{cluster}/{audit.path.name}/"
        assert audit.path.name in landed.text
        assert client.get(f"/kafka-audit/dags/{dag_id}/runs/other", headers=login).status_code == 404
    finally:
        with create_session() as session:
            session.query(DagRun).filter(DagRun.run_id == run_id).delete()


def test_the_gate_task_links_to_the_tab_of_its_run() -> None:
    from types import SimpleNamespace

    from kafka_audit.airflow.gate import ReportLink

    key = SimpleNamespace(dag_id="kafka_reliability_audit", run_id="manual__2026-11-20T01:02:03+00:00/x")
    link = ReportLink().get_link(None, ti_key=key)
    assert link == "/dags/kafka_reliability_audit/runs/manual__2026-11-20T01%3A02%3A03%2B00%3A00%2Fx/plugin/audit-report"


def test_the_waivers_that_an_acceptance_proposes_are_offered_unless_the_review_was_changed(client, login, root: Path) -> None:
    failed = FailedAudit(root, dag_id=DAG)
    review = failed.record(kept())
    page = f"/kafka-audit/audits/{failed.cluster}/{failed.audit.path.name}/"
    file = f"reviews/{review.name}/waivers.yaml"
    assert f'href="{file}"' in client.get(page, headers=login).text
    answer = client.get(page + file, headers=login)
    assert (answer.status_code, answer.content) == (200, (review / "waivers.yaml").read_bytes())
    assert "attachment" in answer.headers["content-disposition"]
    assert client.get(f"{page}reviews/other/waivers.yaml", headers=login).status_code == 404
    (review / "waivers.yaml").write_text("waivers: []", encoding="utf-8")
    assert file not in client.get(page, headers=login).text
    assert client.get(page + file, headers=login).status_code == 404
    (review / "manifest.json").write_text("{", encoding="utf-8")
    told = client.get(page, headers=login).text
    assert f"reviews/{failed.cluster}/{review.name}/manifest.json: cannot be read as JSON" in told
    assert str(root) not in told
