"""What one reading says about a group partition, case by case."""

from functools import partial

import pytest
from lag_readings import Made, behind

from kafka_audit.lag.lag_table import notes
from kafka_audit.lag.rows import lag_rows
from kafka_audit.lag.seconds import AT_LEAST, AT_MOST, Seconds
from kafka_audit.policy.slas import LagSla


def no_sla(group_id, topic):
    return None


def sla(**limits):
    rule = LagSla.model_validate({"pattern": "*", "name": "x", **limits})
    return lambda group_id, topic: rule


def only(made, sla_of=no_sla):
    (row,) = lag_rows(made.reading(), sla_of)
    return row


def waiting(committed, end, *, stable):
    return Made().topic().log(0, end, stable=stable).group().member(("t", 0)).commit(committed)


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ((100, 0, 100), ("OK", 0, 0, 100)),
        ((40, 0, 100), ("BEHIND", 60, 0, 40)),
        ((40, 40, 100), ("BEHIND", 60, 0, 0)),
        ((40, 100, 100), ("LOST", 60, 60, None)),
        ((40, 100, 500), ("LOST", 460, 60, None)),
        ((500, 0, 200), ("BEYOND_END", None, None, None)),
    ],
)
def test_the_offsets_decide_state_lag_loss_and_margin(offsets, expected):
    row = only(behind(*offsets))

    assert (row.state, row.lag, row.lost, row.margin) == expected


def test_a_member_that_has_the_partition_is_shown_with_host_and_client():
    row = only(behind(40, 0, 100))

    assert (row.member_id, row.host, row.client_id) == ("m1", "/10.0.0.1", "app")


def test_an_assigned_partition_without_a_commit_is_no_commit_and_has_no_lag():
    row = only(behind(40, 0, 100).commit(None))  # the later row is the one of the same place

    assert (row.state, row.committed, row.lag, row.log_end) == ("NO_COMMIT", None, None, 100)


def test_only_the_end_of_a_transaction_unread_is_caught_up():
    row = only(behind(99, 0, 100).unread(99, None), sla(max_lag_records=0, max_lag_seconds=0))

    assert (row.state, row.lag, row.lag_seconds, row.sla) == ("OK", 1, Seconds(0), "ok")


def test_a_topic_that_is_gone_leaves_orphans_and_so_does_a_partition_that_is_gone():
    gone = Made().group().commit(5)
    fewer = Made().topic().log(0, 9).group().commit(5, partition=3)

    assert [(only(made).state, only(made).lag) for made in (gone, fewer)] == [("ORPHAN", None)] * 2


def test_a_topic_that_a_stable_group_left_is_abandoned_and_breaks_no_sla():
    made = Made().topic().topic("u").log(0, 100).log(0, 9, topic="u").group().commit(40).commit(9, topic="u")
    left, kept = lag_rows(made.member(("u", 0), subscribed=["u"]).reading(), sla(max_lag_records=0))

    assert (left.topic, left.state, left.lag, left.sla) == ("t", "ABANDONED", 60, None)
    assert (kept.topic, kept.state, kept.sla) == ("u", "OK", "ok")


def test_a_topic_that_a_group_may_have_left_keeps_and_breaks_no_sla_and_the_reason_is_below_the_table():
    made = Made().topic().topic("u").log(0, 100).log(0, 9, topic="u").group().member(("u", 0)).commit(40).commit(9, topic="u")
    perhaps, read = lag_rows(made.reading(), sla(max_lag_records=0))

    assert (perhaps.state, perhaps.lag, perhaps.sla, read.state, read.sla) == ("NOT_ASSESSED", 60, None, "OK", None)
    assert notes(made.reading(), [perhaps, read]) == [
        "not every member tells which topics it reads, so it is not known whether the group still reads this one: g:t-0"
    ]


def test_what_one_member_tells_is_read_whatever_another_one_does_not_tell():
    made = Made().topic().topic("u").log(0, 100).log(0, 100, topic="u").group().commit(40).commit(40, topic="u")
    made.member(("t", 0), subscribed=["t"]).member(name="m2", subscribed=["t"])
    made.rows["members"][-1]["assignment"] = None
    rows = lag_rows(made.reading(), sla(max_lag_records=0))

    assert [(row.topic, row.state) for row in rows] == [("t", "BEHIND"), ("u", "NOT_ASSESSED")]


