"""Behaviour tables of consecutive windows: what the newest window does not contain is taken from the previous one."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from commit_log import START, WEEK_MS, Log
from pyspark.sql import DataFrame, Row, SparkSession
from sealed_batch import seal
from snapshot_builder import Synthetic

from kafka_audit.store.behaviour_tables import Behaviour, open_behaviour
from kafka_audit.store.durable_files import write_json
from kafka_audit.times import stamp
from spark_jobs.commit_history.describe.behaviour_tables import Window, describe
from spark_jobs.commit_history.describe.commit_behaviour import commit_behaviour
from spark_jobs.commit_history.describe.group_behaviour import group_behaviour
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import SmallTables, table_of, write_parquet
from spark_jobs.rows.group.commit_behaviour import group_table, with_group_behaviour, with_partition_behaviour

pytestmark = pytest.mark.spark


def batch(
    spark: SparkSession, history: Path, name: str, commits: DataFrame, records: DataFrame, *, read_at: datetime = START, **read: int
) -> None:
    """A decoded batch and the manifest of its raw one, of partition 0 as ``read`` says, and of partition 3, which lost records."""
    write_parquet(commits.coalesce(1), history / "decoded" / name / "offset_commits.parquet")
    write_parquet(records.coalesce(1), history / "decoded" / name / "group_records.parquet")
    seal(history / "decoded" / name, rows={"undecoded": 0})
    lost = {"partition": 3, "start": 7, "end": 9, "lost": 2, "skipped": 0}
    whole = {"partition": 0, "start": 0, "end": 4, "lost": 0, "skipped": 0, **read}
    totals = {"expected": 12, "rows": 10, "lost": 2, "skipped": 0}
    write_json(history / "raw" / name / "manifest.json", {"partitions": [whole, lost], "totals": totals, "read_at": read_at.isoformat()})
    write_json(history / "source.json", {"cluster_id": "c", "topic_id": "t"})


def test_what_a_window_does_not_show_comes_from_the_tables_before(
    spark: SparkSession, recorded_tables: dict[str, DataFrame], tmp_path: Path
) -> None:
    log = Log()
    for at, committed in enumerate((5, 6, 7)):
        log.add("idle", at * 5000, committed)
    log.add("s-java-auto5", 0, 9)  # its members leave within two hours
    left = recorded_tables["group_records"].where("group_id = 's-java-auto5' or group_id = 's-kpy-auto5'")
    joined = left.where("group_id = 's-kpy-auto5' and size(group_metadata.members) > 0").limit(1)
    batch(spark, tmp_path, "00000001", log.table(spark), left.where("group_id = 's-java-auto5'").union(joined))
    nothing = recorded_tables["group_records"].limit(0)
    day = timedelta(days=1)

    def tables_at(days: float) -> tuple[dict[str, Row], dict[str, Row], dict[str, Any]]:
        made = describe(spark, tmp_path, Window(end=START + days * day, length=day, retention_ms=WEEK_MS))
        assert made is not None
        read = [spark.read.parquet(str(made / f"{name}.parquet")).collect() for name in ("groups", "group_partitions")]
        groups, partitions = ({row.group_id: row for row in rows} for rows in read)
        return groups, partitions, json.loads((made / "manifest.json").read_text())

    first = tables_at(0.5)
    assert (first[1]["idle"].commits, first[1]["idle"].committed, first[2]["before"]) == (3, 7, None)
    assert (first[2]["totals"]["lost"], first[2]["gaps"]) == (2, [{"batch": "00000001", "partition": 3, "start": 7, "lost": 2}])
    empty = first[0]["s-java-auto5"]
    assert (empty.member_count, empty.empty_since is not None, empty.session_timeout_ms) == (0, True, 45_000)
    assert first[0]["s-kpy-auto5"].empty_since is None

    tables_at(3)
    third = tables_at(5)  # nothing new was read, and nothing is in the window
    assert (third[1]["idle"].commits, third[1]["idle"].committed) == (0, 7)
    assert third[1]["idle"].last_commit == first[1]["idle"].last_commit
    assert (third[0]["s-java-auto5"].empty_since, third[0]["s-java-auto5"].rebalances) == (empty.empty_since, 0)
    assert third[0]["s-kpy-auto5"].member_count == 1
    assert (third[2]["sources"], third[2]["observed_from"], third[2]["before"]["folder"]) == ([], None, "20261123T200000Z")

    later = Log(first_offset=4)
    later.add("idle", 7.3 * 86_400_000, 3)
    later.add("s-java-auto5", 7.3 * 86_400_000, None)
    batch(spark, tmp_path, "00000002", later.table(spark), nothing, read_at=START + 7.5 * day, start=4, end=6)
    last = tables_at(7.5)
    again = tables_at(7.6)
    idle, goes = last[1]["idle"], last[1]["s-java-auto5"]
    assert (idle.commits, idle.rewinds, idle.rewound_from, idle.longest_gap_ms) == (1, 1, 7, round(7.3 * 86_400_000) - 10_000)
    assert (goes.removed, goes.removed_at is not None) == ("expired", True)
    assert (again[1]["s-java-auto5"].removed, again[1]["s-java-auto5"].removed_reason) == (goes.removed, goes.removed_reason)
    assert (again[1]["idle"].rewinds, again[1]["idle"].committed) == (1, 3)
    assert [source["batch"] for source in last[2]["sources"]] == ["00000002"]
    assert "s-java-auto5" not in tables_of_carried(spark, tmp_path)


def tables_of_carried(spark: SparkSession, history: Path) -> set[str]:
    """The groups with an offset in tables of a window in which nothing happened."""
    made = describe(spark, history, Window(end=START + timedelta(days=10), length=timedelta(days=1), retention_ms=WEEK_MS))
    return {row.group_id for row in spark.read.parquet(str(made / "group_partitions.parquet")).collect()}  # type: ignore[operator]


def test_a_hole_and_what_is_held_back_reach_the_groups_whose_partition_it_is(
    spark: SparkSession, recorded_tables: dict[str, DataFrame], tmp_path: Path
) -> None:
    hour = timedelta(hours=1)

    def described(hours: float, *held_back: int) -> tuple[dict[str, Any], dict[str, Any], Behaviour, tuple[str | None, ...]]:
        window = Window(end=START + hours * hour, length=24 * hour, retention_ms=WEEK_MS, partitions=1, held_back=frozenset(held_back))
        made = describe(spark, tmp_path, window)
        assert made is not None
        used = open_behaviour(made)
        snapshot = Synthetic().write(tmp_path / stamp(window.end), window.end + hour / 2)
        evidence = Evidence(spark=spark, snapshot=snapshot, behaviour=used, small_cluster=True)
        with evidence.tables.settings():
            rows = table_of(spark, [("billing",)], "group_id string")
            (group,) = with_group_behaviour(rows, evidence).collect()
            keys = rows.selectExpr("group_id", "'orders' topic", "0 partition")
            (partition,) = with_partition_behaviour(keys, evidence).collect()
            table = group_table(evidence)
            assert table is not None
            (shown,) = table.select("incomplete_until", "lost_until", "held_back_since").collect()
        return group.asDict(recursive=True), partition.asDict(recursive=True), used, tuple(shown)

    log = Log()
    for at in range(4):
        log.add("billing", at * 3_600_000, 10 + at)
    nothing = spark.createDataFrame([], recorded_tables["group_records"].schema)
    batch(spark, tmp_path, "00000001", log.table(spark), nothing)
    group, partition, _, shown = described(4)
    assert shown == (None, None, None)
    assert (group["behaviour"]["hours"], group["behaviour"]["window_hours"], partition["behaviour"]["hours"]) == (4.0, 24.0, 4.0)
    assert (partition["behaviour"]["as_of"], partition["behaviour"]["lost_ms"]) == ("2026-11-21 00:00:00Z", None)

    late = Log(first_offset=4)
    late.add("billing", 4.5 * 3_600_000, 20)
    batch(spark, tmp_path, "00000002", late.table(spark), nothing, start=4, end=7, lost=2)
    group, partition, used, shown = described(5)
    assert shown == ("2026-11-21 01:00:00Z", "2026-11-21 01:00:00Z", None)
    assert (group["behaviour"]["hours"], partition["behaviour"]["lost_ms"], partition["behaviour"]["committed"]) == (0.0, 1_800_000, 20)
    assert used.manifest["gaps"][0]["batch"] == "00000001"

    group, partition, _, shown = described(6, 0)  # an open transaction, since the reading at 5 h
    assert (group["behaviour"]["as_of"], group["behaviour"]["hours"]) == ("2026-11-21 01:00:00Z", 0.0)
    assert shown[2] == "2026-11-21 01:00:00Z"
    group, partition, *_ = described(8, 0)
    assert (group["behaviour"], partition["behaviour"]) == (None, None)
    assert group["behaviour_reason"].startswith("the commit history of the group ends 2026-11-21 01:00:00Z: what was written since is held")

    last = Log(first_offset=7)
    last.add("billing", 5.5 * 3_600_000, 7)  # it was held back until now, and it went back
    batch(spark, tmp_path, "00000003", last.table(spark), nothing, start=7, end=8)
    group, partition, *_ = described(40)
    assert (partition["behaviour"]["committed"], group["behaviour"]["hours"]) == (7, 0.0)  # the window has no record
    after = Log(first_offset=8)
    after.add("billing", 30 * 3_600_000, 8)
    batch(spark, tmp_path, "00000004", after.table(spark), nothing, start=8, end=9)
    group, partition, *_ = described(41)
    assert (partition["behaviour"]["commits"], group["behaviour"]["hours"]) == (1, 11.0)


def test_members_of_the_newer_protocols_are_remembered_one_by_one(spark: SparkSession, recorded_tables: dict[str, DataFrame]) -> None:
    records = recorded_tables["group_records"].where("record_type in (3, 5) and group_id = 's-java-auto5-848'")
    joins = records.where("record_type = 5 and not tombstone").limit(1)
    none = spark.createDataFrame([], partition_schema(spark))
    first = group_behaviour(joins.union(records.where("record_type = 3 and not tombstone").limit(1)), none)
    before = SmallTables(spark=spark).keep(first)  # as it is read back from the tables of the window before
    assert [row.member_count for row in before.collect()] == [1]
    still = group_behaviour(records.where("record_type = 3 and not tombstone").limit(1), none, before).collect()
    gone = group_behaviour(records.where("record_type = 5 and tombstone"), none, before).collect()
    assert ([row.member_count for row in still], [row.member_count for row in gone]) == ([1], [0])


def partition_schema(spark: SparkSession) -> Any:
    nothing = table_of(spark, [], "group_id string, empty_since timestamp")
    return commit_behaviour(Log().table(spark), nothing, WEEK_MS).schema
