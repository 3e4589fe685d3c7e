"""No format says that nothing is lost, that something is near its loss, that all was assessed, or that a control passes, unless it is so."""

import time
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from lag_rows import group_sla, sla_table
from report_audit import FakeAudit, control, finding, group_partition
from test_report_html import Page
from test_report_small_formats import samples

from kafka_audit.findings import EvidenceClass
from kafka_audit.report import Report, html, junit, markdown, openmetrics, pdf, read_report, words
from kafka_audit.report.control_status import Standing, standing
from kafka_audit.report.ocsf import as_ocsf
from kafka_audit.report.oscal import as_oscal
from kafka_audit.report.pdf import appendix, front
from kafka_audit.report.snapshot_view import Broker

HOUR = 3_600_000
DAY = 24 * HOUR
TOPIC = control("durable_topics", "TOP-01")
GROUP = control("lag_within_sla", "CON-01", subject="group")
REHEARSED = control("restore_rehearsed", "OPS-02", subject="cluster", evidence=EvidenceClass.MANUAL)
NO_RATES = {"lag": 5, "consumed_per_s": None}
UNREAD = {"lag": None, "lost": None, "committed": None, "has_commit": None}


def read(root: Path, partitions: list[dict[str, object]]) -> Report:
    fake = FakeAudit(root, (GROUP,))
    fake.settings([])
    fake.lag([], partitions)
    fake.gates()
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


def first_screen(report: Report) -> str:
    page = html.render(report)
    return Page(page[page.index("<header") : page.index("</header>")]).text


def test_a_loss_in_weeks_is_not_about_to_happen(tmp_path: Path) -> None:
    said = first_screen(read(tmp_path, [group_partition("a", "t", 0, lag=9, consumed_per_s=1.0, time_to_loss_ms=20 * DAY)]))
    assert "About to be lost None in a day The first in 20 d: t-0, unread by a, at the rates seen." in said


def test_a_group_that_catches_up_before_its_records_are_deleted_loses_nothing(tmp_path: Path) -> None:
    catches_up = {"lag": 9, "consumed_per_s": 2.0, "time_to_loss_ms": 3 * HOUR, "catch_up_ms": HOUR}
    report = read(tmp_path, [group_partition("a", "t", 0, **catches_up)])
    assert (report.lag.loss.within_a_day, report.lag.loss.next, report.lag.groups[0].time_to_loss_ms) == (0, (), None)
    later = {**catches_up, "catch_up_ms": 4 * HOUR}
    assert read(tmp_path / "b", [group_partition("a", "t", 0, **later)]).lag.loss.within_a_day == 1


@pytest.mark.parametrize(
    ("partitions", "said"),
    [
        ([NO_RATES], "Of 1 partition with unread records the rates are not known, so no loss can be foreseen there."),
        ([UNREAD, {}], "Of 1 partition it is not known whether records were lost."),
    ],
)
def test_loss_that_is_not_known_is_said_where_loss_is(tmp_path: Path, partitions: list[dict[str, object]], said: str) -> None:
    report = read(tmp_path, [group_partition("a", "t", number, **one) for number, one in enumerate(partitions)])
    assert words.loss_not_known(report.lag) == said
    assert said in markdown.render(report)
    assert front.content(report)["loss_unknown"] == said
    assert pdf.render(report).startswith(b"%PDF")


def test_no_loss_is_said_only_of_the_partitions_of_which_it_is_known(tmp_path: Path) -> None:
    lag = read(tmp_path, [group_partition("a", "t", 0), group_partition("a", "t", 1, **UNREAD)]).lag
    assert words.no_loss(lag) == "No record was deleted unread on 1 partition, and none is foreseen to be within a day."
    assert words.no_loss(read(tmp_path / "b", [group_partition("a", "t", 0, **UNREAD)]).lag) == ""
    assert "No group was seen that reads a partition in scope" in words.no_loss(read(tmp_path / "c", []).lag)


def test_without_lag_results_the_summary_says_that_loss_is_not_known(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (TOPIC,))
    fake.settings([finding(TOPIC, "orders", "pass")])
    fake.gates()
    report = read_report(*fake.inputs.args, **fake.inputs.kwargs)
    assert "**Loss:** Whether records were lost is not known: verify left no lag results." in markdown.render(report)


def test_rates_that_are_not_known_are_no_sign_that_nothing_is_near_its_loss(tmp_path: Path) -> None:
    said = first_screen(read(tmp_path, [group_partition("a", "t", 0, **NO_RATES)]))
    assert "About to be lost None known Of 1 partition with unread records the rates are not known." in said


def test_no_offsets_are_no_loss_of_none(tmp_path: Path) -> None:
    text = Page(html.render(read(tmp_path, [group_partition("a", "t", 0, **UNREAD)]))).text
    assert "Not known Of no partition the offsets are known that would show it." in text


def test_a_loss_of_0_that_is_not_known_is_no_metric(tmp_path: Path) -> None:
    found = samples(openmetrics.render(read(tmp_path, [group_partition("a", "t", 0), group_partition("b", "t", 0, **UNREAD)])))
    assert ("kafka_audit_lost_records",) not in found
    assert ("kafka_audit_partitions_losing_within_a_day",) not in found
    assert ("kafka_audit_group_lost_records", "b") not in found
    assert found["kafka_audit_group_lost_records", "a"] == 0
    found = samples(openmetrics.render(read(tmp_path / "b", [group_partition("a", "t", 0, **NO_RATES)])))
    assert ("kafka_audit_partitions_losing_within_a_day",) not in found
    assert found["kafka_audit_lost_records",] == 0
    found = samples(openmetrics.render(read(tmp_path / "c", [group_partition("a", "t", 0)])))
    assert (found["kafka_audit_lost_records",], found["kafka_audit_partitions_losing_within_a_day",]) == (0, 0)


