"""CSV, OpenMetrics, Markdown and JUnit are accepted by readers that are not ours, keep every status, and show hostile names as text."""

import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import urllib.request
from html import unescape
from pathlib import Path
from urllib.parse import urljoin

import duckdb
import pytest
from lag_rows import group_sla, series_table, sla_table
from lxml import etree
from markdown_it import MarkdownIt
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from report_audit import HOSTILE_GROUPS, FakeAudit, control, finding, group_partition

from kafka_audit.report import Report, csv_findings, html, junit, markdown, openmetrics, read_report
from kafka_audit.report.csv_findings import cell
from kafka_audit.report.pdf import content

TOPIC = control("replication_factor_sufficient", "TOP-01")
GROUP = control("lag_within_sla", "CON-01", subject="group")
# The schema that Jenkins' xUnit plugin checks JUnit files with; pytest tests its own with it and carries it in its source distribution.
XSD_OF = "pytest-9.2.0.tar.gz"
XSD = "pytest-9.2.0/testing/example_scripts/junit-10.xsd"


@pytest.fixture
def fake(tmp_path: Path) -> FakeAudit:
    made = FakeAudit(tmp_path, (TOPIC, GROUP))
    made.settings(
        [finding(TOPIC, "orders", "fail"), finding(TOPIC, "=1+1", "pass"), finding(TOPIC, "dark", "not_assessed", reason="TIMEOUT")]
    )
    partitions = [group_partition(group, "t", 0, lost=1, lag=7, time_to_loss_ms=1000) for group in HOSTILE_GROUPS]
    slas = sla_table([group_sla(group) for group in HOSTILE_GROUPS])
    made.lag([finding(GROUP, group, "fail") for group in HOSTILE_GROUPS], partitions, group_slas=slas, lag_series=series_table([]))
    made.gates()
    return made


@pytest.fixture
def report(fake: FakeAudit) -> Report:
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


def csv_file(fake: FakeAudit, to: Path) -> Path:
    with to.open("wb") as file:
        csv_findings.write(fake.audit.path, (), file)
    return to


def test_duckdb_reads_a_row_for_each_finding_with_its_status(fake: FakeAudit, tmp_path: Path) -> None:
    path = csv_file(fake, tmp_path / "findings.csv")
    rows = duckdb.sql(f"select status, count(*) from read_csv('{path}', all_varchar = true) group by all order by all").fetchall()
    assert rows == [("fail", 1 + len(HOSTILE_GROUPS)), ("not_assessed", 1), ("pass", 1)]
    names = duckdb.sql(f"select group_id from read_csv('{path}', all_varchar = true) where group_id is not null").fetchall()
    assert sorted(name for (name,) in names) == sorted(map(cell, HOSTILE_GROUPS))


def test_no_cell_of_the_csv_is_computed_by_a_spreadsheet_or_breaks_its_line(fake: FakeAudit, tmp_path: Path) -> None:
    text = csv_file(fake, tmp_path / "findings.csv").read_text("utf-8-sig")
    assert len(text.splitlines()) == 1 + 3 + len(HOSTILE_GROUPS)
    assert [cell(name) for name in ("=1", "+1", "-1", "@x", "\t=1", "a=1", "\uff1d1")] == [
        "'=1",
        "'+1",
        "'-1",
        "'@x",
        "\\t=1",
        "a=1",
        "'\uff1d1",
    ]
    assert [cell(name) for name in (" =1", '"=1', "a;=1", 'a; "@x', "a;\uff1d1", "a; b=1", "a-1")] == [
        "' =1",
        "'\"=1",
        "a;'=1",
        "a;' \"@x",
        "a;'\uff1d1",
        "a; b=1",
        "a-1",
    ]
    path = tmp_path / "findings.csv"
    cells = duckdb.sql(f"select columns(*) from read_csv('{path}', all_varchar = true)").fetchall()
    assert [one for row in cells for one in row if one and one[0] in "=+-@\t\r"] == []


def test_a_waived_failure_stays_a_failure_in_the_csv(tmp_path: Path) -> None:
    made = FakeAudit(tmp_path, (TOPIC,))
    made.settings(
        [finding(TOPIC, "a", "fail", waiver="W-1"), finding(TOPIC, "b", "fail", waiver="W-2"), finding(TOPIC, "c", "pass", waiver="W-1")]
    )
    written = io.BytesIO()
    csv_findings.write(made.audit.path, ("W-1",), written)
    (tmp_path / "f.csv").write_bytes(written.getvalue())
    rows = duckdb.sql(f"select resource, status, waived from read_csv('{tmp_path}/f.csv', all_varchar = true) order by all").fetchall()
    assert rows == [("a", "fail", "true"), ("b", "fail", "false"), ("c", "pass", "false")]


