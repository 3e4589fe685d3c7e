"""Rows of the lag history: what one sample proves alone, and what needs the previous sample."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from snapshot_builder import HOUR_MS, READ_AT, READ_MS, Synthetic

from kafka_audit.store.sealed import OFFSETS
from spark_jobs.engine.tables import Tables
from spark_jobs.lag.days import LagWindow, group_partition_rows, group_rows
from spark_jobs.lag.samples import WindowSamples
from spark_jobs.lag.series import partition_figures

pytestmark = pytest.mark.spark


def taken(spark: SparkSession, folder: Path, samples: Sequence[tuple[datetime, Synthetic]]) -> tuple[list[Row], dict[str, list[Row]]]:
    """Rows of partitions, and of each group, of samples that are planned an hour apart."""
    written = [one.write(folder, at, OFFSETS) for at, one in samples]
    found = group_partition_rows(Tables(spark=spark), written, None, HOUR_MS)
    groups: dict[str, list[Row]] = {}
    for row in group_rows(found).orderBy("taken_ms").collect():
        groups.setdefault(row.group_id, []).append(row)
    return found.orderBy("taken_ms", "group_id").collect(), groups


def test_time_without_progress_is_known_only_since_something_moved(spark: SparkSession, tmp_path: Path) -> None:
    # The third sample is half an interval late after a lost run, which is no gap; the fifth comes after one.
    commits = {"still": [5, 5, 5, 5, 5], "moved": [5, 6, 6, 6, 6], "idle": [90, 90, 90, 90, 90]}
    samples = []
    for index, hour in enumerate([0.0, 1.0, 3.5, 4.5, 7.5]):
        one = Synthetic()
        for group, committed in commits.items():
            one.topic(group).group(group, assigned=[(group, 0)]).commit(group, group, committed[index])
            one.offsets(group, log_start=0, log_end=90 if index < 2 else 100)
        samples.append((READ_AT + timedelta(hours=hour), one))
    _, groups = taken(spark, tmp_path, samples)
    assert [row.still_unknown for row in groups["still"]] == [1, 1, 1, 1, 1]
    assert [row.still_unknown for row in groups["moved"]] == [1, 0, 0, 0, 1]
    assert [row.still_unknown for row in groups["idle"]] == [0, 0, 0, 0, 1]
    third = READ_MS + 3.5 * HOUR_MS
    assert [row.still_since_ms for row in groups["still"]] == [None, READ_MS, READ_MS, READ_MS, None]
    assert [row.still_since_ms for row in groups["idle"]] == [None, None, None, third, None]


OVER, KEPT, NEITHER = (60, None), (None, 60), (None, None)
# Of a log from 0 to 100 the limit's offset is 50.
CASES: dict[str, tuple[dict[str, Any], int, dict[str, Any] | None, tuple[int | None, int | None]]] = {
    "below the offset": ({}, 40, None, OVER),
    "at the offset": ({}, 50, None, KEPT),
    "one offset below it, which may end a transaction": ({}, 49, None, NEITHER),
    "one record below it": ({}, 49, {"record_offset": 49, "timestamp_ms": READ_MS}, OVER),
    "two offsets below it": ({}, 48, None, OVER),
    "what was lost is not unread": ({"log_start": 50}, 10, None, KEPT),
    "the log start is not known": ({"log_start": None}, 10, None, NEITHER),
    "nothing is left to read": ({"log_start": 100}, 10, {"offset": 100}, KEPT),
    "beyond the end": ({}, 120, None, NEITHER),
    "only ends of transactions": ({}, 40, {"record_offset": None}, NEITHER),
    "compacted up to the offset": ({}, 40, {"record_offset": 60, "timestamp_ms": READ_MS}, KEPT),
    "an old record behind a new one": ({}, 60, {"record_offset": 60, "timestamp_ms": READ_MS - 70_000}, OVER),
    "a record that is too large to be read": ({}, 60, {"error": "RECORD_BATCH_TOO_LARGE"}, (None, None)),
    "a late record that is damaged": ({}, 40, {"error": "CORRUPT_MESSAGE"}, OVER),
    "a record that may not be read": ({}, 60, {"error": "TOPIC_AUTHORIZATION_FAILED"}, KEPT),
    "a record without a time": ({}, 60, {"record_offset": 60, "timestamp_ms": -1}, KEPT),
    # Brokers name a record of the future for any time, so what lies behind it may be of any age.
    "a record of the future": ({}, 60, {"record_offset": 60, "timestamp_ms": READ_MS + 1}, NEITHER),
    "a late record of the future": ({}, 40, {"record_offset": 40, "timestamp_ms": READ_MS + HOUR_MS}, OVER),
}


def test_a_limit_in_seconds_is_broken_or_kept_by_the_first_unread_record(spark: SparkSession, tmp_path: Path) -> None:
    one = Synthetic()
    for group, (log, committed, record, _) in CASES.items():
        one.topic(group).group(group, assigned=[(group, 0)]).commit(group, group, committed)
        one.offsets(group, **{"log_start": 0, "log_end": 100, **log})
        one.add("sla_offsets", topic=group, partition=0, max_lag_seconds=60, timestamp_ms=READ_MS - 60_000, offset=50, read_at=READ_AT)
        if record is not None:
            one.add("first_unread", **{"topic": group, "partition": 0, "offset": committed, "read_at": READ_AT, **record})
    found, groups = taken(spark, tmp_path, [(READ_AT, one)])
    assert {row.group_id: (row.over_seconds, row.kept_seconds) for row in found} == {name: case[3] for name, case in CASES.items()}
    assert groups["the log start is not known"][0].lost is None
    assert groups["what was lost is not unread"][0].lost == 40


def test_figures_of_offsets_that_are_not_known_are_not_known(spark: SparkSession, tmp_path: Path) -> None:
    one = Synthetic().topic("t").group("g", assigned=[("t", 0)]).commit("g", "t", 10).offsets("t", log_start=None, log_end=100)
    found = group_partition_rows(Tables(spark=spark), [one.write(tmp_path, READ_AT, OFFSETS)], None, HOUR_MS)
    samples = WindowSamples(
        days=(), raw=(), whole=(), times=(READ_MS,), first_ms=READ_MS, last_ms=READ_MS + HOUR_MS, interval_ms=HOUR_MS, record={}
    )
    figures = partition_figures(LagWindow(group_partitions=found, groups=group_rows(found), samples=samples)).collect()[0]
    assert (figures.worst_lost, figures.produced, figures.consumed) == (None, None, None)


def test_what_a_group_may_have_left_is_unknown_in_its_sums_and_what_it_left_is_not_in_them(spark: SparkSession, tmp_path: Path) -> None:
    one = Synthetic().topic("read").topic("other").offsets("read", log_start=0, log_end=100).offsets("other", log_start=50, log_end=100)
    for group, subscribed in {"left": ["read"], "perhaps": None}.items():
        one.group(group, assigned=[("read", 0)], subscribed=subscribed).commit(group, "read", 90).commit(group, "other", 40)
    one.group("level", assigned=[("read", 0)]).commit("level", "other", 100)
    _, groups = taken(spark, tmp_path, [(READ_AT, one)])
    figures = {(row.group_id, row.topic): (row.partitions, row.unknown, row.lag, row.lost) for rows in groups.values() for row in rows}
    assert figures == {
        ("left", "read"): (1, 0, 10, 0),
        ("perhaps", "read"): (1, 0, 10, 0),
        ("perhaps", "other"): (1, 1, None, None),
        ("level", "other"): (1, 0, 0, 0),
    }


def test_before_an_open_transaction_neither_seconds_nor_a_standstill_are_proven(spark: SparkSession, tmp_path: Path) -> None:
    def cluster(moved: int) -> Synthetic:
        one = Synthetic()
        for group, committed in {"reached": 60, "ahead": 50}.items():
            one.topic(group).group(group, assigned=[(group, 0)]).commit(group, group, committed - moved)
            one.offsets(group, log_start=0, log_end=100, last_stable=60)
            one.add("sla_offsets", topic=group, partition=0, max_lag_seconds=60, timestamp_ms=READ_MS, offset=90, read_at=READ_AT)
        return one

    samples = [(READ_AT + timedelta(hours=hour), cluster(5 if hour == 0 else 0)) for hour in range(3)]
    _, groups = taken(spark, tmp_path, samples)
    last = {group: rows[-1] for group, rows in groups.items()}
    figures = {name: (row.lag, row.held, row.over_seconds, row.over_held_seconds, row.still_since_ms) for name, row in last.items()}
    assert figures == {"reached": (40, 40, None, 60, None), "ahead": (50, 40, 60, None, READ_MS + HOUR_MS)}
    assert {group: row.still_unknown for group, row in last.items()} == {"reached": 1, "ahead": 0}
    # A read_committed group has nothing to read there, so it is neither late nor stands still.
    kept = {name: (row.kept_seconds, row.kept_committed_seconds, row.waiting_unknown) for name, row in last.items()}
    assert kept == {"reached": (None, 0, 1), "ahead": (None, None, 0)}


def test_a_standstill_begins_when_there_is_something_to_read(spark: SparkSession, tmp_path: Path) -> None:
    """A group stands before a marker, before one offset that may be one, and before an open transaction; records follow in the second hour."""

    def cluster(hour: int) -> Synthetic:
        one, is_first = Synthetic(), hour == 1
        for group, stable in {"marker": None, "perhaps": None, "held": 99}.items():
            end = 100 if is_first else 110
            one.topic(group).group(group, assigned=[(group, 0)]).commit(group, group, 50 if hour == 0 else 99)
            one.offsets(group, log_start=0, log_end=end, last_stable=stable if stable and is_first else end)
            if group != "perhaps":
                found = {} if group == "marker" and is_first else {"record_offset": 100 if group == "marker" else 99}
                one.add("first_unread", topic=group, partition=0, offset=99, read_at=READ_AT, **found)
        return one

    _, groups = taken(spark, tmp_path, [(READ_AT + timedelta(hours=hour), cluster(hour)) for hour in range(4)])
    second = READ_MS + 2 * HOUR_MS
    since = [[row.still_since_ms for row in groups[group]] for group in ("marker", "perhaps", "held")]
    assert since == [[None, None, None, second]] * 3
    # Whether "perhaps" and "held" had something to read in the first hour is not known.
    unknown = {group: [row.still_unknown for row in rows] for group, rows in groups.items()}
    assert unknown == {"marker": [1, 0, 0, 0], "perhaps": [1, 0, 1, 1], "held": [1, 0, 1, 1]}
