"""What contradicts itself in a dataset becomes null with a reason; everything else stays as it was."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
import pytest

from kafka_audit.collect.clocks import clock_skew_ms
from kafka_audit.collect.contradictions import by_one_clock, consistent, looked_at
from kafka_audit.collect.datasets import DATASETS, QUORUM

AT = datetime(2026, 11, 20, 23, 15, tzinfo=timezone.utc)
MS = int(AT.timestamp() * 1000)
WINDOW = AT, AT + timedelta(seconds=2)
PLACE = {"topic": "t", "partition": 0}
LOG = {**PLACE, "log_start": 5, "last_stable": 9, "log_end": 10}


def table(name: str, *rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([{"read_at": AT, **row} for row in rows], schema=DATASETS[name].schema)


@pytest.mark.parametrize(
    ("name", "rows"),
    [
        ("partitions", [{**PLACE, "leader": -1, "replicas": [1, 2], "isr": []}]),
        ("partitions", [{**PLACE, "leader": 2, "replicas": [1, 2], "isr": [2]}, {"topic": "t", "partition": 1, "error": "refused"}]),
        ("partitions", [{**PLACE, "leader": 1, "replicas": None, "isr": [1]}]),
        ("offsets", [{**PLACE, "log_start": 5, "last_stable": 5, "log_end": 5}, {"topic": "t", "partition": 1, "log_end": 3}]),
        ("committed_offsets", [{**PLACE, "group_id": "g", "committed": -1}, {**PLACE, "group_id": "h"}]),
        ("producers", [{**PLACE, "producer_id": 1, "last_timestamp_ms": MS + 10**7, "current_txn_start_offset": -1}]),
        ("transactions", [{"transactional_id": "t", "state": "Ongoing", "start_time_ms": MS + 30_000}]),
        ("acls", []),
    ],
)
def test_sound_evidence_stays_the_same_table(name: str, rows: list[dict[str, Any]]) -> None:
    whole = table(name, *rows)
    assert consistent(name, whole, WINDOW)[0] is whole
    looked = whole.select(looked_at(name))
    assert consistent(name, looked, WINDOW) == (looked, [])


@pytest.mark.parametrize(
    ("name", "row", "gone", "kept", "said"),
    [
        ("partitions", {**PLACE, "leader": 9, "replicas": [1, 2], "isr": [1]}, "leader replicas isr", "topic", "broker 9, is not among"),
        (
            "partitions",
            {**PLACE, "leader": 1, "replicas": [1, 2], "isr": [1, 3]},
            "leader replicas isr",
            "topic",
            "[1, 3] are not all among",
        ),
        ("offsets", {**LOG, "log_start": 11}, "log_start last_stable log_end", "read_at", "log start 11, last stable offset 9, log end 10"),
        ("offsets", {**LOG, "last_stable": 12}, "log_start last_stable log_end", "read_at", "before its last stable offset"),
        ("offsets", {**LOG, "log_start": -1}, "log_start last_stable log_end", "read_at", "an offset is negative"),
        ("offsets", {**LOG, "read_at": AT - timedelta(hours=1)}, "log_start log_end", "read_at", "it was read at 2026-11-20T22:15:00"),
        ("committed_offsets", {**PLACE, "group_id": "g", "committed": -2}, "committed", "group_id", "committed is -2"),
        ("first_unread", {**PLACE, "offset": 7, "record_offset": 6}, "record_offset", "offset", "is said to be at 6"),
        (
            "transactions",
            {"transactional_id": "x", "state": "Ongoing", "start_time_ms": MS + 3_602_000},
            "start_time_ms",
            "state",
            "transactional_id x: start_time_ms lies 3,600 s after the snapshot's end",
        ),
        (
            "producers",
            {**PLACE, "producer_id": 1, "last_timestamp_ms": MS + 3_602_000, "current_txn_start_offset": 4},
            "last_timestamp_ms",
            "current_txn_start_offset",
            "producer_id 1: last_timestamp_ms lies 3,600 s after",
        ),
    ],
)
def test_a_row_that_contradicts_itself_says_nothing_but_why(name: str, row: dict[str, Any], gone: str, kept: str, said: str) -> None:
    found, (error,) = consistent(name, table(name, row), WINDOW)
    (judged,) = found.to_pylist()
    assert [judged[column] for column in gone.split()] == [None] * len(gone.split())
    assert judged[kept] is not None
    assert judged.get("error", "CONTRADICTION") == "CONTRADICTION"
    assert (error["dataset"], error["error"], error["topic"]) == (name, "CONTRADICTION", row.get("topic"))
    assert said in error["message"]


def test_different_answers_about_the_same_leave_what_they_agree_on() -> None:
    group = {"group_id": "g", "state": "Stable", "coordinator_id": 1}
    found, errors = consistent("groups", table("groups", group, {**group, "coordinator_id": 2}, {**group, "group_id": "h"}), WINDOW)
    assert [(row["group_id"], row["state"], row["coordinator_id"]) for row in found.to_pylist()] == [
        ("g", "Stable", None),
        ("h", "Stable", 1),
    ]
    assert [(error["dataset"], error["group_id"]) for error in errors] == [
        (name, "g") for name in ("groups", "members", "committed_offsets")
    ]
    assert errors[0]["message"] == "2 answers about the same differ in coordinator_id: 1 or 2"


def test_equal_answers_are_one_answer() -> None:
    found, errors = consistent("offsets", table("offsets", LOG, {**LOG, "read_at": AT + timedelta(seconds=1)}), WINDOW)
    assert (found.num_rows, errors) == (1, [])


def test_clocks_are_compared_by_the_time_that_the_quorums_leader_tells() -> None:
    leader = {"replica_id": 1, "is_leader": True, "last_caught_up_timestamp_ms": MS - 3_600_000}
    assert clock_skew_ms(table(QUORUM.name, {"replica_id": 2, "is_leader": False}, leader)) == 3_600_000
    assert clock_skew_ms(table(QUORUM.name, {**leader, "last_caught_up_timestamp_ms": -1})) is None


def test_times_of_two_clocks_are_not_compared() -> None:
    found, errors = by_one_clock("offsets", table("offsets", {**LOG, "headroom_offset": 7, "max_timestamp_ms": 8}), 3_600_000)
    (row,) = found.to_pylist()
    assert (row["headroom_offset"], row["max_timestamp_ms"], row["log_end"]) == (None, None, 10)
    assert {error["dataset"] for error in errors} == {
        f"offsets.{name}" for name in ("headroom_offset", "headroom_timestamp_ms", "max_timestamp_ms")
    }
    assert "3,600 s apart" in errors[0]["message"]


def test_rows_that_are_told_twice_leave_the_others_and_their_order_as_they_were() -> None:
    rows = [{"topic": name, "partition": 0, "leader": 1, "replicas": [1, 2], "isr": [1]} for name in "abcd"]
    other = {**rows[1], "leader": 2, "isr": [2]}
    found, (error,) = consistent("partitions", pa.concat_tables([table("partitions", *rows), table("partitions", rows[0], other)]), WINDOW)
    assert found["topic"].to_pylist() == ["a", "b", "c", "d"]
    assert found["leader"].to_pylist() == [1, None, 1, 1]
    assert found["replicas"].to_pylist() == [[1, 2]] * 4
    assert (error["topic"], "leader: 1 or 2; isr: [1] or [2]" in error["message"]) == ("b", True)