def test_a_group_without_members_is_judged_by_its_offsets():
    assert only(Made().topic().log(0, 100).group(state="Empty").commit(40)).state == "BEHIND"


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (partial(behind, 40, None, None), "the offsets of its log could not be read (not in the answer)"),
        (lambda: Made().topic().log(None, None, error="X").group().commit(5), "the offsets of its log could not be read (X)"),
        (lambda: Made().topic(error="X").group().commit(5), "its topic could not be read (X)"),
        (lambda: Made().topic().log(0, 9).group().commit(None, error="X"), "its commit could not be read (X)"),
        (lambda: Made().group().error("committed_offsets", "X", group_id="g"), "its commits could not be read (X)"),
        (
            lambda: Made().topic().log(0, 9).group().member(("t", 0)).error("committed_offsets", "X", group_id="g"),
            "its commits could not be read (X)",
        ),
    ],
)
def test_what_could_not_be_read_is_not_assessed_with_the_reason_and_never_lag_0(made, reason):
    row = only(made())

    assert (row.state, row.lag) == ("NOT_ASSESSED", None)
    assert row.reason == reason
    assert any(line.startswith(f"{reason}: g") for line in notes(made().reading(), [row]))


def test_seconds_are_the_age_of_the_first_unread_record():
    assert only(behind(40, 0, 100).unread(40, 42, 12.5)).lag_seconds == Seconds(12.5)


def test_after_a_loss_seconds_are_those_of_the_first_record_that_is_left():
    assert only(behind(40, 70, 100).unread(70, 70, 8)).lag_seconds == Seconds(8)


def test_a_record_from_the_future_makes_seconds_a_bound_and_never_negative():
    assert only(behind(40, 0, 100).unread(40, 40, -3600)).lag_seconds == Seconds(0, AT_LEAST)


def test_without_the_record_the_offsets_that_slas_demand_bound_the_seconds():
    refused = behind(40, 0, 100).unread(40, None, error="TOPIC_AUTHORIZATION_FAILED")

    assert only(refused).lag_seconds is None
    # A single older offset may be the end of a transaction, whatever follows it.
    assert only(refused.demanded(300, 41)).lag_seconds is None
    assert only(refused.demanded(300, 42).demanded(600, 41)).lag_seconds == Seconds(300, AT_LEAST)
    assert only(behind(40, 0, 100).demanded(300, 40)).lag_seconds == Seconds(300, AT_MOST)
    assert str(Seconds(300, AT_LEAST)) == ">=300"


@pytest.mark.parametrize("error", ["RECORD_BATCH_TOO_LARGE", "DEADLINE_EXCEEDED", "CORRUPT_MESSAGE", "UNSUPPORTED_COMPRESSION_TYPE"])
def test_a_record_that_hides_its_time_may_be_older_than_its_offset_tells(error):
    hidden = behind(40, 0, 100).unread(40, None, error=error)
    limit = sla(max_lag_seconds=300)

    assert (only(hidden.demanded(300, 30)).lag_seconds, only(hidden.demanded(300, 30), limit).sla) == (None, None)
    assert only(behind(40, 0, 100).unread(40, None, error=error).demanded(300, 42), limit).sla == "broken"


@pytest.mark.parametrize(
    ("made", "limits", "expected"),
    [
        (behind(40, 0, 100).demanded(300, 42), {"max_lag_seconds": 300}, "broken"),
        (behind(40, 0, 100).demanded(300, 41), {"max_lag_seconds": 300}, None),
        (behind(40, 0, 100).demanded(300, 41).unread(40, 40, 299), {"max_lag_seconds": 300}, "broken"),
        (behind(40, 0, 100).demanded(300, 40), {"max_lag_seconds": 300}, "ok"),
        (behind(40, 0, 100).demanded(300, 60).unread(40, 60, 10), {"max_lag_seconds": 300}, "ok"),
        (behind(40, 0, 100).demanded(300, 60).unread(40, 50, 400), {"max_lag_seconds": 300}, "broken"),
        (behind(40, 0, 100).demanded(300, 30).unread(40, 40, 400), {"max_lag_seconds": 300}, "broken"),
        (behind(40, 0, 100).demanded(300, 30).unread(40, 40, 300), {"max_lag_seconds": 300}, "ok"),
        (behind(40, 0, 100).demanded(300, 30).unread(40, 40, -1800), {"max_lag_seconds": 300}, None),
        (behind(40, 0, 100).demanded(300, 41).unread(40, 41, -1800), {"max_lag_seconds": 300}, None),
        (behind(40, 70, 100).demanded(300, 70), {"max_lag_seconds": 300}, "ok"),
        (behind(99, 0, 100), {"max_lag_records": 0}, None),
        (behind(99, 0, 100).demanded(300, 100), {"max_lag_seconds": 300}, None),
        (behind(99, 0, 100).demanded(300, 100).unread(99, 99, 400), {"max_lag_seconds": 300}, "broken"),
        (behind(40, 0, 100).demanded(300, None, "X"), {"max_lag_seconds": 300}, None),
        (behind(40, 0, 100).demanded(300, None, "X").unread(40, 40, 400), {"max_lag_seconds": 300}, "broken"),
        (behind(100, 0, 100), {"max_lag_seconds": 0}, "ok"),
        (behind(40, 0, 100), {"max_lag_records": 60}, "ok"),
        (behind(40, 0, 100), {"max_lag_records": 59}, "broken"),
        (behind(40, 90, 100), {"max_lag_records": 10}, "ok"),
        (behind(40, 0, 100), {"max_lag_records": 59, "max_lag_seconds": 300}, "broken"),
        (behind(40, 0, 100), {"max_lag_records": 60, "max_lag_seconds": 300}, None),
        (behind(40, 0, 100), {"max_no_progress_seconds": 60}, None),
        (behind(500, 0, 200), {"max_lag_records": 0}, None),
        # Whether a group reads with read_committed one reading cannot tell.
        (waiting(40, 100, stable=40), {"max_lag_records": 59}, None),
        (waiting(40, 100, stable=99), {"max_lag_records": 59}, None),
        (waiting(40, 100, stable=99), {"max_lag_records": 58}, "broken"),
        (waiting(40, 100, stable=40), {"max_lag_records": 60}, "ok"),
        (waiting(40, 100, stable=40).demanded(300, 41), {"max_lag_seconds": 300}, None),
        (waiting(40, 100, stable=42).demanded(300, 42), {"max_lag_seconds": 300}, "broken"),
        (waiting(40, 100, stable=40).demanded(300, 40), {"max_lag_seconds": 300}, "ok"),
    ],
)
def test_the_sla_is_ok_broken_or_not_known(made, limits, expected):
    assert only(made, sla(**limits)).sla == expected