def samples(text: str) -> dict[tuple[str, ...], float]:
    """(name, label values without the cluster) -> value."""
    families = list(text_string_to_metric_families(text))
    return {
        (one.name, *(one.labels[key] for key in one.labels if key != "cluster")): one.value for family in families for one in family.samples
    }


def test_the_metrics_are_openmetrics_with_verdict_coverage_loss_and_budget(report: Report) -> None:
    found = samples(openmetrics.render(report))
    assert found["kafka_audit_verdict", "FAILED"] == 1
    assert found["kafka_audit_verdict", "PASSED"] == 0
    assert found["kafka_audit_exit_code",] == 3
    assert found["kafka_audit_coverage_ratio",] == report.counts.assessed / report.counts.applicable
    assert found["kafka_audit_results", "not_assessed"] == 1
    assert found["kafka_audit_lost_records",] == len(HOSTILE_GROUPS)
    lags = {key: value for key, value in found.items() if key[0] == "kafka_audit_group_lag_records"}
    assert len(lags) == len(HOSTILE_GROUPS)
    assert set(lags.values()) == {7}
    assert any(key[0] == "kafka_audit_sla_error_budget_left_seconds" for key in found)


def test_two_names_that_look_alike_are_two_series(tmp_path: Path) -> None:
    made = FakeAudit(tmp_path, (GROUP,))
    names = ("a\u200b", "a\\u200b", "a\n", 'a\\n"')
    made.lag([finding(GROUP, name, "pass") for name in names], [group_partition(name, "t", 0, lag=1) for name in names])
    made.settings([])
    made.gates()
    found = samples(openmetrics.render(read_report(*made.inputs.args, **made.inputs.kwargs)))
    assert sum(key[0] == "kafka_audit_group_lag_records" for key in found) == len(names)


def test_what_is_not_known_is_no_metric_of_0(tmp_path: Path) -> None:
    made = FakeAudit(tmp_path, (TOPIC,))
    found = samples(openmetrics.render(read_report(*made.inputs.args, **made.inputs.kwargs)))
    assert {key[0] for key in found} == {"kafka_audit_verdict", "kafka_audit_exit_code", "kafka_audit_evidence_timestamp_seconds"}
    assert found["kafka_audit_verdict", "PASSED"] == 0


def test_the_summary_says_verdict_loss_and_the_worst_controls_and_escapes_names(report: Report) -> None:
    text = markdown.render(report)
    assert text.startswith("## \N{CROSS MARK} Kafka reliability audit of ")
    assert "**Loss:** Up to 7 records" in text
    assert "| critical | TOP-01 " in text or "| high | TOP-01 " in text
    assert "<script" not in text.replace("\\<", "")
    assert not any(character in text for character in "\u202e\u2066\u200b\x1b\x00\u034f\U000e0100")
    table = [line for line in text.splitlines() if line.startswith("| ")]
    assert all(line.count("|") - line.count("\\|") == 5 for line in table)


def test_the_summary_calls_a_broker_a_broker(tmp_path: Path) -> None:
    broker = control("topic_creation_defaults_safe", "BRK-01", subject="broker")
    made = FakeAudit(tmp_path, (broker,))
    made.settings([finding(broker, number, "fail") for number in "12"])
    made.gates()
    text = markdown.render(read_report(*made.inputs.args, **made.inputs.kwargs))
    assert next(line for line in text.splitlines() if "BRK-01 " in line).endswith("| 2 | broker 1, broker 2 |")


@pytest.mark.parametrize(
    "name",
    [
        "@octo/team",
        "pay@example.com",
        "a@-b.com",
        "xmpp:a@b.com",
        "shop/orders#12",
        "gh-12",
        "https://@a.example",
        ":tada:",
        "`@a`",
        "@`@a",
    ],
)
def test_a_name_mentions_nobody_and_becomes_no_link_in_the_summary(name: str) -> None:
    """GitHub looks for mentions, mail addresses and issues in the rendered text, where backslashes are gone, but not in code."""
    page = MarkdownIt("gfm-like").render(markdown.plain(name))
    assert unescape(re.sub(r"<[^>]+>", "", page)).strip() == name
    outside = unescape(re.sub(r"<[^>]+>", "", re.sub(r"<code>.*?</code>", " ", page)))
    assert "<a " not in page
    assert not re.search(r"@[\w.-]|#\d|\bgh-\d|://|:\w+:", outside, re.IGNORECASE)


