"""Who sees which audit if rights are granted per DAG."""

import json
import os
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from granted_runs import AUDIT, GRANTED

from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db")]

WHEN = datetime(2026, 11, 20, 1, 2, 3, tzinfo=timezone.utc)
RUN_ID = "manual__2026-11-20T01:02:03+00:00"
MADE_BY = {"orders": f"{AUDIT}__orders", "payments": f"{AUDIT}__payments", "kafka": AUDIT}
"""The clusters of the tests and the DAG that made the audit of each."""
SEEN = {"orders": {"orders"}, "payments": {"payments"}, "plain": {"kafka"}, "offsets": set(), "nothing": set(), "all": set(MADE_BY)}
NAMES = ("", "report.html", "report.json", "junit.xml", "data-docs/index.html")


@pytest.fixture(scope="module")
def get(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Any]]:
    """Airflow's own web application with that auth manager; asks for an address as a user, or as nobody."""
    from airflow.api_fastapi.app import create_app, purge_cached_app
    from fastapi.testclient import TestClient

    passwords = tmp_path_factory.mktemp("users") / "passwords.json"
    passwords.write_text(json.dumps({name: name for name in GRANTED}), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AIRFLOW__CORE__AUTH_MANAGER", "per_dag_rights.PerDagRights")
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_USERS", ",".join(f"{name}:viewer" for name in GRANTED))
        patch.setenv("AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE", str(passwords))
        purge_cached_app()
        with TestClient(create_app(apps="core"), base_url="http://testserver", follow_redirects=False) as client:
            tokens: dict[str, str] = {}

            def ask(user: str | None, path: str = "audits/") -> Any:
                if user and user not in tokens:
                    answer = client.post("/auth/token", json={"username": user, "password": user})
                    tokens[user] = answer.json()["access_token"]
                return client.get(f"/kafka-audit/{path}", headers={"Authorization": f"Bearer {tokens[user]}"} if user else {})

            yield ask
        purge_cached_app()


def audit_id(cluster: str) -> str:
    from kafka_audit.audit.request import audit_id_of

    return audit_id_of(MADE_BY[cluster], RUN_ID, WHEN)


@pytest.fixture
def audits(root: Path) -> Path:
    """One audit of each cluster, whose every file says whose it is."""
    for cluster, dag_id in MADE_BY.items():
        audit = EvidenceRoot(path=root).audit(cluster, audit_id(cluster))
        write_json(audit.run_file, {"dag_id": dag_id, "run_id": RUN_ID})
        write_json(audit.report / "report.json", {"verdict": f"of {cluster}", "coverage": {"ratio": 1}})
        (audit.report / "report.html").write_text(f"of {cluster}", encoding="utf-8")
        (audit.report / "junit.xml").write_text(f"of {cluster}", encoding="utf-8")
        (audit.gate / "data_docs").mkdir(parents=True)
        (audit.gate / "data_docs" / "index.html").write_text(f"of {cluster}", encoding="utf-8")
    return root


@pytest.fixture
def runs() -> Iterator[None]:
    """In Airflow's database, the run of each DAG that made an audit."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    facts = {"run_type": DagRunType.MANUAL, "triggered_by": DagRunTriggeredByType.TEST, "state": "failed"}
    with create_session() as session:
        for dag_id in MADE_BY.values():
            session.add(DagRun(dag_id=dag_id, run_id=RUN_ID, run_after=WHEN, **facts))
    yield
    with create_session() as session:
        session.query(DagRun).filter(DagRun.run_id == RUN_ID).delete()


@pytest.mark.usefixtures("audits")
@pytest.mark.parametrize("user", GRANTED)
def test_the_list_has_the_audits_of_the_dags_whose_runs_the_user_may_read(get, user: str) -> None:
    page = get(user)
    assert page.status_code == 200
    assert {cluster for cluster in MADE_BY if f"of {cluster}" in page.text} == SEEN[user]
    assert {cluster for cluster in MADE_BY if audit_id(cluster) in page.text} == SEEN[user]
    assert ("There is no audit yet that you may read" in page.text) == (not SEEN[user])


@pytest.mark.usefixtures("audits")
@pytest.mark.parametrize("user", GRANTED)
def test_every_page_and_file_of_any_other_audit_is_answered_like_one_that_does_not_exist(get, user: str) -> None:
    for cluster in MADE_BY:
        for name in NAMES:
            answer = get(user, f"audits/{cluster}/{audit_id(cluster)}/{name}")
            if cluster in SEEN[user]:
                assert answer.status_code == 200, (cluster, name)
                assert f"of {cluster}" in answer.text
            else:
                missing = get(user, f"audits/{cluster}/20200101T000000Z-0000000000000000/{name}")
                assert (
                    (answer.status_code, answer.text) == (missing.status_code, missing.text) == (404, '{"detail":"there is no such audit"}')
                )
                assert answer.headers["cache-control"] == "private, no-store"


@pytest.mark.usefixtures("audits", "runs")
@pytest.mark.parametrize("user", GRANTED)
def test_a_run_leads_only_its_readers_to_its_audit(get, user: str) -> None:
    for cluster, dag_id in MADE_BY.items():
        answer = get(user, f"dags/{dag_id}/runs/{RUN_ID.replace('+', '%2B')}")
        missing = get(user, f"dags/{dag_id}/runs/no-such-run")
        assert missing.status_code == 404
        if cluster in SEEN[user]:
            assert answer.status_code == 307
            assert answer.headers["location"] == f"../../../audits/{cluster}/{audit_id(cluster)}/"
        else:
            assert (answer.status_code, answer.text) == (404, missing.text)


@pytest.mark.usefixtures("audits", "runs")
def test_who_is_not_logged_in_is_told_so_everywhere(get) -> None:
    addresses = [
        "",
        "waivers/",
        "matrix/",
        *(f"clusters/{cluster}/" for cluster in MADE_BY),
        *(f"dags/{dag_id}/runs/{RUN_ID}" for dag_id in MADE_BY.values()),
    ]
    addresses += [f"audits/{cluster}/{audit_id(cluster)}/{name}" for cluster in MADE_BY for name in NAMES]
    assert {get(None, address).status_code for address in addresses} == {401}


@pytest.mark.usefixtures("audits")
@pytest.mark.parametrize("user", GRANTED)
def test_the_pages_over_clusters_show_only_those_of_which_the_user_may_read_an_audit(get, user: str) -> None:
    for address in ("", "?order=name", "waivers/", "matrix/"):
        page = get(user, address)
        assert page.status_code == 200, address
        named = {cluster for cluster in MADE_BY if f"clusters/{cluster}/" in page.text}
        # These audits have no index, so the matrix has no row and no column.
        assert named == (set() if address == "matrix/" else SEEN[user]), address
    for cluster in MADE_BY:
        for address in (f"clusters/{cluster}/", f"clusters/{cluster}/audits/"):
            answer, missing = get(user, address), get(user, address.replace(cluster, "no-such"))
            assert (missing.status_code, missing.text) == (404, '{"detail":"there is no such cluster"}')
            if cluster in SEEN[user]:
                assert answer.status_code == 200, address
                assert audit_id(cluster) in answer.text
            else:
                assert (answer.status_code, answer.text) == (404, missing.text), address


@pytest.mark.usefixtures("audits")
@pytest.mark.parametrize("user", GRANTED)
def test_metrics_and_the_pages_of_places_are_of_clusters_of_which_the_user_may_read_an_audit(get, user: str) -> None:
    answer = get(user, "metrics")
    assert answer.status_code == 200
    assert {cluster for cluster in MADE_BY if f'cluster="{cluster}"' in answer.text} == SEEN[user]
    for cluster in set(MADE_BY) - SEEN[user]:
        for place in ("groups/", "groups/one?id=g", "controls/c", "topics/one?name=t"):
            found, missing = (get(user, f"clusters/{name}/{place}") for name in (cluster, "no-such"))
            assert (found.status_code, found.text) == (missing.status_code, missing.text) == (404, '{"detail":"there is no such cluster"}')


@pytest.mark.usefixtures("audits")
def test_audit_now_is_offered_only_to_who_may_start_runs(get, monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager

    assert "Audit now" not in get("orders", "clusters/orders/").text
    monkeypatch.setattr(SimpleAuthManager, "is_authorized_dag", lambda *_, **__: True)
    assert f'href="../../../dags/{AUDIT}__orders"' in get("orders", "clusters/orders/").text


@pytest.mark.usefixtures("audits")
def test_a_right_that_is_taken_away_is_gone_with_the_next_request(get, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"audits/orders/{audit_id('orders')}/report.html"
    assert get("orders", address).status_code == 200
    monkeypatch.setitem(GRANTED, "orders", set())
    assert get("orders", address).status_code == 404
    assert audit_id("orders") not in get("orders").text


@pytest.mark.parametrize(
    "run",
    [
        None,
        "{",
        "[]",
        {},
        {"dag_id": None},
        {"dag_id": [f"{AUDIT}__orders"]},
        {"dag_id": ""},
        {"dag_id": "kafka_offsets_snapshot__orders"},
        {"dag_id": f"{AUDIT}__payments"},
    ],
    ids=str,
)
def test_an_audit_that_does_not_say_which_of_its_clusters_dags_made_it_is_shown_to_nobody(get, audits: Path, run: Any) -> None:
    """The name of the DAG is a file among the evidence: forged, it must not open a cluster's audit to the readers of another."""
    file = EvidenceRoot(path=audits).audit("orders", audit_id("orders")).run_file
    file.unlink()
    if run is not None:
        file.write_text(run if isinstance(run, str) else json.dumps({"run_id": RUN_ID, **run}), encoding="utf-8")
    for user in ("all", "orders", "payments", "plain"):
        assert get(user, f"audits/orders/{audit_id('orders')}/").status_code == 404
        assert audit_id("orders") not in get(user).text


@pytest.mark.parametrize("linked", ["cluster", "audit", "run.json"])
def test_a_link_among_the_audits_opens_no_other_clusters_audit(get, audits: Path, linked: str) -> None:
    here, there = EvidenceRoot(path=audits).audit("kafka", audit_id("kafka")), EvidenceRoot(path=audits).audit("mirror", audit_id("kafka"))
    target, link = {
        "cluster": (here.path.parent, there.path.parent),
        "audit": (here.path, there.path),
        "run.json": (here.run_file, there.run_file),
    }[linked]
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)
    assert get("plain", f"audits/kafka/{audit_id('kafka')}/").status_code == 200
    assert get("plain", f"audits/mirror/{audit_id('kafka')}/").status_code == 404
    assert "mirror" not in get("plain").text


