"""The first screen: the worst failures in words, loss, coverage and what changed; nothing looks green that is not known."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from report_audit import HOSTILE_GROUPS, FakeAudit, control, finding, group_partition
from test_report_html import GROUP, TOPIC, Page

from kafka_audit.findings import Severity
from kafka_audit.report import Report, read_report
from kafka_audit.report.comparison import Change, ChangedFinding, Comparison, TrendPoint
from kafka_audit.report.front import meaning, worst_failures
from kafka_audit.report.html import render
from kafka_audit.report.trend_charts import coverage_chart, failures_chart

LEADER = control("leader_alive", "REP-01", subject="partition")
BROKER = control("auto_create_off", "BRK-02", subject="broker", severity=Severity.HIGH)
ALL = (BROKER, GROUP, LEADER, TOPIC)


def audit(root: Path, failing: tuple[str, ...] = ("REP-01", "TOP-01", "BRK-02"), status: str = "pass") -> Report:
    """An audit in which the named controls fail on two resources and the others have ``status``."""
    fake = FakeAudit(root, ALL)
    rows = [finding(one, f"{one.code} {number}", "fail" if one.code in failing else status) for one in ALL for number in (1, 2)]
    fake.settings([row for row in rows if row["code"] != GROUP.code])
    fake.lag([row for row in rows if row["code"] == GROUP.code], [group_partition("billing", "orders", 0)])
    fake.gates() if failing else fake.gates(findings=("PASS", 0))
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


def front(report: Report) -> str:
    """The words of the first screen."""
    page = render(report)
    return Page(page[page.index("<header") : page.index("</header>")]).text


def greens(report: Report) -> int:
    """How often the first screen uses the mark of a pass."""
    page = render(report)
    return len(re.findall(r'class="icon pass"', page[page.index("<header") : page.index("</header>")]))


def test_the_worst_are_what_is_the_case_now_before_settings_and_severity_before_both(tmp_path: Path) -> None:
    assert [one.result.code for one in worst_failures(audit(tmp_path))] == ["REP-01", "TOP-01", "BRK-02"]


def test_each_of_the_worst_says_which_control_fails_where_and_what_it_means(tmp_path: Path) -> None:
    words = front(audit(tmp_path))
    assert "The three worst things" in words
    assert "TOP-01 Not true: Replication factor sufficient Where TOP-01 1, TOP-01 2: 1" in words
    assert "What can happen One disk fails, and the partition with all its records is gone." in words
    assert "Where broker BRK-02 1" in words


def test_a_waived_failure_is_none_of_the_worst(tmp_path: Path) -> None:
    report = audit(tmp_path, ("TOP-01",))
    waived = replace(
        report, results=tuple(replace(one, tally={kind._replace(waiver="W"): n for kind, n in one.tally.items()}) for one in report.results)
    )
    assert worst_failures(waived) == []
    assert "All waived Every failure is accepted by a waiver until a date" in front(waived)


@pytest.mark.parametrize(
    ("scenario", "said"),
    [
        ("One. Two.", "One. Two."),
        ("One is short. " + "Two is long " * 30, "One is short."),
        ("x" * 900, "x" * 900),
        ("Set acks=all. Versions before 3.3 are older.", "Set acks=all. Versions before 3.3 are older."),
    ],
)
def test_the_meaning_is_as_many_whole_sentences_as_fit(scenario: str, said: str) -> None:
    assert meaning(scenario) == said


def test_without_an_earlier_audit_nothing_is_called_new_or_resolved(tmp_path: Path) -> None:
    report = audit(tmp_path)
    assert "Since the previous audit First audit There is no earlier sealed audit" in front(report)
    assert "mark change" not in render(report)


def compared(report: Report, **counts: int) -> Report:
    changed = ChangedFinding(
        **{"control_id": TOPIC.id, "code": "TOP-01", "title": TOPIC.title, "subject": "topic", "severity": None, "severity_before": "high"},
        **{"change": Change.RESOLVED, "resource": HOSTILE_GROUPS[1], "observed": "3", "observed_before": HOSTILE_GROUPS[2]},
    )
    comparison = Comparison(
        **{"previous_audit_id": "20261119T231600Z-0badcafe0badcafe", "previous_started_at": "2026-11-19T23:16:00+00:00"},
        **{"previous_verdict": "FAILED", "counts": counts, "listed": (changed,), "notes": ("The policy changed.",)},
        changes={(TOPIC.id, "TOP-01 1"): Change.NEW, (TOPIC.id, "TOP-01 2"): Change.WORSE},
    )
    return replace(report, comparison=comparison)


def test_what_changed_is_counted_on_the_first_screen_and_listed_behind_it(tmp_path: Path) -> None:
    report = compared(audit(tmp_path), new=1, worse=1, resolved=2, unchanged=3, incomparable=4)
    assert "Since the previous audit 1 new 1 worse, 2 resolved, 3 unchanged; 4 cannot be compared." in front(report)
    text = Page(render(report)).text
    assert "ended FAILED. What was not assessed again is not called resolved. Differs The policy changed." in text
    assert "2 resolved results that failed before, and were assessed again and pass, or whose topic no longer exists" in text
    assert "Listed: 1 of 2." in text
    assert "4 incomparable results that cannot be compared" in text
    assert "TOP-01 1 new" in text


def test_results_that_cannot_be_compared_never_look_resolved(tmp_path: Path) -> None:
    report = compared(audit(tmp_path), incomparable=9)
    assert "0 new 0 worse, 0 resolved, 0 unchanged; 9 cannot be compared." in front(report)
    assert 'class="tile gap"><dt><a href="#changed"' in render(report)


def test_a_passed_audit_is_green_where_it_is_complete(tmp_path: Path) -> None:
    report = audit(tmp_path, ())
    assert report.outcome.verdict == "PASSED"
    assert greens(report) == 4  # the verdict, no loss, full coverage, no failure


@pytest.mark.parametrize("verdict", ["VOID", "INCOMPLETE"])
def test_an_audit_without_a_verdict_is_nowhere_green_but_for_loss_that_was_looked_for(tmp_path: Path, verdict: str) -> None:
    passing = audit(tmp_path, ())
    report = replace(passing, outcome=replace(passing.outcome, verdict=verdict))
    assert greens(report) == (1 if verdict == "INCOMPLETE" else 0)


def test_an_audit_that_was_cut_short_says_what_is_not_known_and_is_nowhere_green(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, ALL)
    report = read_report(*fake.inputs.args, **fake.inputs.kwargs)
    words = front(report)
    assert "VOID Nothing shows that the evidence is fit to judge" in words
    assert "Loss that has happened Not known verify left no lag results." in words
    assert "About to be lost Not known verify left no lag results." in words
    assert "Coverage Nothing assessed" in words
    assert "Nothing was assessed, so whether anything fails is not known." in words
    assert greens(report) == 0
    assert "No control passed without a failure." in Page(render(report)).text


def test_loss_on_partitions_that_could_not_be_read_is_not_none(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (GROUP,))
    fake.settings([])
    fake.lag([], [group_partition("a", "t", 0), group_partition("a", "t", 1, lag=None, lost=None, committed=None, has_commit=None)])
    words = front(read_report(*fake.inputs.args, **fake.inputs.kwargs))
    assert "None known No record is known to be deleted unread. Of 1 partition it is not known." in words


def points(*coverage: float | None) -> tuple[TrendPoint, ...]:
    return tuple(
        TrendPoint(
            **{"audit_id": f"audit-{day}", "started_at": f"2026-11-{day:02}T23:16:00+00:00", "verdict": "FAILED", "coverage": share},
            **{"failed_by_severity": {"critical": day, "low": 1}, "lost_records": None, "availability_percent": None},
        )
        for day, share in enumerate(coverage, 1)
    )


def test_the_trend_draws_each_audit_and_gives_its_figures_as_a_table(tmp_path: Path) -> None:
    report = replace(audit(tmp_path), trend=points(0.5, None, 0.999))
    text = Page(render(report)).text
    assert "Over 3 audits" in text
    assert "2026-11-03 23:16:00 UTCaudit-3FAILED3001099.9% \u2013 \u2013" in text
    drawn = str(failures_chart(report.trend))
    assert drawn.count('class="sev-critical"') == drawn.count('class="sev-low"') == 3
    assert "Of those that are known, the first has 2 failing results, the last 4." in drawn


def test_coverage_that_is_not_known_is_hatched_and_not_0() -> None:
    drawn = str(coverage_chart(points(0.5, None)))
    assert drawn.count('class="gap"') == 1
    assert "2026-11-02 23:16: not known" in drawn
    assert "Lowest 50%, highest 50%." in drawn
    assert "It is not known in any of them." in str(coverage_chart(points(None)))


def test_a_single_audit_has_no_trend(tmp_path: Path) -> None:
    assert "trend-failures" not in render(replace(audit(tmp_path), trend=points(1.0)))


def test_the_page_of_20000_findings_stays_below_15_megabytes(tmp_path: Path) -> None:
    controls = tuple(control(f"control_{number:02}", f"TOP-{number:02}") for number in range(76))
    fake = FakeAudit(tmp_path, controls)
    evidence = '{"replicas": [1, 2, 3], "in_sync": [1, 2], "config.min.insync.replicas": {"value": "%d", "source": "DYNAMIC_TOPIC_CONFIG"}}'
    rows = [
        finding(one, f"some.team.topic-of-events.{number:04}", observed=f"{number} in sync of 3 replicas", evidence=evidence % number)
        for one in controls
        for number in range(264)
    ]
    assert len(rows) > 20_000
    fake.settings(rows)
    fake.lag([], [])
    fake.gates()
    page = render(read_report(*fake.inputs.args, **fake.inputs.kwargs))
    assert "First 131 of 264 failures" in page
    assert len(page.encode()) < 15_000_000
