"""What is told of a cluster: each change once, nothing that has not changed, and the end of what was told as bad."""

from datetime import timedelta

import pytest
from news_overviews import NOON, audit_id, burn, changed, changes, control, failed, loss, lost, observed, overview

from kafka_audit.findings import Severity
from kafka_audit.index.message import message_of
from kafka_audit.index.news import find_news
from kafka_audit.index.news_item import News, Observed
from kafka_audit.index.overview import LISTED, Failed, FailsSince
from kafka_audit.index.told import Told
from kafka_audit.report.comparison import Change

KNOWS = Told(audit_id=audit_id(0), sealed_id=audit_id(0))
"""Somebody who was told of the audit before."""


def told(of: Observed, before: Told = KNOWS, least: Severity = Severity.HIGH) -> tuple[tuple[News, ...], Told]:
    return find_news(of, before, least=least, stale_hours=26)


def lines(of: Observed, before: Told = KNOWS, least: Severity = Severity.HIGH) -> list[str]:
    return [line for item in told(of, before, least)[0] for line in item.lines]


def kinds(of: Observed, before: Told = KNOWS) -> list[str]:
    return [item.kind for item in told(of, before)[0]]


def assert_told_once(of: Observed, before: Told = KNOWS) -> Told:
    """There is news, and to one who was told it there is none."""
    first, after = told(of, before)
    assert first
    assert told(of, after) == ((), after)
    return after


def test_a_cluster_that_passes_and_has_not_changed_is_no_news() -> None:
    assert told(observed(overview()))[0] == ()


def test_new_and_worse_failures_are_told_worst_first_with_what_got_worse() -> None:
    found = changes(changed("orders"), changed("audit-log", "critical", Change.WORSE), changed("billing"))
    assert lines(observed(overview(verdict="FAILED", changes=found))) == [
        "2 failures are new and 1 failure got worse (high or above).",
        "critical, medium before: TOP-01 Topics are replicated, topic audit-log",
        "high: TOP-01 Topics are replicated, topic orders (and 1 more)",
    ]
    assert_told_once(observed(overview(verdict="FAILED", changes=found)))


def test_failures_below_the_severity_resolved_ones_and_waived_ones_are_no_news() -> None:
    found = changes(
        changed("a", "medium"), changed("b", None, Change.RESOLVED), changed("c", "high"), changed("d", "high", Change.UNCHANGED)
    )
    waived = frozenset({("topic_replicated", "c")})
    assert lines(observed(overview(changes=found), waived=waived)) == []
    assert len(lines(observed(overview(changes=found)))) == 2
    assert len(lines(observed(overview(changes=found), waived=waived), least=Severity.MEDIUM)) == 2


def test_failures_that_the_overview_does_not_list_are_counted_only_where_they_may_be_severe_enough() -> None:
    high = changes(changed("a"), counts={"new": 1_200})
    assert lines(observed(overview(changes=high)))[0] == "1 failure is new (high or above); up to 1,199 more are not listed."
    lower = changes(changed("a"), changed("b", "low"), counts={"new": 1_200})
    assert lines(observed(overview(changes=lower)))[0] == "1 failure is new (high or above)."


def test_who_is_told_for_the_first_time_hears_once_how_many_failures_stand() -> None:
    now = observed(overview(verdict="FAILED", changes=changes(changed("a")), failed=failed(critical=2, high=10, low=7)))
    assert lines(now, Told()) == [
        "The audit ended FAILED: 12 failures (2 critical, 10 high) as notifications begin; from now on only changes are told."
    ]
    assert_told_once(now, Told())
    waived = {"high": Failed(controls=1, results=3, waived=3)}
    assert lines(observed(overview(failed=waived)), Told()) == []


def test_after_audits_that_could_not_be_told_nothing_is_called_new() -> None:
    now = observed(overview(3, past=(0, 1, 2, 3), failed=failed(high=4), changes=changes(changed("a"))))
    assert lines(now) == ["The audit ended PASSED: 4 failures (4 high) in all; 2 audits before this one could not be told."]


@pytest.mark.parametrize("compared", [None, changes().model_copy(update={"compared_with": None, "counts": {}})])
def test_if_nothing_could_be_compared_how_many_failures_stand_is_told(compared: object) -> None:
    now = observed(overview(1, failed=failed(high=4), changes=compared))
    assert lines(now) == [
        "The audit ended PASSED: 4 failures (4 high) in all; which of them are new is not known, as nothing could be compared."
    ]
    assert_told_once(now)


def test_a_failure_that_the_audit_before_could_not_see_is_told_unless_its_control_failed_when_that_was_told() -> None:
    found = changes(changed("a", change=Change.INCOMPARABLE), changed("b", None, Change.INCOMPARABLE))
    since_now = control(FailsSince(audit_id=audit_id(1), started_at="", earlier=False))
    assert lines(observed(overview(1, changes=found, controls=(since_now,)))) == [
        "1 failure may be new, as the audit before could not tell (high or above).",
        "high: TOP-01 Topics are replicated, topic a",
    ]
    failed_then = control(FailsSince(audit_id=audit_id(0), started_at="", earlier=True))
    assert lines(observed(overview(1, changes=found, controls=(failed_then,)))) == []


