"""The pages over clusters, as Airflow serves them: what they say of each kind of audit, where their links lead, and how lists are paged."""

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urljoin

import pytest
from overviews import DAG, NOW, begun, overview, sealed

from kafka_audit.index.overview import OVERVIEW, Overview
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, seal_audit

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db")]

CLUSTERS = ("orders", "payments", "void", "changed", "begun", "hostile")
HOSTILE = "<script>document.title='owned'</script>\u202e"


@pytest.fixture
def clusters(root: Path, monkeypatch: pytest.MonkeyPatch) -> EvidenceRoot:
    """A failed, a passed and a void audit, one whose index was changed, one that is not sealed, and one with hostile names."""
    monkeypatch.setenv("KAFKA_AUDIT_STALE_HOURS", "80000")  # the audits have a fixed date
    made = EvidenceRoot(path=root)
    sealed(made, overview("orders"))
    sealed(made, overview("payments", verdict="PASSED"))
    sealed(made, overview("void", verdict="VOID"))
    (sealed(made, overview("changed")).path / OVERVIEW).write_text("{}")
    begun(made, overview("begun"))
    sealed(made, overview("hostile", said=HOSTILE))
    return made


@pytest.fixture
def get(client, login):
    def ask(path: str, **headers: str):
        return client.get(f"/kafka-audit/{path}", headers={**login, **headers})

    return ask


@contextlib.contextmanager
def run_of(made: Overview, state: str) -> Iterator[None]:
    """Airflow has the run of the audit, in that state."""
    from airflow.models.dagrun import DagRun
    from airflow.utils.session import create_session
    from airflow.utils.types import DagRunTriggeredByType, DagRunType

    facts = {"run_type": DagRunType.MANUAL, "triggered_by": DagRunTriggeredByType.TEST, "state": state, "run_after": NOW}
    with create_session() as session:
        session.add(DagRun(dag_id=made.dag_id, run_id=made.run_id, **facts))
    try:
        yield
    finally:
        with create_session() as session:
            session.query(DagRun).filter(DagRun.run_id == made.run_id).delete()


def row(page: str, cluster: str) -> str:
    return next(one for one in page.split("<tr") if f'href="clusters/{cluster}/"' in one)


def test_each_cluster_says_what_its_newest_audit_is(get, clusters: EvidenceRoot) -> None:
    page = get("").text
    for cluster, words in {
        "orders": ("FAILED", "48,211 records", "142.0% used", "97.5%"),
        "payments": ("is-good", "PASSED", "none foreseen within a day"),
        "void": ("VOID", "not fit to judge", "not known"),
        "changed": ("UNUSABLE", "was changed after the audit was sealed"),
        "begun": ("NOT SEALED", "runs still, or was cut short"),
        "kafka": ("NO AUDIT",),
    }.items():
        assert [word for word in words if word not in row(page, cluster)] == [], cluster
    for cluster in ("void", "changed", "begun", "kafka"):
        assert "is-good" not in row(page, cluster)
        assert not re.search(r">\s*0(\.0%)?\s*<", row(page, cluster)), "what is not known is never 0"