def judged(root: Path, rows: list[dict[str, object]], evidence: tuple[str, int] = ("PASS", 0), *, lag: bool = True) -> Report:
    fake = FakeAudit(root, (TOPIC, GROUP, REHEARSED))
    fake.settings(rows)
    if lag:
        fake.lag([])
    fake.gates(evidence=evidence)
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


def test_a_question_that_waits_for_a_person_is_not_called_not_applicable(tmp_path: Path) -> None:
    report = judged(tmp_path, [finding(REHEARSED, "cluster", "not_assessed", reason="nobody attests it")])
    suite = ET.fromstring(junit.render(report)).find("testsuite[@name='cluster']")
    assert suite is not None
    assert [one.get("message") for one in suite.iter("skipped")] == ["not assessed: nobody attests it"]


def test_full_coverage_says_how_many_controls_did_not_run(tmp_path: Path) -> None:
    report = judged(tmp_path, [finding(TOPIC, "orders", "pass"), finding(REHEARSED, "cluster", "pass")], lag=False)
    assert "100.0% of what applies was assessed, by the controls that ran; 1 control did not" in words.summary(report)


def test_controls_that_judged_nothing_are_not_counted_as_if_they_had_passed(tmp_path: Path) -> None:
    rows = [finding(TOPIC, "orders", "pass"), finding(REHEARSED, "cluster", "not_assessed", reason="nobody attests it")]
    report = judged(tmp_path, rows)
    assert words.failures(report) == "none of 3 controls fails, and only 1 judged at least one result"
    assert [(one.controls, one.judged) for one in report.by_severity() if one.assessed] == [(3, 1)]
    page = html.render(report)
    assert "of 3 controls fail; only 1 judged a result" in page
    failing = judged(tmp_path / "failing", [finding(TOPIC, "orders")])
    assert words.failures(failing) == "1 of 3 controls fails (1 critical), and only 1 judged at least one result"
    assert words.failures(judged(tmp_path / "nothing", [])) == "none of 3 controls judged a result"


@pytest.mark.parametrize(("begun", "seconds"), [("2026-11-20T23:15:00", 1_795_216_500.0), ("yesterday", None), ("", None)])
def test_a_time_without_a_zone_is_in_utc_whatever_the_zone_of_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, begun: str, seconds: float | None
) -> None:
    report = judged(tmp_path, [])
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        found = samples(openmetrics.render(replace(report, collection=replace(report.collection, started_at=begun))))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found.get(("kafka_audit_evidence_timestamp_seconds",)) == seconds


def test_a_control_with_results_that_were_set_aside_is_not_satisfied(tmp_path: Path) -> None:
    aside = finding(TOPIC, "b", "not_applicable", reason="there is no earlier snapshot to compare with")
    report = judged(tmp_path, [finding(TOPIC, "a", "pass"), aside])
    [found] = [one for one in as_oscal(report)["assessment-results"]["results"][0]["findings"] if one["title"].startswith("TOP-01")]
    assert found["target"]["status"]["state"] == "not-satisfied"
    assert "pass_in_part" in [one["value"] for one in found["props"]]
    [event] = [one for one in as_ocsf(report) if one["message"].startswith("TOP-01")]
    assert event["compliance"]["status"] == "Warning"
    whole = judged(tmp_path / "whole", [finding(TOPIC, "a", "pass"), finding(TOPIC, "b", "not_applicable")])
    assert standing(next(one for one in whole.results if one.code == "TOP-01"), fit=True) is Standing.PASS


@pytest.mark.parametrize(
    ("status", "met"), [("pass", True), ("fail", False), ("not_assessed", None), ("error", None), ("not_applicable", None)]
)
def test_a_target_is_met_only_if_the_control_of_targets_says_so(tmp_path: Path, status: str, met: bool | None) -> None:
    kept = control("lag_sla_availability_kept", "CON-14", subject="group_sla")
    fake = FakeAudit(tmp_path, (kept,))
    fake.settings([])
    fake.lag([finding(kept, "billing", status)], [group_partition("billing", "t", 0)], group_slas=sla_table([group_sla("billing")]))
    report = read_report(*fake.inputs.args, **fake.inputs.kwargs)
    assert report.lag.groups[0].slas[0].target_met is met


def test_a_target_of_which_a_third_is_not_known_is_not_called_met(tmp_path: Path) -> None:
    known = {"minutes_in": 28_800, "minutes_out": 0, "minutes_not_assessed": 14_400, "availability_percent": 100.0}
    fake = FakeAudit(tmp_path, ())
    fake.settings([])
    fake.lag([], [group_partition("billing", "t", 0)], group_slas=sla_table([group_sla("billing", **known)]))
    report = read_report(*fake.inputs.args, **fake.inputs.kwargs)
    assert report.lag.groups[0].slas[0].target_met is None
    assert "Target met" not in html.render(report)


def test_a_controller_that_is_not_known_is_not_denied(tmp_path: Path) -> None:
    report = judged(tmp_path, [])
    broker = Broker(broker_id=7, host="h", port=1, rack=None, alive=True, answered=True, is_controller=None)
    shown = replace(report, collection=replace(report.collection, brokers=(broker,)))
    assert 'data-label="Controller">not known</td>' in html.render(shown)
    assert appendix.content(shown)["brokers"][0]["controller"] == "not known"  # type: ignore[index]


def test_partitions_of_which_nothing_is_known_are_not_called_free_of_lag(tmp_path: Path) -> None:
    text = Page(html.render(read(tmp_path, [group_partition("a", "t", 0, **UNREAD)]))).text
    assert "Not known No partition with known offsets is behind" in text