def test_a_failed_gate_without_new_failures_is_told_with_its_reasons_and_again_only_when_it_passes() -> None:
    failing = overview(1, "FAILED", reasons=("3 controls fail", "coverage", "more"))
    assert lines(observed(failing)) == ["The audit ended FAILED.", "3 controls fail", "coverage"]
    after = assert_told_once(observed(failing))
    assert kinds(observed(overview(2, "FAILED")), after) == []
    assert lines(observed(overview(2)), after) == ["The audit passes again."]
    assert kinds(observed(overview(3)), assert_told_once(observed(overview(2)), after)) == []


def test_new_failures_say_why_the_gate_failed_and_its_recovery_is_told() -> None:
    after = assert_told_once(observed(overview(1, "FAILED", changes=changes(changed("a")))))
    assert kinds(observed(overview(2)), after) == ["recovered"]


def test_another_verdict_that_is_not_passed_is_a_change() -> None:
    after = told(observed(overview(1, "FAILED")))[1]
    assert lines(observed(overview(2, "INCOMPLETE")), after) == ["The audit ended INCOMPLETE."]
    after = told(observed(overview(2, "INCOMPLETE")), after)[1]
    assert lines(observed(overview(3)), after) == ["The audit passes again."]


def test_records_that_are_lost_are_told_and_then_only_further_ones() -> None:
    first = overview(1, loss=loss(7), happened_losses=(lost(0, 7),))
    assert lines(observed(first)) == [
        "Up to 7 records were lost unread, by 1 group.",
        "group billing on payments-0: up to 7 records lost",
    ]
    after = assert_told_once(observed(first))
    assert kinds(observed(overview(2, loss=loss(7), happened_losses=(lost(0, 7),))), after) == []
    assert lines(observed(overview(2, loss=loss(9), happened_losses=(lost(0, 9),))), after)[0] == (
        "Up to 2 more records were lost unread; 9 in all, by 1 group."
    )


def test_a_loss_is_told_even_where_another_partition_has_recovered() -> None:
    after = told(observed(overview(1, loss=loss(7), happened_losses=(lost(0, 7),))))[1]
    assert lines(observed(overview(2, loss=loss(5), happened_losses=(lost(1, 5),))), after)[1:] == [
        "group billing on payments-1: up to 5 records lost"
    ]


@pytest.mark.parametrize("unknown", [None, loss(None)])
def test_a_loss_that_is_not_known_now_stays_as_it_was_told(unknown: object) -> None:
    before = told(observed(overview(1, loss=loss(7), happened_losses=(lost(0, 7),))))[1]
    after = told(observed(overview(2, loss=unknown)), before)[1]
    assert kinds(observed(overview(3, loss=loss(7), happened_losses=(lost(0, 7),))), after) == []


def test_partitions_that_an_overview_has_no_room_for_are_told_by_the_total() -> None:
    full = tuple(lost(number, 5) for number in range(LISTED))
    after = told(observed(overview(1, loss=loss(1_000), happened_losses=full)))[1]
    other = (*full[1:], lost(99, 5))  # it was not listed before, so it need not be new
    assert kinds(observed(overview(2, loss=loss(1_000), happened_losses=other)), after) == []
    assert kinds(observed(overview(2, loss=loss(1_001), happened_losses=other)), after) == ["loss"]


def test_a_loss_within_a_day_is_told_once_for_each_partition() -> None:
    first = overview(1, loss=loss(0, 3), next_losses=(lost(0, hours=0.5), lost(1, hours=5), lost(2, hours=25)))
    assert lines(observed(first)) == [
        "2 partitions lose unread records within a day, at the rates seen; 1 more is not listed.",
        "group billing on payments-0: in about 30 min",
        "group billing on payments-1: in about 5 h",
    ]
    after = assert_told_once(observed(first))
    second = overview(2, loss=loss(0, 1), next_losses=(lost(1, hours=4),))
    after = told(observed(second), after)[1]
    assert kinds(observed(overview(3, loss=loss(0, 1), next_losses=(lost(0, hours=9),))), after) == ["loss"]


def test_a_budget_that_burns_is_told_once_and_its_end_only_when_it_is_known() -> None:
    burning = observed(overview(1, burns=(burn(7.25),)))
    assert lines(burning) == [
        "Group billing uses up the error budget of interactive 7.2 times as fast as its target of 99.5 % allows, over 6 h and 30 min."
    ]
    after = assert_told_once(burning)
    assert kinds(observed(overview(2, burns=(burn(9.0),))), after) == []
    assert kinds(observed(overview(2, burns=(burn(None),))), after) == []
    assert kinds(observed(overview(2, "VOID", burns=())), after) == ["void"]
    assert lines(observed(overview(2)), after)[0].startswith("No more: Group billing uses up the error budget")
    assert kinds(observed(overview(2, burns=tuple(burn(9.0, f"g{one}") for one in range(LISTED)))), after) == ["budget_burn"] * LISTED