def test_the_list_stays_short_and_says_when_it_is_not_whole(root: Path) -> None:
    from kafka_audit.audit import listing

    made = EvidenceRoot(path=root)
    for number in range(30):
        for cluster, dag_id in (("orders", f"{AUDIT}__orders"), ("payments", AUDIT)):
            write_json(made.audit(cluster, f"20261120T2315{number:02}Z-ab12cd34ab12cd34").run_file, {"dag_id": dag_id, "run_id": "r"})

    def listed(dag_ids: set[str], **limits: int) -> tuple[list[str], bool]:
        found = listing.newest_audits(made, dag_ids.__contains__, **limits)
        return [f"{audit.cluster} {audit.audit_id[13:15]}" for audit in found.audits], found.cut

    assert listed({f"{AUDIT}__orders"}, limit=3) == (["orders 29", "orders 28", "orders 27"], True)
    assert listed({AUDIT}, limit=2) == (["payments 29", "payments 28"], True)
    assert listed({AUDIT, f"{AUDIT}__orders"}, limit=2) == (["payments 29", "orders 29"], True)
    everything, cut = listed({f"{AUDIT}__orders"}, limit=30)
    assert (len(everything), cut) == (30, False)
    # The audits of orders are looked at too: one by the plain DAG could be among them. Beyond the limit it is said, not hidden.
    assert listed({AUDIT}, looked_at=10) == ([f"payments {number}" for number in (29, 28, 27, 26, 25)], True)
    assert listed(set()) == ([], False)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("run.json", '{"a":' * 100_000),
        ("report/report.json", '{"a":' * 100_000),
        ("report/report.json", '{"coverage": {"ratio": 1' + "0" * 400 + "}}"),
        ("report/report.json", '{"coverage": {"ratio": NaN}}'),
        ("report/report.json", '{"verdict": "\\ud800"}'),
        ("failures/report.json", '{"a":' * 100_000),
    ],
    ids=["deep run", "deep report", "huge ratio", "no ratio", "half a character", "deep failure"],
)
def test_one_broken_audit_takes_no_other_from_the_list(get, audits: Path, file: str, content: str) -> None:
    broken = EvidenceRoot(path=audits).audit("orders", audit_id("orders")).path / file
    broken.parent.mkdir(exist_ok=True)
    broken.write_text(content, encoding="utf-8")
    page = get("all")
    assert page.status_code == 200
    assert all(f"of {cluster}" in page.text for cluster in ("payments", "kafka"))
    assert (audit_id("orders") in page.text) == (file != "run.json")


def test_an_audit_or_a_cluster_that_may_not_be_read_takes_no_other_from_the_list(
    root: Path, monkeypatch: pytest.MonkeyPatch, audits: Path
) -> None:
    from kafka_audit.audit import listing

    made, real_lstat, real_stat, real_listdir = EvidenceRoot(path=root), Path.lstat, Path.stat, os.listdir
    private, closed = made.audit("orders", audit_id("orders")).path, audits / "audits" / "payments"

    def looked(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(path: Path, **how: bool) -> Any:
            if private in path.parents:
                raise PermissionError(path)  # as for a folder of mode 0700 of another user; the tests may run as root
            return real(path, **how)

        return call

    def listdir(path: Any = ".") -> Any:
        if path == closed:
            raise PermissionError(path)
        return real_listdir(path)

    monkeypatch.setattr(Path, "lstat", looked(real_lstat))
    monkeypatch.setattr(Path, "stat", looked(real_stat))
    monkeypatch.setattr(os, "listdir", listdir)
    assert [found.cluster for found in listing.newest_audits(made, lambda _: True).audits] == ["kafka"]