def test_the_records_of_an_sla_are_counted_over_all_partitions_it_covers_and_one_unread_partition_leaves_it_open():
    two = behind(40, 0, 100).log(0, 100, partition=1).commit(40, partition=1)
    two.rows["topics"][0]["partition_count"] = 2
    half = behind(40, 0, 100).log(None, None, partition=1).commit(40, partition=1)
    half.rows["topics"][0]["partition_count"] = 2

    assert [row.sla for row in lag_rows(two.reading(), sla(max_lag_records=119))] == ["broken", "broken"]
    assert [row.sla for row in lag_rows(half.reading(), sla(max_lag_records=119))] == [None, None]
    assert [row.sla for row in lag_rows(half.reading(), sla(max_lag_records=59))] == ["broken", None]


def test_a_commit_beyond_the_end_leaves_the_records_of_its_group_open_unless_the_rest_breaks_the_sla():
    made = behind(40, 0, 100).log(0, 100, partition=1).commit(500, partition=1)
    made.rows["topics"][0]["partition_count"] = 2

    assert [row.sla for row in lag_rows(made.reading(), sla(max_lag_records=60))] == [None, None]
    assert [row.sla for row in lag_rows(made.reading(), sla(max_lag_records=59))] == ["broken", None]


def test_what_an_open_transaction_holds_back_is_in_the_lag_and_is_said_below_the_table():
    made = waiting(40, 100, stable=90)
    row = only(made)

    assert (row.state, row.lag, row.held) == ("BEHIND", 60, 10)
    assert notes(made.reading(), [row]) == [
        "LAG counts records that open transactions hold back from read_committed consumers: g:t-0 (10 of 60)"
    ]


def test_in_quiet_hours_no_sla_holds():
    quiet = {"days": ["fri"], "from": "22:00", "to": "02:00"}

    assert only(behind(40, 0, 100), sla(max_lag_records=0, quiet_hours=[quiet])).sla is None


def test_a_share_groups_start_offset_is_shown_as_its_position_and_named_below():
    made = Made().topic().log(0, 100).group(kind="share").member(("t", 0)).commit(40)

    assert (only(made).committed, only(made).lag) == (40, 60)
    assert notes(made.reading(), []) == ["of share groups, COMMITTED is the start offset, and LAG counts all records from there on: g"]


def test_what_is_missing_as_a_whole_is_said_below_the_table():
    made = behind(40, 90, 100).error("groups", "REQUEST_TIMED_OUT", broker_id=2)
    made.error("groups", "COORDINATOR_NOT_AVAILABLE", topic="__consumer_offsets", partition=7).unread(
        90, None, error="TOPIC_AUTHORIZATION_FAILED"
    )
    made.rows["groups"][0]["error"] = "GROUP_AUTHORIZATION_FAILED"

    assert notes(made.reading(), lag_rows(made.reading(), no_sla)) == [
        "groups are missing from this table: broker 2: why (REQUEST_TIMED_OUT)",
        "groups are missing from this table: __consumer_offsets-7: why (COORDINATOR_NOT_AVAILABLE)",
        "members not known (GROUP_AUTHORIZATION_FAILED): g",
        "LAG-SECONDS is not from the unread record itself: TOPIC_AUTHORIZATION_FAILED: t-0",
        "LAG counts lost records too, as kafka-consumer-groups does: what is left to read is LAG less LOST",
    ]
