"""Groups folded to their worst partition: what a line says, the order of lines, and what changed."""

from datetime import datetime, timezone

import pytest
from lag_readings import Made, behind

from kafka_audit.lag.folded import Figure, lines_of, what_changed
from kafka_audit.lag.lag_table import Sort
from kafka_audit.lag.seconds import AT_LEAST, AT_MOST
from kafka_audit.policy.slas import LagSla


def no_sla(group_id, topic):
    return None


def sla(**limits):
    rule = LagSla.model_validate({"pattern": "*", "name": "x", **limits})
    return lambda group_id, topic: rule


def lines(made, sla_of=no_sla, sort=Sort.GROUP, *, folded=True, before=None):
    return lines_of(made.reading(), before and before.reading(), sla_of, sort, folded=folded).lines


def only(made, sla_of=no_sla):
    (line,) = lines(made, sla_of)
    return line


def partitions(*commits, log=(50, 100)):
    """Group ``g`` with one commit on each partition; None: it could not be read."""
    made = Made().topic(partitions=len(commits)).group(state="Empty")
    for partition, committed in enumerate(commits):
        error = "COORDINATOR_NOT_AVAILABLE" if committed is None else None
        made.log(*log, partition=partition).commit(committed, partition=partition, error=error)
    return made


def test_a_group_is_one_line_with_its_worst_partition_sums_and_smallest_margin():
    line = only(partitions(90, 40, 60, 30))

    assert (line.worst.state, line.worst.partition, line.partitions, line.alike) == ("LOST", 3, 4, 2)
    assert (line.lost, line.lag, line.margin) == (Figure(30), Figure(10 + 60 + 40 + 70), Figure(10, AT_MOST))
    assert line.is_gone


def test_every_partition_is_a_line_where_they_are_not_folded():
    found = lines(partitions(90, 40, 60), folded=False)

    assert [line.key for line in found] == [("g", "t", 1), ("g", "t", 0), ("g", "t", 2)]
    assert [line.margin for line in found[1:]] == [Figure(40), Figure(10)]


def test_a_sum_without_one_of_its_partitions_is_a_least_and_without_any_is_not_known():
    assert only(partitions(90, None)).lag == Figure(10, AT_LEAST)
    assert only(partitions(100, None)).lag == Figure(None), "at least 0 would read as 0"
    assert only(partitions(None, None)).lag == Figure(None)
    assert only(partitions(None, None)).margin == Figure(None)
    assert only(partitions(None, None)).seconds == Figure(None)


def test_a_group_whose_commits_could_not_be_read_has_no_count_of_partitions():
    line = only(Made().group().error("committed_offsets", "GROUP_AUTHORIZATION_FAILED", group_id="g"))

    assert (line.worst.state, line.partitions, line.alike, line.lost) == ("NOT_ASSESSED", 0, 0, Figure(None))


def test_on_a_topic_that_is_gone_there_are_no_figures_and_other_partitions_keep_theirs():
    assert only(Made().group().commit(5)).lag is None
    both = only(behind(40, 0, 100).commit(5, topic="gone"))
    assert (both.worst.state, both.lag, both.lost, both.partitions) == ("ORPHAN", Figure(60), Figure(0), 2)


def test_the_longest_lag_in_seconds_with_the_bounds_of_all_partitions():
    timed = Made().topic(partitions=2).group(state="Empty").log(0, 100).log(0, 100, partition=1).commit(40).unread(40, 40, 12)
    assert only(timed.commit(100, partition=1)).seconds == Figure(12)
    untimed = (
        Made()
        .topic(partitions=2)
        .group(state="Empty")
        .log(0, 100)
        .log(0, 100, partition=1)
        .commit(40)
        .unread(40, 40, 12)
        .commit(50, partition=1)
    )
    assert only(untimed).seconds == Figure(12, AT_LEAST)


@pytest.mark.parametrize(
    ("made", "sla_of", "word"),
    [
        (partitions(90), no_sla, None),
        (partitions(90), sla(max_lag_records=10), "ok"),
        (partitions(90), sla(max_lag_records=9), "broken"),
        (partitions(90, None), sla(max_lag_records=20), "?"),
        (partitions(90, None), sla(max_lag_records=9), "broken"),
        (partitions(90), sla(max_no_progress_seconds=60), None),
        (Made().group().commit(5), sla(max_lag_records=1), None),
    ],
)
def test_the_word_for_an_sla_never_takes_what_is_not_known_for_kept(made, sla_of, word):
    assert only(made, sla_of).sla == word


def test_problems_come_first_and_the_sort_decides_within_a_state():
    made = partitions(100)
    for name, committed in (("a", 70), ("b", 60), ("lost", 40), ("beyond", 500)):
        made.group(name, state="Empty").commit(committed, group=name)
    made.group("z").commit(None, group="z", error="X")

    def order(sort):
        return [line.key[0] for line in lines(made, sort=sort)]

    assert order(Sort.GROUP) == ["lost", "beyond", "z", "a", "b", "g"]
    assert order(Sort.LAG) == ["lost", "beyond", "z", "b", "a", "g"]
    assert order(Sort.MARGIN) == ["lost", "beyond", "z", "b", "a", "g"]


def test_a_broken_sla_is_a_problem_and_decides_which_partition_is_the_worst():
    rule = LagSla.model_validate({"pattern": "late", "name": "x", "max_lag_records": 5})
    made = partitions(90)
    made.group("late", state="Empty").commit(90, group="late")

    assert [line.key[0] for line in lines(made, lambda group, topic: rule if group == "late" else None)] == ["late", "g"]


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        (partitions(90), partitions(90), ""),
        (partitions(90), partitions(40), "was BEHIND"),
        (partitions(40), partitions(30), "lost +10"),
        (partitions(90), partitions(70), "lag +20"),
        (partitions(70), partitions(90), "lag -20"),
        (partitions(90, None), partitions(70, None), ""),
        (partitions(None), partitions(90), "was NOT_ASSESSED"),
    ],
)
def test_what_changed_is_said_worst_first_and_nothing_of_what_is_not_exact(before, now, said):
    assert what_changed(only(before), only(now)) == said
    assert what_changed(None, only(now)) == "new"


def test_an_sla_that_broke_is_a_change():
    assert what_changed(only(partitions(90), sla(max_lag_records=10)), only(partitions(89), sla(max_lag_records=10))) == "SLA was ok"


def test_quiet_hours_are_named():
    hours = [{"from": "00:00", "to": "23:59", "days": ["mon", "tue", "wed", "thu", "fri", "sat", "sun"]}]
    quiet = {"max_lag_records": 1, "quiet_hours": hours}
    made = Made(datetime(2026, 11, 20, 12, tzinfo=timezone.utc)).topic().log(0, 100).group(state="Empty").commit(40)

    assert only(made, sla(**quiet)).sla == "quiet"
