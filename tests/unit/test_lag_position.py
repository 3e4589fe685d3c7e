"""The golden table through `kafka-audit lag` and the counts of Airflow's asset event."""

import pytest
from lag_golden import GOLDEN, MARKERS, Standing, subscription_of
from lag_readings import Made

from kafka_audit.lag.position import position_counts, position_of
from kafka_audit.lag.rows import LagRow, lag_rows


def reading_of(case: Standing) -> Made:
    made = Made().group(state=case.state).commit(case.committed).topic("elsewhere").log(0, 0, topic="elsewhere")
    if case.listed:
        made.topic(partitions=case.partitions)
    if case.listed and case.partitions:
        made.log(*case.log, stable=case.stable)
    if case.state != "Empty" and case.described:
        made.member(("t" if case.assigned else "elsewhere", 0), subscribed=subscription_of(case, "t"))
    if case.assigned is None and case.described:
        made.rows["members"][-1]["assignment"] = None
    if case.unread is not None and case.position is not None:
        made.unread(case.position, None if case.unread == MARKERS else int(case.unread), 5)
    return made


def row_of(case: Standing) -> LagRow:
    return next(row for row in lag_rows(reading_of(case).reading(), lambda _group, _topic: None) if row.topic == "t")


@pytest.mark.parametrize("name", GOLDEN)
def test_a_standing_in_one_reading(name: str) -> None:
    case, row = GOLDEN[name], row_of(GOLDEN[name])

    assert (row.state, row.unread) == (case.expected, case.records)
    if case.position is not None and case.expected != "BEYOND_END":
        assert (row.lag, row.lost) == ((case.lag or 0) + (case.lost or 0), case.lost)


@pytest.mark.parametrize("name", [name for name, case in GOLDEN.items() if case.position is not None])
def test_the_figures_of_a_position(name: str) -> None:
    case = GOLDEN[name]
    assert case.committed is not None
    assert case.log[0] is not None
    assert case.log[1] is not None
    found = position_of(case.committed, case.log[0], case.log[1])

    assert (found.offset, found.lag, found.lost, found.beyond_end) == (case.position, case.lag, case.lost, case.beyond_end)
    assert found.margin == case.committed - case.log[0]


@pytest.mark.parametrize("name", GOLDEN)
def test_the_counts_of_one_partition(name: str) -> None:
    case = GOLDEN[name]
    counted = position_counts([("t", 0, case.committed, None)], {("t", 0): case.log})

    assert counted == {
        "partitions_behind": int((case.lag or 0) > 0),
        "partitions_lost": int((case.lost or 0) > 0),
        "partitions_beyond_end": int((case.beyond_end or 0) > 0),
        "partitions_unknown": int(case.committed is not None and case.position is None),
    }
