"""What the pages compute before they are rendered: colours, ages, sparklines, lists of waivers, the matrix, the chart of availability."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from overviews import NOW, overview, trend, waiver

from kafka_audit.airflow.web import marks
from kafka_audit.airflow.web.answers import render
from kafka_audit.airflow.web.audit_now import audit_now
from kafka_audit.airflow.web.availability_chart import availability_chart, floor_of
from kafka_audit.airflow.web.facts import failing, of_cluster, of_clusters
from kafka_audit.airflow.web.matrix import matrix
from kafka_audit.airflow.web.newest import Cluster
from kafka_audit.airflow.web.waiver_lists import expiring_of, waiver_lists
from kafka_audit.audit.listing import FoundAudit
from kafka_audit.catalogue.rows.groups import STATUSES
from kafka_audit.index.overview import Changes, LossTotals
from kafka_audit.report.comparison import TrendPoint


def cluster(name: str = "orders-prod", **facts: Any) -> Cluster:
    made = overview(name, **facts)
    return Cluster(name=name, dag_id=made.dag_id, now=NOW, limit=timedelta(hours=26), overview=made)


def made_by_a_run(known: Cluster) -> Cluster:
    made = overview(known.name)
    found = FoundAudit(
        cluster=known.name, audit_id=made.audit_id, folder=Path("/nowhere"), dag_id=known.dag_id, run_id="manual__2026-11-20T01:02:03+00:00"
    )
    return replace(known, sealed=found)


def point(days: float, failed: int | None) -> TrendPoint:
    figures = None if failed is None else {"high": failed}
    at = (NOW - timedelta(days=days)).isoformat()
    return TrendPoint(
        audit_id="a",
        started_at=at,
        verdict="FAILED",
        failed_by_severity=figures,
        coverage=None,
        lost_records=None,
        availability_percent=None,
    )


def test_only_ok_of_all_statuses_of_a_group_is_shown_in_green() -> None:
    assert {status for status in STATUSES if marks.kind(status) == "good"} == {"OK"}
    assert {marks.kind(word) for word in ("VOID", "INCOMPLETE", "NOT SEALED", "stale", "a new word")} == {"warn"}


def test_statuses_of_groups_are_listed_with_the_worst_first() -> None:
    assert marks.worst_status_first({"OK": 9, "NEW WORD": 1, "LOST": 2, "SLOW": 3}) == [
        ("LOST", 2),
        ("SLOW", 3),
        ("OK", 9),
        ("NEW WORD", 1),
    ]


def test_controls_that_fail_are_listed_by_their_worst_failure() -> None:
    first, second, *others = overview().controls
    made = cluster(controls=(*others, second, first.model_copy(update={"worst": "low"})))
    assert [one.code for one in failing(made)] == ["TOP-01", "TOP-04"]


@pytest.mark.parametrize(
    ("hours", "said"),
    [(-1, "0 min"), (0.5, "30 min"), (1, "1 h"), (1.5, "1 h 30 min"), (24, "1 d"), (30, "1 d 6 h"), (24 * 8 + 5, "8 d")],
)
def test_ages_are_said_in_their_largest_units(hours: float, said: str) -> None:
    assert marks.age(timedelta(hours=hours)) == said


def test_a_percentage_is_rounded_down() -> None:
    assert (marks.percent(0.9999), marks.percent(1.0), marks.percent(0.123)) == ("99.9%", "100.0%", "12.3%")
    assert (marks.percent(0.0), marks.percent(0.0004)) == ("0.0%", "under 0.1%")
    assert marks.percent(float("inf")) == "over 1,000,000%"


def test_a_sparkline_says_what_it_shows_and_breaks_where_failures_are_not_known() -> None:
    svg = marks.sparkline([point(40, 99), point(20, 3), point(10, None), point(5, 9), point(0, 5)], NOW)
    assert 'aria-label="4 audits in 30 days: 3 to 9 failing results, the last known 5; not known in 1"' in svg
    path = svg.split('class="line" d="')[1].split('"')[0]
    assert path.count("M") == 2
    assert svg.count('class="unknown"') == 1


@pytest.mark.parametrize("points", [[], [point(31, 3)]])
def test_a_sparkline_without_audits_says_so(points: list[TrendPoint]) -> None:
    assert 'aria-label="No audit in the last 30 days"' in marks.sparkline(points, NOW)


def test_an_unknown_last_figure_has_no_dot_that_looks_like_0() -> None:
    assert 'class="last"' not in marks.sparkline([point(2, 0), point(1, None)], NOW)


def test_each_waiver_is_in_one_list_once_whatever_the_number_of_clusters() -> None:
    lists = waiver_lists([cluster("a"), cluster("b")], NOW)
    assert {one.kind: [(waiver.line.id, waiver.clusters) for waiver in one.waivers] for one in lists} == {
        "expired": [("wv-03", ("a", "b"))],
        "expiring": [("wv-01", ("a", "b"))],
        "unused": [("wv-04", ("a", "b"))],
        "unknown": [],
        "not yet approved": [],
        "active": [("wv-02", ("a", "b"))],
    }
    assert lists[1].waivers[0].covered == 4


def test_a_waiver_that_was_in_force_in_the_newest_audit_may_have_expired_since() -> None:
    later = waiver_lists([cluster()], NOW + timedelta(days=13))
    assert [one.line.id for one in later[0].waivers] == ["wv-03", "wv-01"]


def test_a_waiver_that_one_cluster_uses_is_not_unused() -> None:
    used, unused = waiver("w", 90, "x", 1), waiver("w", 90, "x", 0)
    lists = waiver_lists([cluster("a", waivers=(unused,)), cluster("b", waivers=(used,))], NOW)
    assert {one.kind: one.total for one in lists if one.total} == {"active": 1}


def test_a_waiver_that_a_void_or_partial_audit_does_not_use_is_not_called_unused() -> None:
    unused = waiver("w", 90, "x", 0)
    for fields in ({"failed": None}, {"judged_less": ("topics",)}):
        lists = waiver_lists([cluster("a", waivers=(unused,)), cluster("b", waivers=(unused,), **fields)], NOW)
        assert {one.kind: [waiver.covered for waiver in one.waivers] for one in lists if one.total} == {"unknown": [None]}


def test_an_audit_that_judged_less_is_not_shown_in_green_and_says_so() -> None:
    assert cluster(verdict="PASSED").healthy
    for parameter, says in (("topics", "nothing about the rest of the cluster"), ("fail_on", "a looser gate")):
        less = cluster(verdict="PASSED", judged_less=(parameter,))
        assert not less.healthy
        assert says in less.why[0] and parameter in less.why[0]


def test_an_audit_that_was_compared_with_none_says_why_in_its_own_words() -> None:
    none = Changes(compared_with=None, compared_with_at="", counts={}, listed=(), notes=("No earlier audit can be compared with.",))
    text = render("cluster.html.j2", up="../../", **of_cluster(cluster(changes=none), {}, None))
    assert "No earlier audit can be compared with." in text and "is gone" not in text


def test_what_is_known_of_a_part_of_the_partitions_is_not_shown_as_all() -> None:
    totals = LossTotals(records=None, partitions=0, groups=0, within_a_day=0, unknown=3, rates_unknown=2)
    text = render("cluster.html.j2", up="../../", **of_cluster(cluster(loss=totals, targets=2, targets_missed=None), {}, None))
    assert "of 3 partitions not known" in text and "0 partitions of 0 groups" not in text
    assert "rates not known of 2" in text
    assert text.split("Lag targets missed")[1].split("</div>")[0].count("not known") == 1


def test_waivers_can_be_filtered_by_any_text() -> None:
    assert sum(one.total for one in waiver_lists([cluster()], NOW, "WV-02")) == 1
    assert sum(one.total for one in waiver_lists([cluster()], NOW, "sre-lead")) == 4
    assert sum(one.total for one in waiver_lists([cluster()], NOW, "nobody")) == 0


def test_an_expiry_that_is_no_time_is_not_taken_for_expired() -> None:
    odd = waiver("w", 5).model_copy(update={"expires": "some day"})
    assert {one.kind: one.total for one in waiver_lists([cluster(waivers=(odd,))], NOW) if one.total} == {"active": 1}
    assert expiring_of(cluster(waivers=(odd,))) == []


def test_the_matrix_shows_how_each_control_stands_and_what_is_not_known() -> None:
    unknown = Cluster(name="none", dag_id="d", now=NOW, limit=timedelta(hours=26))
    rows = matrix([cluster(), cluster("passed", verdict="PASSED"), cluster("void", verdict="VOID"), unknown])
    assert [row.code for row in rows] == ["TOP-04", "CON-01", "TOP-01", "BRK-07", "BRK-12"]
    assert [(cell.state.id, cell.number) for cell in rows[0].cells] == [("fail", 3), ("pass", None), ("unknown", None), ("unknown", None)]
    fewer = cluster("fewer", controls=())
    assert [cell.state.id for cell in matrix([cluster(), fewer])[0].cells] == ["fail", "not_in_audit"]


def test_the_matrix_is_filtered_by_severity_and_by_how_a_control_stands_anywhere() -> None:
    known = [cluster(), cluster("passed", verdict="PASSED")]
    assert [row.code for row in matrix(known, severity="high")] == ["CON-01", "TOP-01"]
    assert [row.code for row in matrix(known, standing="fail_waived")] == ["TOP-01"]
    assert matrix(known, severity="low", standing="fail") == ()


def test_a_control_has_the_words_of_the_newest_audit_that_has_it() -> None:
    newest, older = cluster("a", age_hours=1, said=" today"), cluster("b", age_hours=9, said=" before")
    for known in ([newest, older], [older, newest]):
        assert {row.title.endswith(" today") for row in matrix(known)} == {True}


def test_a_standing_of_another_release_is_not_known() -> None:
    odd = tuple(one.model_copy(update={"standing": "sideways"}) for one in overview().controls)
    assert {cell.state.id for row in matrix([cluster(controls=odd)]) for cell in row.cells} == {"unknown"}


def test_availability_is_drawn_with_gaps_and_not_at_all_if_it_was_never_measured() -> None:
    svg = availability_chart(trend(NOW))
    assert svg is not None
    assert "not measured in 7" in svg
    assert svg.split('class="value" d="')[1].split('"')[0].count("M") == 2
    assert availability_chart([point(1, 3)]) is None
    assert (floor_of(99.95), floor_of(99.0), floor_of(12.0)) == (99.9, 99.0, 0.0)


def test_hostile_names_stay_text_and_their_links_keep_them_whole() -> None:
    name = '"><script>alert(1)</script>\u202e\u034f/../x?a=b&c'
    text = render("cluster.html.j2", up="../../", **of_cluster(cluster(said=name), {}, None))
    assert "<script>alert" not in text
    assert not {"\u202e", "\u034f"} & set(text)
    assert "groups/one?id=%22%3E%3Cscript%3Ealert%281%29%3C/script%3E%E2%80%AE%CD%8F/../x%3Fa%3Db%26c" in text


def test_within_a_frame_of_airflow_there_are_no_links_out_of_the_pages() -> None:
    for framed in (False, True):
        text = render("cluster.html.j2", up="../../", framed=framed, **of_cluster(cluster(), {}, "/dags/d"))
        assert ("../../../" in text) is not framed
        assert ("Audit now" in text) is not framed


def test_only_a_run_that_airflow_has_gets_a_link() -> None:
    known = made_by_a_run(cluster())
    assert known.sealed is not None
    there = {(known.sealed.dag_id, known.sealed.run_id): "success"}
    link = f"/dags/{known.dag_id}/runs/{quote(known.sealed.run_id, safe='')}"
    for states, linked in ((there, True), ({}, False)):
        text = render("cluster.html.j2", up="../../", **of_cluster(known, states, None))
        assert (f"../../..{link}" in text, "Run of the newest audit" in text) == (linked, linked)
    assert (audit_now(known, there), audit_now(known, {})) == (link, f"/dags/{known.dag_id}")


def test_a_sample_cannot_be_audited_now() -> None:
    known = made_by_a_run(cluster(sample=True))
    assert known.sealed is not None
    assert audit_now(known, {(known.sealed.dag_id, known.sealed.run_id): "success"}) is None


@pytest.mark.parametrize(("verdict", "mood"), [("PASSED", " good"), ("FAILED", "")])
def test_no_cluster_that_passed_is_no_good_figure(verdict: str, mood: str) -> None:
    text = render("clusters.html.j2", up="", **of_clusters([cluster(verdict=verdict)], {}))
    assert f'<dd class="figure{mood or " "}">{int(bool(mood))}</dd>' in text.split("Passed, and not stale")[1]


def test_a_loss_beyond_the_calendar_has_no_time() -> None:
    far = overview().next_losses[0].model_copy(update={"time_to_loss_ms": 2**52})
    assert "not known</td>" in render("cluster.html.j2", up="../../", **of_cluster(cluster(next_losses=(far,)), {}, None))


@pytest.mark.parametrize(("targets", "says"), [(0, "no SLA has a target"), (2, "not known"), (None, "not known")])
def test_an_error_budget_that_nobody_set_is_not_called_unknown(targets: int | None, says: str) -> None:
    known = cluster(budget=None, targets=targets, targets_missed=None if targets is None else 0)
    for page in (
        render("cluster.html.j2", up="../../", **of_cluster(known, {}, None)),
        render("clusters.html.j2", up="", **of_clusters([known], {})),
    ):
        cell = page.split("Worst error budget")[-1].split("</div>")[0]
        assert says in cell and cell.count("not known") == (says == "not known")