def test_a_summary_of_a_void_audit_is_not_green_and_says_that_loss_is_not_known(tmp_path: Path) -> None:
    made = FakeAudit(tmp_path, (TOPIC,))
    text = markdown.render(read_report(*made.inputs.args, **made.inputs.kwargs))
    assert "\N{WHITE HEAVY CHECK MARK}" not in text
    assert "void" in text
    assert "**Loss:** Whether records were lost is not known: verify left no lag results." in text


@pytest.fixture
def unfit(tmp_path: Path) -> Report:
    """A void audit in which one control fails and another passes."""
    made = FakeAudit(tmp_path, (TOPIC, GROUP))
    made.settings([finding(TOPIC, "a")])
    made.lag([finding(GROUP, "g", "pass")], [group_partition("g", "a", 0)])
    made.gates(evidence=("FAIL", 4), findings=("PASS", 0))
    return read_report(*made.inputs.args, **made.inputs.kwargs)


def test_a_void_audit_has_no_passed_test_and_no_figure_and_its_failures_are_called_hints(unfit: Report) -> None:
    passed = [case.get("name") for case in etree.fromstring(junit.render(unfit).encode()).iter("testcase") if not len(case)]
    assert passed == ["findings gate"]
    names = {key[0] for key in samples(openmetrics.render(unfit))}
    assert names == {"kafka_audit_verdict", "kafka_audit_exit_code", "kafka_audit_evidence_timestamp_seconds"}
    hint = "The evidence is not fit to judge, so these are hints, not results."
    assert markdown.render(unfit).index(hint) < markdown.render(unfit).index("| critical | TOP")
    page = html.render(unfit)
    assert page.count(hint) == 2
    assert '<rect class="pass"' not in page
    front = content(unfit)["front"]
    assert isinstance(front, dict)
    assert front["verdict"]["hints"] == hint


def test_of_a_severity_of_which_nothing_was_assessed_no_number_of_failures_is_known(tmp_path: Path) -> None:
    made = FakeAudit(tmp_path, (TOPIC, GROUP))
    made.settings([finding(TOPIC, "a", "pass")])
    made.lag([])
    made.gates(findings=("PASS", 0))
    found = samples(openmetrics.render(read_report(*made.inputs.args, **made.inputs.kwargs)))
    assert {key: value for key, value in found.items() if key[0] == "kafka_audit_failed_results"} == {
        ("kafka_audit_failed_results", "critical"): 0
    }


@pytest.fixture(scope="module")
def jenkins_schema(tmp_path_factory: pytest.TempPathFactory) -> etree.XMLSchema:
    with tarfile.open(fileobj=io.BytesIO(_source_distribution("pytest", XSD_OF))) as archive:
        found = archive.extractfile(XSD)
        assert found is not None
        return etree.XMLSchema(etree.parse(found))


def _source_distribution(package: str, file: str) -> bytes:
    """A source distribution from the package index that pip uses, checked by the sha256 in constraints.txt."""
    asked = subprocess.run([sys.executable, "-m", "pip", "config", "get", "global.index-url"], capture_output=True, text=True, check=False)
    index = os.environ.get("PIP_INDEX_URL") or asked.stdout.strip() or "https://pypi.org/simple"
    page = urllib.request.Request(f"{index.rstrip('/')}/{package}/", headers={"Accept": "application/vnd.pypi.simple.v1+json"})
    with urllib.request.urlopen(page, timeout=600) as answer:
        address = next(one["url"] for one in json.load(answer)["files"] if one["filename"] == file)
    with urllib.request.urlopen(urljoin(page.full_url, address), timeout=600) as answer:
        content: bytes = answer.read()
    assert hashlib.sha256(content).hexdigest() in (Path(__file__).parents[2] / "constraints.txt").read_text()
    return content


def test_jenkins_accepts_the_junit_file_and_refuses_another(jenkins_schema: etree.XMLSchema, report: Report) -> None:
    made = etree.fromstring(junit.render(report).encode())
    assert jenkins_schema.validate(made), jenkins_schema.error_log
    made[0].set("surprise", "1")
    assert not jenkins_schema.validate(made)
