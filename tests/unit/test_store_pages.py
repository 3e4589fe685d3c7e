"""Pages, metrics and commands show of a root in a store what they show of a folder, on a machine that has written nothing of it."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from object_store import ObjectStore
from sample_template import sample_template
from test_audit_check import said

from expectations.gate import judge_evidence, judge_findings
from kafka_audit.airflow.web.newest import read_cluster
from kafka_audit.audit.listing import find_audit, newest_audits, readable_clusters
from kafka_audit.index.read import newest_index
from kafka_audit.index.shown import without_root
from kafka_audit.report.metrics.page import render_metrics
from kafka_audit.sample.day import Day
from kafka_audit.sample.story import ORDERS
from kafka_audit.sample.write import Gates, _Chain, write_history
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sealed import AUDIT

pytestmark = pytest.mark.usefixtures("without_data_docs")

NOW = datetime(2026, 11, 26, 9, 30, tzinfo=timezone.utc)
TOLD = replace(ORDERS, first=19)
GATES = Gates(evidence=judge_evidence, findings=judge_findings)


@pytest.fixture(scope="module")
def roots(object_store: ObjectStore, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[EvidenceRoot, str]]:
    """The same audits in a folder, and at a URL."""
    template = sample_template(EvidenceRoot(path=tmp_path_factory.mktemp("template") / "root"))
    folder = EvidenceRoot(path=tmp_path_factory.mktemp("folder"))
    write_history(template, folder, TOLD, GATES, NOW)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in object_store.environment.items():
            patch.setenv(name, value)
        patch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path_factory.mktemp("writer")))
        url = object_store.new_root()
        chain = _Chain(template, EvidenceRoot.at(url), TOLD, GATES, NOW)
        for number in TOLD.days:
            patch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path_factory.mktemp("writer")))
            chain._root = EvidenceRoot.at(url)  # each audit on another machine
            chain.add(Day(cluster=TOLD, number=number, now=NOW), docs=False)
        patch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path_factory.mktemp("reader")))
        yield folder, url


def test_the_same_steps_make_the_same_audits(roots: tuple[EvidenceRoot, str]) -> None:
    folder, url = roots
    place = EvidenceRoot.at(url)
    ids = place.sealed_ids(TOLD.name, AUDIT)
    assert ids == folder.sealed_ids(TOLD.name, AUDIT)
    for audit_id in ids:
        local, here = folder.audit(TOLD.name, audit_id), place.bring_audit(TOLD.name, audit_id)
        for name in (
            "settings/findings.parquet",
            "lag/findings.parquet",
            "index/failures.parquet",
            "index/groups.parquet",
            "gate/findings.json",
        ):
            files = [path.relative_to(local.path) for path in ([*(local.path / name).rglob("*")] or [local.path / name]) if path.is_file()]
            assert files
            assert [(here.path / one).read_bytes() for one in files] == [(local.path / one).read_bytes() for one in files]


def test_lists_pages_and_metrics_are_the_same(roots: tuple[EvidenceRoot, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, url = roots
    monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(tmp_path))
    place = EvidenceRoot.at(url)
    everything = lambda _: True  # noqa: E731
    assert readable_clusters(place, everything) == [TOLD.name]
    listed, expected = newest_audits(place, everything), newest_audits(folder, everything)
    assert [(one.audit_id, one.verdict, one.coverage, one.sealed) for one in listed.audits] == [
        (one.audit_id, one.verdict, one.coverage, one.sealed) for one in expected.audits
    ]
    found = [newest_index(root, TOLD.name) for root in (place, folder)]
    assert found[0] is not None and found[1] is not None
    assert found[0].overview == found[1].overview
    assert found[0].groups() == found[1].groups()
    known = [read_cluster(root, TOLD.name, everything, dag_id=None, now=NOW, limit=timedelta(hours=26)) for root in (place, folder)]
    assert known[0] is not None and known[1] is not None
    assert (known[0].verdict, known[0].problem, known[0].evidence_at) == (known[1].verdict, "", known[1].evidence_at)
    assert [one.has_report for one in listed.audits] == [True] * len(listed.audits)
    assert not (listed.audits[0].folder / "report" / "report.html").exists()  # a list copies no report
    page = find_audit(place, TOLD.name, listed.audits[0].audit_id, everything)
    assert page is not None
    report = page.file("report", "report.html")
    assert report is not None and report.stat().st_size > 10_000
    metrics = [re.sub(r".*(duration|seconds|age).*\n", "", render_metrics(root, [TOLD.name])) for root in (place, folder)]
    assert metrics[0] == metrics[1]
    assert "kafka_audit" in metrics[0]


def test_a_page_does_not_say_where_the_store_or_its_copies_lie(roots: tuple[EvidenceRoot, str]) -> None:
    _, url = roots
    place = EvidenceRoot.at(url)
    for where in (url, place.path):
        assert without_root(place, f"{where}/audits/a/report.json: is missing") == "audits/a/report.json: is missing"


def test_commands_take_the_url_of_an_audit(roots: tuple[EvidenceRoot, str], tmp_path: Path) -> None:
    folder, url = roots
    *_, before, newest = folder.sealed_ids(TOLD.name, AUDIT)
    audit = f"{url}/audits/{TOLD.name}/{newest}"
    assert "intact:" in said("verify", audit)
    said("report", audit, "--formats", "json,junit", "--to", tmp_path / "report")
    local = tmp_path / "local"
    said("report", folder.audit(TOLD.name, newest).path, "--formats", "json,junit", "--to", local)
    assert (tmp_path / "report" / "junit.xml").read_bytes() == (local / "junit.xml").read_bytes()
    assert "manifest sha256" in said("export", audit, "--to", tmp_path / "audit.zip")
    assert said("diff", before, newest, "--root", url, "--cluster", TOLD.name, code=3) == said(
        "diff", before, newest, "--root", folder.path, "--cluster", TOLD.name, code=3
    )
    assert said("diff", f"{url}/audits/{TOLD.name}/{before}", audit, code=3)
    assert f"{TOLD.name}: FAILED" in said("fleet", "--root", url, "--to", tmp_path / "fleet", "--formats", "csv")
