"""What is told, and not told, of audits that know less than others: of a part of the cluster, by a looser gate, over fewer partitions."""

import pytest
from news_overviews import audit_id, burn, loss, lost, observed, overview

from kafka_audit.findings import Severity
from kafka_audit.index.news import find_news
from kafka_audit.index.news_item import News, Observed
from kafka_audit.index.told import Told

KNOWS = Told(audit_id=audit_id(0), sealed_id=audit_id(0))


def told(of: Observed, before: Told = KNOWS) -> tuple[tuple[News, ...], Told]:
    return find_news(of, before, least=Severity.HIGH, stale_hours=26)


def lines(of: Observed, before: Told = KNOWS) -> list[str]:
    return [line for item in told(of, before)[0] for line in item.lines]


def kinds(of: Observed, before: Told = KNOWS) -> list[str]:
    return [item.kind for item in told(of, before)[0]]


@pytest.mark.parametrize("parameter", ["topics", "groups", "fail_on", "fail_on_new", "min_coverage", "max_age_seconds"])
def test_the_pass_of_an_audit_that_judged_less_is_no_recovery(parameter: str) -> None:
    after = told(observed(overview(1, "FAILED")))[1]
    less = observed(overview(2, judged_less=(parameter,)))
    assert kinds(less, after) == []
    assert lines(observed(overview(3)), told(less, after)[1]) == ["The audit passes again."]


def test_an_audit_of_a_part_ends_no_burn_and_makes_no_old_loss_new() -> None:
    whole = overview(1, loss=loss(7, 1), happened_losses=(lost(0, 7),), next_losses=(lost(1, hours=5),), burns=(burn(9.0),))
    after = told(observed(whole))[1]
    part = observed(overview(2, loss=loss(0), judged_less=("groups",)))
    assert kinds(part, after) == []
    assert kinds(observed(whole.model_copy(update={"audit_id": audit_id(3)})), told(part, after)[1]) == []


def test_a_sum_over_fewer_partitions_makes_no_old_loss_new_once_all_are_known_again() -> None:
    whole = overview(1, loss=loss(9, 1), happened_losses=(lost(0, 7), lost(1, 2)), next_losses=(lost(2, hours=5),))
    after = told(observed(whole))[1]
    fewer = loss(2, 0).model_copy(update={"unknown": 2})
    after = told(observed(overview(2, loss=fewer, happened_losses=(lost(1, 2),))), after)[1]
    assert kinds(observed(whole.model_copy(update={"audit_id": audit_id(3)})), after) == []
    assert kinds(observed(overview(3, loss=loss(10), happened_losses=(lost(0, 8), lost(1, 2)))), after) == ["loss"]


def test_a_time_to_loss_that_goes_up_and_down_about_a_day_is_told_once() -> None:
    after = told(observed(overview(1, loss=loss(0, 1), next_losses=(lost(0, hours=23),))))[1]
    after = told(observed(overview(2, loss=loss(0, 0), next_losses=(lost(0, hours=25),))), after)[1]
    again = observed(overview(3, loss=loss(0, 1), next_losses=(lost(0, hours=23),)))
    assert kinds(again, after) == []
    assert kinds(again, told(observed(overview(2, loss=loss(0, 0))), after)[1]) == ["loss"]
