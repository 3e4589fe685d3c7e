"""The pages of groups, controls and topics, as Airflow serves them: their links, their pages, and who sees what."""

import re
from pathlib import Path
from urllib.parse import quote, urljoin

import pytest
from compared_audits import CLUSTER, TOPIC, Judged, Shop, row
from report_audit import HOSTILE_GROUPS

from kafka_audit.index.group_query import PAGE
from kafka_audit.store.durable_files import read_json, write_json

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db")]

BASE = f"/kafka-audit/clusters/{CLUSTER}/"


def sealed(shop: Shop, groups: list[str], dag_id: str = f"kafka_reliability_audit__{CLUSTER}", failures: int = 1) -> Judged:
    """The next audit of the shop's cluster, made by a run of that DAG."""
    topics = {"orders": 1, HOSTILE_GROUPS[1]: 1}
    judged = shop.judge([row(TOPIC, f"topic-{number:03}") for number in range(failures)], groups=groups, topics=topics)
    write_json(judged.audit.run_file, {**read_json(judged.audit.run_file), "dag_id": dag_id, "run_id": "r"})
    judged.seal()
    return judged


@pytest.fixture
def shop(root: Path) -> Shop:
    return Shop(root)


@pytest.fixture
def get(client, login):
    return lambda address: client.get(urljoin(BASE, address), headers=login)


def links(text: str, words: str) -> list[str]:
    """The addresses of links with these words."""
    found = re.findall(r'<a [^>]*href="([^"]*)"[^>]*>([^<]*)', text)
    return [address.replace("&amp;", "&") for address, said in found if said == words]


def test_pages_of_groups_belong_together_while_a_newer_audit_is_sealed(get, shop: Shop) -> None:
    names = [f"group-{number:03}" for number in range(PAGE)]
    first = sealed(shop, names)
    page = get("groups/?sort=name")
    assert page.status_code == 200
    assert f"101 groups of {CLUSTER}" in page.text, "and billing, which has commits"
    [after] = links(page.text, "Next page")
    assert first.id in after
    sealed(shop, ["another"])
    second = get(urljoin(f"{BASE}groups/", after))
    assert "group-099" in second.text and "group-098" not in second.text
    assert "A newer audit was sealed meanwhile" in second.text
    assert "another" in get("groups/").text
    assert 'rel="prev"' in second.text


def test_a_group_is_found_by_any_name_and_an_unknown_one_is_answered_in_words(get, shop: Shop) -> None:
    sealed(shop, [*HOSTILE_GROUPS])
    for name in (*HOSTILE_GROUPS, "billing"):
        page = get(f"groups/one?id={quote(name)}")
        assert page.status_code == 200, name
        assert "<script>document" not in page.text and "<img" not in page.text
        searched = get(f"groups/?q={quote(name)}").text
        assert f'href="one?id={quote(name)}"' in searched, name
    unknown = get("groups/one?id=nobody")
    assert unknown.status_code == 404 and "saw no such group" in unknown.text
    assert get(f"topics/one?name={quote(HOSTILE_GROUPS[1])}").status_code == 200
    assert get("topics/one?name=nothing").status_code == 404


def test_failures_of_a_control_are_paged_and_its_links_lead_somewhere(get, shop: Shop) -> None:
    audit = sealed(shop, ["billing"], failures=150)
    page = get(f"controls/{TOPIC.id}")
    assert page.status_code == 200 and "1 to 100 of 150" in page.text
    [after] = links(page.text, "Next page")
    assert audit.id in after and "topic-149" in get(urljoin(f"{BASE}controls/{TOPIC.id}", after)).text
    assert get(f"topics/one?name={quote('topic-007')}").status_code == 200
    for address in set(re.findall(r'href="([^"#?]+)"', page.text)):
        assert get(urljoin(f"{BASE}controls/{TOPIC.id}", address)).status_code in (200, 307), address
    assert get("controls/no_such_control").status_code == 404


def test_an_audit_of_a_dag_that_may_not_be_read_is_not_shown(get, shop: Shop) -> None:
    sealed(shop, ["mine"])
    sealed(shop, ["theirs"], dag_id="another_dag")
    page = get("groups/")
    assert "mine" in page.text and "theirs" not in page.text
    assert get("groups/one?id=theirs").status_code == 404
    assert get("controls/x").status_code == 404


def test_the_metrics_are_those_of_the_clusters_that_may_be_read(client, login, shop: Shop) -> None:
    sealed(shop, ["billing"])
    answer = client.get("/kafka-audit/metrics", headers=login)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert f'kafka_audit_up{{cluster="{CLUSTER}",evidence="offsets"}} 1.0' in answer.text
    assert answer.text.endswith("# EOF\n")
    assert client.get("/kafka-audit/metrics").status_code == 401
