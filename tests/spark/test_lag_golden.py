"""The golden table through the wide rows of an audit and the rows of the lag history, which must say the same."""

from typing import Any

import pytest
from lag_golden import GOLDEN, MARKERS, subscription_of
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from snapshot_builder import HOUR_MS, READ_AT, READ_MS, Synthetic

from kafka_audit.policy import load_policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.lag.days import group_partition_rows
from spark_jobs.lag.positions import held_unread, may_be_marker, unread
from spark_jobs.rows.group.group_partition import build

pytestmark = pytest.mark.spark

_STATES = {"INSUFFICIENT_HISTORY": "BEHIND"}
"""The status over a window, in the words of one reading: a single sample says no more than that."""


def golden_cluster() -> Synthetic:
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
    one.topic("elsewhere").offsets("elsewhere", log_start=0, log_end=0, last_stable=0)
    for name, case in GOLDEN.items():
        one.group(name, state=case.state).commit(name, name, case.committed)
        if case.listed:
            one.topic(name, partitions=case.partitions)
        if case.listed and case.partitions:
            one.offsets(name, log_start=case.log[0], log_end=case.log[1], last_stable=case.log[1] if case.stable is None else case.stable)
        if case.state != "Empty" and case.described:
            places = None if case.assigned is None else [{"topic": name if case.assigned else "elsewhere", "partition": 0}]
            subscribed = subscription_of(case, name)
            one.add("members", group_id=name, member_id="m", client_id="c", assignment=places, subscribed_topics=subscribed)
        if case.unread is not None:
            found = {} if case.unread == MARKERS else {"record_offset": case.unread, "timestamp_ms": READ_MS - 5000}
            one.add("first_unread", topic=name, partition=0, offset=case.position, read_at=READ_AT, **found)
    # In an audit's own snapshot the header of the last batch tells, too, that it ends a transaction.
    one.topic("batch").offsets("batch", log_start=0, log_end=100, last_stable=100)
    one.group("batch", assigned=[("batch", 0)]).commit("batch", "batch", 99)
    return one.add("last_batches", topic="batch", partition=0, base_offset=99, last_offset=99, is_control=True, read_at=READ_AT)


Rows = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def found(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> tuple[Rows, Rows]:
    """By group: rows of group_partition, and rows of the lag history, with the most and the least records unread."""
    snapshot = golden_cluster().write(tmp_path_factory.mktemp("root"))
    evidence = Evidence(spark=spark, snapshot=snapshot, small_cluster=True)
    figures = ("position", "lag", "lost", "beyond_end", "only_markers_unread", "status", "unread", "abandoned", "has_commit")
    with evidence.tables.settings():
        wide = build(evidence, load_policy()).where("topic = group_id").select("group_id", *figures)
        kept = group_partition_rows(evidence.tables, [snapshot], None, HOUR_MS)
        kept = kept.withColumns({"most": unread(), "held": held_unread(), "perhaps": may_be_marker(unread(), F.col("only_markers"))})
        first, second = ({row["group_id"]: row.asDict() for row in one.collect()} for one in (wide, kept))
    return first, second


@pytest.mark.parametrize("name", GOLDEN)
def test_a_standing_in_the_rows_of_an_audit(name: str, found: tuple[Rows, Rows]) -> None:
    case, row = GOLDEN[name], found[0][name]
    state = "BEYOND_END" if (row["beyond_end"] or 0) > 0 else _STATES.get(row["status"], row["status"])

    assert (state, row["position"], row["lag"], row["only_markers_unread"]) == (case.expected, case.position, case.lag, case.only_markers)
    assert row["unread"] == (case.records[1] if case.records else None)
    if case.position is not None:
        assert (row["lost"], row["beyond_end"]) == (case.lost, case.beyond_end)


@pytest.mark.parametrize("name", [name for name, case in GOLDEN.items() if case.committed is not None])
def test_a_standing_in_the_lag_history(name: str, found: tuple[Rows, Rows]) -> None:
    case, row = GOLDEN[name], found[1][name]

    counts = {"ABANDONED": False, "ORPHAN": False, "NOT_ASSESSED": None if case.records else True}
    assert row["counts"] is counts.get(case.expected, True)
    assert row["most"] == (case.records[1] if case.records else None)
    if case.records is not None:
        assert (row["most"] if row["perhaps"] is False else 0) - row["held"] == case.records[0]


def test_an_audit_and_the_lag_history_count_the_same_records(found: tuple[Rows, Rows]) -> None:
    wide, kept = found
    assert {name: row["unread"] for name, row in wide.items() if row["has_commit"]} == {name: row["most"] for name, row in kept.items()}
    assert (wide["batch"]["unread"], wide["batch"]["only_markers_unread"]) == (0, True)
    assert {name for name, row in wide.items() if row["abandoned"]} == {"left", "topic-is-gone", "partition-is-gone"}
    assert {name for name, row in wide.items() if row["abandoned"] is None} == {
        "perhaps-left",
        "perhaps-left-with-a-loss",
        "a-member-did-not-tell",
        "no-member-was-described",
    }