def test_a_cluster_whose_schedule_stopped_is_stale_and_not_green(get, clusters: EvidenceRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_AUDIT_STALE_HOURS")
    payments = row(get("").text, "payments")
    assert ">stale<" in payments and "is-good" not in payments
    assert "Stale: the newest sealed audit is of 2026-11-20" in get("clusters/payments/").text


@pytest.mark.parametrize(("state", "words"), [("running", "is running."), ("failed", "was cut short: its run ended (failed)")])
def test_an_audit_that_is_not_sealed_runs_or_was_cut_short_as_airflow_says(get, clusters: EvidenceRoot, state: str, words: str) -> None:
    made = overview("begun")
    with run_of(made, state):
        for address in ("", "clusters/begun/", "clusters/begun/audits/"):
            assert f"Audit {made.audit_id} {words}" in get(address).text, address


def test_every_page_of_every_cluster_answers_and_hostile_names_stay_text(get, clusters: EvidenceRoot) -> None:
    addresses = ["", "waivers/", "matrix/", "audits/", *(f"clusters/{one}/{more}" for one in CLUSTERS for more in ("", "audits/"))]
    for address in addresses:
        page = get(address)
        assert page.status_code == 200, address
        assert "<script>document" not in page.text and "\u202e" not in page.text, address
    assert "&lt;script&gt;" in get("clusters/hostile/").text


def test_links_between_the_pages_are_relative_and_lead_to_pages(get, client, login, clusters: EvidenceRoot) -> None:
    seen: set[str] = set()
    with run_of(overview("orders"), "failed"):
        for address in ("", "waivers/", "matrix/", "audits/", "clusters/orders/", "clusters/orders/audits/"):
            for link in re.findall(r'href="([^"#]*)"', get(address).text):
                assert not link.startswith("/") and ":" not in link.split("/")[0], link
                seen.add(urljoin(f"/kafka-audit/{address}", link.replace("&amp;", "&")))
    # Groups, controls and topics have modules of their own; of the audits in the trend only the newest is there.
    elsewhere = re.compile(rf"/(groups|controls|topics)/|/audits/orders/(?!{overview('orders').audit_id})")
    ours = {one for one in seen if one.startswith("/kafka-audit/") and not elsewhere.search(one)}
    assert len(ours) > 10
    assert {one: client.get(one, headers=login).status_code for one in ours} == dict.fromkeys(ours, 200)
    outside = {one for one in seen if not one.startswith("/kafka-audit/")}
    assert "/" in outside
    assert any(one.startswith(f"/dags/{DAG}__orders/runs/scheduled__2026-11-20T22%3A15%3A00%2B00%3A00") for one in outside)


def test_no_link_leads_to_a_run_that_airflow_does_not_have(get, clusters: EvidenceRoot) -> None:
    for address in ("clusters/orders/", "clusters/orders/audits/"):
        assert "/runs/" not in get(address).text, address
    assert "not in Airflow" in get("clusters/orders/audits/").text


def test_within_a_tab_of_airflow_no_link_leads_out_of_the_pages(get, clusters: EvidenceRoot) -> None:
    for address in ("", "clusters/orders/", "clusters/orders/audits/"):
        framed = get(address, **{"Sec-Fetch-Dest": "iframe"})
        links = [urljoin(f"/kafka-audit/{address}", link) for link in re.findall(r'href="([^"]*)"', framed.text)]
        assert [link for link in links if not link.startswith("/kafka-audit/")] == []
        assert "Sec-Fetch-Dest" in framed.headers["vary"]


def test_the_audits_of_a_cluster_are_listed_page_by_page(get, clusters: EvidenceRoot) -> None:
    for hours in range(2, 60):
        sealed(clusters, overview("orders", age_hours=hours))
    seen: list[str] = []
    address: str | None = "clusters/orders/audits/"
    while address:
        page = get(address).text
        seen += re.findall(r"<code>([0-9TZ]+-[0-9a-f]+)</code>", page)
        older = re.search(r'href="(\?before=[^"]*)"', page)
        address = f"clusters/orders/audits/{older[1]}" if older else None
    assert len(seen) == 59
    assert seen == sorted(set(seen), reverse=True)


@pytest.mark.parametrize(
    ("address", "shown", "hidden"), [("?severity=critical", "TOP-04", "TOP-01"), ("?standing=fail_waived", "TOP-01", "TOP-04")]
)
def test_the_matrix_is_filtered_by_its_address(get, clusters: EvidenceRoot, address: str, shown: str, hidden: str) -> None:
    page = get(f"matrix/{address}").text
    assert shown in page and hidden not in page
    assert get("matrix/?severity=%3Cscript%3E&standing=x").status_code == 200


def test_waivers_are_listed_with_their_clusters_and_what_is_not_known_is_said(get, clusters: EvidenceRoot) -> None:
    page = get("waivers/?q=wv-04").text
    assert "wv-04" in page and "wv-02" not in page
    assert 'href="../clusters/orders/"' in page
    assert "Not known of 3 clusters" in page


def test_a_setting_that_cannot_be_used_is_named(get, clusters: EvidenceRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_STALE_HOURS", "a day")
    answer = get("")
    assert answer.status_code == 500
    assert "KAFKA_AUDIT_STALE_HOURS: &#39;a day&#39; is not usable: write a number of hours above 0" in answer.text


def test_the_page_of_an_audit_with_an_index_does_not_read_its_report(get, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kafka_audit.audit import listing

    made, one = EvidenceRoot(path=root), overview("orders")
    audit = begun(made, one)
    write_json(audit.path / OVERVIEW, one.model_dump(mode="json"))
    write_json(audit.report / "report.json", {"verdict": "FAILED"})
    seal_audit(made, "orders", one.audit_id, {})
    monkeypatch.setattr(listing, "MOST_OF_REPORT", 1)
    for address in (f"audits/orders/{one.audit_id}/", "audits/"):
        page = get(address).text
        assert "FAILED" in page and "NOT KNOWN" not in page
    (audit.report / "report.json").write_text('{"verdict": "PASSED"}')
    page = get(f"audits/orders/{one.audit_id}/").text
    assert "UNUSABLE" in page and "report.json: was changed after the audit was sealed" in page


def test_the_list_of_audits_shows_what_their_indexes_say_and_marks_samples(get, clusters: EvidenceRoot) -> None:
    sealed(clusters, overview("toys", sample=True))
    page = get("audits/").text
    rows = {cluster: next(one for one in page.split("<tr") if f'href="../clusters/{cluster}/"' in one) for cluster in (*CLUSTERS, "toys")}
    for cluster, words in {
        "orders": ("FAILED", "97.5%", "<td>yes</td>"),
        "payments": ("PASSED",),
        "void": ("VOID", "not known"),
        "begun": ("UNFINISHED", "<td>no</td>"),
        "toys": (">sample<",),
    }.items():
        assert [word for word in words if word not in rows[cluster]] == [], (cluster, rows[cluster])
    assert ">sample<" not in rows["orders"]
