"""What every format says if earlier audits are there and cannot be compared with, and of failures that are gone and were not assessed."""

import json
import shutil
from pathlib import Path

import pytest
from compared_audits import BROKER, TOPIC, Shop, row
from test_report_html import Page

from kafka_audit.report import Report, html, markdown, pdf, sarif
from kafka_audit.report.ocsf import as_ocsf
from kafka_audit.report.oscal import as_oscal
from kafka_audit.report.pdf import front


def without_comparison(root: Path, how: str) -> Report:
    """A report whose only earlier audit was void, or was deleted."""
    shop = Shop(root)
    first = shop.audit([row(TOPIC, "orders")], evidence=("FAIL", 4) if how == "void" else ("PASS", 0))
    if how == "deleted":
        shutil.rmtree(first.audit.path)
    return shop.judge([row(TOPIC, "orders")]).read()


@pytest.fixture(params=["void", "deleted"])
def report(tmp_path: Path, request: pytest.FixtureRequest) -> Report:
    return without_comparison(tmp_path, request.param)


def test_the_page_says_that_nothing_was_compared_and_why_and_counts_nothing(report: Report) -> None:
    words = Page(html.render(report)).text
    assert "First audit" not in words
    assert "0 new" not in words
    assert "Since the previous audit Not known" in words
    assert "Not compared Nothing was compared, so nothing is called new or resolved." in words
    assert "was passed over: it was void" in words or "no longer there" in words


def test_the_summary_counts_nothing_that_was_not_compared(report: Report) -> None:
    said = markdown.render(report)
    assert "0 new" not in said
    assert "**Since the previous audit:** not known." in said


def test_no_file_for_programs_names_an_audit_that_was_not_compared_with(report: Report) -> None:
    run = sarif.as_sarif(report)["runs"][0]
    assert "baselineGuid" not in run
    assert {"comparedWith", "changes"} & run["properties"].keys() == set()
    assert run["properties"]["notCompared"]
    facts = as_ocsf(report)[0]["unmapped"]
    assert facts["compared_with_audit"].startswith("none: ")
    assert "changes" not in facts
    assert "compared-with-audit" not in json.dumps(as_oscal(report))


def test_the_pdf_prints_that_nothing_was_compared(report: Report) -> None:
    said = front.content(report)
    assert said["previous"] is None
    assert said["changes"]["possible"] is False
    assert pdf.render(report).startswith(b"%PDF")


def test_a_failure_on_a_topic_that_was_deleted_is_resolved_and_never_a_pass(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.audit([row(TOPIC, "orders"), row(BROKER, "1")])
    found = shop.judge([row(BROKER, "1", "pass")]).read()
    events = {one["resources"][0]["name"]: one for one in as_ocsf(found) if one["metadata"]["event_code"] == "resolved"}
    assert {name: one["compliance"]["status"] for name, one in events.items()} == {"orders": "Not Applicable", "1": "Pass"}
    gone = "failed in the previous audit, and is gone: the topic no longer exists, and nothing was assessed"
    assert gone in events["orders"]["message"]
    absent = [one["message"]["text"] for one in sarif.as_sarif(found)["runs"][0]["results"] if one.get("baselineState") == "absent"]
    assert len(absent) == 2
    assert sum("the topic no longer exists" in text for text in absent) == 1
    assert "assessed again and pass, or whose topic no longer exists" in Page(html.render(found)).text


def test_a_pass_of_a_topic_that_was_created_again_closes_the_failure_of_the_old_one(tmp_path: Path) -> None:
    shop = Shop(tmp_path)
    shop.audit([row(TOPIC, "orders")], topics={"orders": 1}, topic_ids={"orders": "old"})
    found = shop.judge([row(TOPIC, "orders", "pass")], topics={"orders": 1}, topic_ids={"orders": "new"}).read()
    [event] = [one for one in as_ocsf(found) if one["metadata"]["event_code"] == "resolved"]
    gone = "is gone: the topic was deleted and created again under the same name, and the new one passes."
    assert event["message"].endswith(gone)
    assert event["compliance"]["status"] == "Not Applicable"
