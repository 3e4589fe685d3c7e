"""Data Docs of both gates: they work offline, run no scripts, and show every verdict in words."""

import html
import re
from html.parser import HTMLParser

import pytest
import test_gate_evidence
import test_gate_findings
from gate_samples import CATALOGUE, HEALTHY, NOW, Case, findings_of, healthy_rows, judge, summary_of, write_audit, write_snapshot

from expectations.data_docs import build_docs, page, plain_body
from expectations.gate import judge_evidence, judge_findings
from expectations.suites import SHIPPED, load_suite
from kafka_audit.findings import Severity, Verdict
from kafka_audit.store.durable_files import read_json, write_json

LOADING = {"src", "href", "srcset", "data", "action", "poster", "background", "formaction"}


class Page(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.addresses = [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in LOADING]


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    """Both gates of an audit in which one rule passes, one fails, one is vacuous."""
    root = tmp_path_factory.mktemp("docs")
    snapshot = write_snapshot(root, healthy_rows())
    statuses = {**HEALTHY, "lag_within_sla": ["fail", "pass", "pass"]}
    audit = write_audit(root, summary_of(statuses), findings_of(statuses))
    judge_evidence(snapshot, audit.gate, now=NOW)
    judge_findings(audit, snapshot, audit.gate, fail_on=Severity.HIGH, min_coverage=0.9, controls=CATALOGUE)
    return audit.gate


def test_judging_twice_gives_the_same_result(tmp_path):
    snapshot = write_snapshot(tmp_path, healthy_rows())
    first = judge_evidence(snapshot, tmp_path / "gate", now=NOW)
    stored = (tmp_path / "gate" / "evidence.json").read_bytes()
    pages = {path.name for path in (tmp_path / "gate" / "data_docs").iterdir()}
    assert judge_evidence(snapshot, tmp_path / "gate", now=NOW) == first
    assert (tmp_path / "gate" / "evidence.json").read_bytes() == stored
    assert {path.name for path in (tmp_path / "gate" / "data_docs").iterdir()} == pages


@pytest.mark.parametrize("gate", ["evidence", "findings"])
def test_rules_that_fail_or_cannot_be_computed_are_shown_with_what_was_found(tmp_path, gate):
    if gate == "evidence":
        rows = healthy_rows()
        for rule_id, (make, _) in test_gate_evidence.MUTATIONS.items():
            if rule_id != "EVD-09":  # without brokers there is none that is silent
                getattr(make, "change", lambda _: None)(rows)
        result = test_gate_evidence.judge(tmp_path, rows=rows)
    else:
        case = Case()
        for make, *_ in test_gate_findings.MUTATIONS.values():
            getattr(make, "change", lambda _: None)(case)
        for row in case.summary:
            del row["errored"]
        result = judge(tmp_path, case)
    (page_of_all,) = tmp_path.rglob("data_docs/index.html")
    text = page_of_all.read_text()
    shown = [row for row in result.results if row.status in (Verdict.FAIL, Verdict.ERROR)]
    assert len(shown) > 8
    for row in shown:
        assert row.rule_id in text
        assert html.escape(row.detail) in text


def test_the_site_has_one_page_per_table_of_both_gates_and_links_to_each(out):
    pages = {path.name for path in (out / "data_docs").iterdir()}
    assert pages == {"index.html", "evidence-datasets.html", "evidence-snapshot.html", "findings-controls.html", "findings-totals.html"}
    assert set(Page((out / "data_docs" / "index.html").read_text()).addresses) == pages - {"index.html"}


def test_no_page_loads_or_runs_anything(out):
    for path in (out / "data_docs").iterdir():
        text = path.read_text()
        found = Page(text)
        assert not {"script", "link", "img", "iframe", "object", "form"} & set(found.tags)
        assert all(re.fullmatch(r"[a-z-]+\.html", address) for address in found.addresses)
        assert not re.search(r"https?:|//[a-z]|url\(|@import|\son[a-z]+=", text.partition("<body>")[0])
        assert "Content-Security-Policy" in text


def test_every_page_says_in_words_what_passed_and_what_failed(out):
    controls = (out / "data_docs" / "findings-controls.html").read_text()
    assert '<span class="FAIL">FAIL</span> Failed' in controls
    assert controls.count('<span class="PASS">PASS</span>') == 8
    assert "No finding fails at or above the severity limit, unless a waiver covers it." in controls


def test_the_index_gives_rule_ids_limits_and_hashes(out):
    text = (out / "data_docs" / "index.html").read_text()
    for name in ("evidence_fit", "findings_pass"):
        suite = load_suite(SHIPPED / f"{name}.json")
        assert suite.sha256 in text
        assert all(f">{rule.meta.rule_id}</td>" in text for rule in suite.expectations)
    assert "min_value=0.9" in text
    assert "CON-01 lag_within_sla (blocking_fails=1)" in text


def test_a_rule_that_tested_nothing_is_not_shown_as_passed(out, tmp_path):
    for name in ("evidence.json", "raw/evidence.json"):
        write_json(tmp_path / name, read_json(out / name))
    judged = read_json(tmp_path / "evidence.json")
    for row in judged["results"]:
        row["status"] = "VACUOUS"
    write_json(tmp_path / "evidence.json", judged)
    build_docs(tmp_path)
    assert ">PASS<" not in (tmp_path / "data_docs" / "evidence-datasets.html").read_text()
    index = (tmp_path / "data_docs" / "index.html").read_text()
    assert index.count('<span class="VACUOUS">VACUOUS</span>') == len(judged["results"])


def test_a_site_without_any_gate_says_so(tmp_path):
    assert "No gate has judged yet." in build_docs(tmp_path).read_text()


def test_hostile_values_are_text_in_every_page(out, tmp_path):
    hostile = "<script>alert(1)</script><img src=http://x.example/y onerror=alert(2)>{{ 7*7 }}$name"
    for name in ("evidence.json", "raw/evidence.json"):
        write_json(tmp_path / name, read_json(out / name))
    judged, raw = read_json(tmp_path / "evidence.json"), read_json(tmp_path / "raw" / "evidence.json")
    for row in judged["results"]:
        row.update(status="FAIL", detail=hostile, observed=hostile)
    for item in raw["tables"]["datasets"]["results"]:
        item["success"] = False
        item["expectation_config"]["description"] = hostile
        item["result"].update(
            unexpected_count=1, partial_unexpected_list=[hostile], partial_unexpected_counts=[{"value": hostile, "count": 1}]
        )
    write_json(tmp_path / "evidence.json", judged)
    write_json(tmp_path / "raw" / "evidence.json", raw)
    build_docs(tmp_path)
    for name in ("index.html", "evidence-datasets.html"):
        text = (tmp_path / "data_docs" / name).read_text()
        assert not {"script", "img"} & set(Page(text).tags)
        assert "&lt;script&gt;alert(1)" in text


@pytest.mark.parametrize(
    ("rendered", "expected"),
    [
        ("<p onclick='x()' style='background:url(http://x)'>a</p>", "<p>a </p>"),
        ("<SCRIPT src=//x>if (a<b) {}</SCRIPT>after", "after "),
        ("<svg><svg></svg><a href=http://x>in</a></svg>out", "out "),
        ("<a href='javascript:x'>text</a>", "text "),
        ("<i class='fas fa-check-circle text-success'></i>done", '<span class="PASS">PASS</span> done '),
        ("<div class='sticky'><div>menu</div></div><thead hidden><tr></tr></thead>kept", "kept "),
        ("a &lt;b&gt; &amp; c", "a &lt;b&gt; &amp; c "),
        ("<td colspan='2' rowspan='x\"'>1</td>", '<td colspan="2">1 </td>'),
    ],
)
def test_a_rendered_page_is_reduced_to_its_text_and_tables(rendered, expected):
    assert plain_body(rendered) == expected


def test_a_title_is_escaped():
    assert "<title>&lt;b&gt;</title>" in page("<b>", "")