def test_a_void_audit_is_told_once_leaves_what_was_told_and_ends_with_a_result() -> None:
    void = observed(overview(1, "VOID", reasons=("2 brokers did not answer",), loss=None, failed=None))
    assert lines(void)[1:] == ["2 brokers did not answer"]
    after = assert_told_once(void)
    assert after.audit_id == audit_id(0)
    assert kinds(observed(overview(2, "VOID")), after) == []
    assert lines(observed(overview(3, past=(0, 3))), after) == ["The audit has a result again."]


def test_an_audit_that_cannot_be_used_is_told_without_a_claim_about_anything_else() -> None:
    before = told(observed(overview(1, "FAILED")))[1]
    broken = observed(None, unusable="index/overview.json was changed")
    assert lines(broken, before) == ["The newest audit cannot be used: index/overview.json was changed"]
    after = assert_told_once(broken, before)
    assert lines(observed(overview(2, "FAILED")), after) == ["The newest audit can be read again."]


@pytest.mark.parametrize(("field", "what"), [("audit_at", "audit"), ("evidence_at", "evidence")])
def test_a_cluster_is_stale_when_its_newest_audit_or_evidence_is_too_old_and_that_ends(field: str, what: str) -> None:
    fresh = observed(overview())
    old = observed(overview(), **{field: fresh.now - timedelta(hours=27)})
    assert lines(old) == [f"Nothing recent is known: the newest {what} is of 2026-11-20 10:00 UTC, more than 26 h ago."]
    after = assert_told_once(old)
    assert lines(fresh, after) == ["Audits and evidence are recent again."]
    assert kinds(observed(overview(), **{field: fresh.now - timedelta(hours=25.9)})) == []


def test_a_cluster_that_nobody_audits_is_not_stale_and_one_whose_audits_are_gone_has_not_recovered() -> None:
    nothing = observed(None, audit_at=None, evidence_at=None)
    assert kinds(nothing, Told()) == []
    stale = told(observed(overview(), audit_at=NOON - timedelta(days=9)))[1]
    assert kinds(nothing, stale) == []


def test_an_audit_that_did_not_finish_is_told_once_until_a_later_one_is_sealed() -> None:
    late = observed(overview(0), unfinished="audit x began at noon", running=True)
    assert lines(late) == ["An audit did not finish: audit x began at noon"]
    after = assert_told_once(late)
    assert kinds(observed(overview(0), running=True), after) == []
    assert kinds(observed(overview(0)), after) == [], "a run that was refused leaves no folder"
    assert lines(observed(overview(1)), after) == ["An audit has finished again."]


def test_while_the_newest_audit_is_done_again_the_one_before_it_says_nothing() -> None:
    after = told(observed(overview(2, "FAILED")))[1]
    again = observed(overview(1, changes=changes(changed("a"))), running=True)
    assert told(again, after) == ((), after)


def test_hostile_names_become_no_mention_link_markup_or_second_line() -> None:
    hostile = "@channel <!here> [x](https://evil.example.com) *b* `c` _d_ #e :f: evil.com\nsecond <@U1>\u202e\u034f"
    found = changes(changed(hostile, title="<b>t</b>"))
    group = overview(1, changes=found, loss=loss(3, 1), happened_losses=(lost(0, 3, group_id=hostile),), burns=(burn(9.0, hostile),))
    news, _ = told(observed(group))
    said = message_of("orders", news, "https://airflow.example.com/kafka-audit/clusters/orders/")
    for text in (said.subject, *said.text.splitlines()[1:-2]):
        assert not set("@<>[]`*#\n\r\u202e\u034f") & set(text.replace("[.]", "")), text
        assert "://" not in text
        assert "evil.com" not in text
    assert said.text.splitlines()[-1] == "https://airflow.example.com/kafka-audit/clusters/orders/"


def test_a_message_has_at_most_three_lines_of_news_the_worst_first() -> None:
    many = overview(1, "FAILED", changes=changes(changed("a"), changed("b"), changed("c")), loss=loss(7), happened_losses=(lost(0, 7),))
    news, _ = told(observed(many))
    said = message_of("orders", news, "")
    assert said.text.splitlines() == [
        "Kafka cluster orders",
        "Up to 7 records were lost unread, by 1 group.",
        "group billing on payments-0: up to 7 records lost",
        "3 failures are new (high or above).",
    ]
    assert said.subject == "Kafka audit of orders: Up to 7 records were lost unread, by 1 group."
    assert (said.severity, said.good) == (Severity.CRITICAL, False)
    more, _ = told(observed(overview(1, burns=tuple(burn(9.0, f"g{one}") for one in range(5)))))
    assert message_of("orders", more, "").text.splitlines()[-1] == "3 more changes are on the page."


def test_only_a_recovery_is_good_news() -> None:
    after = told(observed(overview(1, "FAILED")))[1]
    assert message_of("orders", told(observed(overview(2)), after)[0], "").good
    stale = observed(overview(2), audit_at=NOON - timedelta(days=3))
    assert not message_of("orders", told(stale, after)[0], "").good
