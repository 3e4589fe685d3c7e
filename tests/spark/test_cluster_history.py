"""The cluster's wide row: columns from a series of snapshots, and feature levels."""

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import CLUSTER, READ_AT, READ_MS, Synthetic

from kafka_audit.policy import load_policy
from kafka_audit.store.history import read_history
from kafka_audit.store.layout import EvidenceRoot, new_id, seal_audit
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows.broker.configs import feature_levels
from spark_jobs.rows.build import wide_rows

pytestmark = pytest.mark.spark

RACKS = {1: "a", 2: "b", 3: "c"}
HOUR_MS = 3_600_000
ALONE = {"snapshots": 1, "history_ms": 0, "longest_gap_ms": None, "incomplete_snapshots": [], "unusable_snapshots": []}


def whole() -> Synthetic:
    return Synthetic().brokers(RACKS)


def past(hours: int, skew_ms: int = 5) -> Synthetic:
    """The cluster some hours ago, on a clock that the auditor's was ahead of."""
    cluster = whole()
    for row in cluster.tables["quorum"]:
        row["last_caught_up_timestamp_ms"] = READ_MS - hours * HOUR_MS - skew_ms
    return cluster


def test_one_snapshot_is_no_series(rows_of) -> None:
    row = rows_of(whole(), "cluster", columns=(*ALONE, "clock_skew_before_ms"))["cluster"]
    assert {name: row[name] for name in ALONE} == ALONE
    assert row["clock_skew_before_ms"] is None


def test_groups_that_are_all_gone_are_held_against_the_snapshot_before_of_the_same_scope(rows_of) -> None:
    counts = ("group_count", "group_count_before")
    narrow = whole().group("a", state="Empty")
    narrow.groups_in_scope = ["a"]
    earlier = {2: whole().group("a", state="Empty").group("b", state="Empty"), 1: narrow}
    row = rows_of(whole(), "cluster", earlier=earlier, columns=counts)["cluster"]
    assert tuple(row[name] for name in counts) == (0, 2)
    row = rows_of(whole().error("groups", "COORDINATOR_NOT_AVAILABLE", broker_id=2), "cluster", columns=counts)["cluster"]
    assert tuple(row[name] for name in counts) == (None, 0)


def test_groups_are_held_against_the_last_audit_and_not_against_a_later_snapshot(spark: SparkSession, tmp_path: Path) -> None:
    audited = whole().group("a", state="Empty").write(tmp_path, READ_AT - timedelta(hours=2))
    root, audit_id = EvidenceRoot(path=tmp_path), new_id(READ_AT, "audit")
    root.audit(CLUSTER, audit_id).path.mkdir(parents=True)
    seal_audit(root, CLUSTER, audit_id, {"snapshot": {"snapshot_id": audited.snapshot_id}})
    whole().write(tmp_path, READ_AT - timedelta(hours=1))
    snapshot = whole().write(tmp_path)
    evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
    row = wide_rows("cluster", evidence, load_policy()).select("group_count", "group_count_before").collect()[0]
    assert (row["group_count"], row["group_count_before"]) == (0, 1)


def test_gaps_silent_brokers_and_wrong_clocks_of_earlier_snapshots_are_seen(rows_of) -> None:
    silent, dead, late, untold = past(50), past(49), past(48, skew_ms=7000), past(47)
    silent.tables["brokers"][1]["answered"] = False
    dead.tables["brokers"][2] |= {"alive": False, "answered": False}
    untold.tables["quorum"].clear()
    earlier = {100: past(100), 50: silent, 49: dead, 48: late, 47: untold, 46: Synthetic()}
    columns = ("snapshots", "history_ms", "longest_gap_ms", "clock_skew_before_ms", "incomplete_snapshots")
    row = rows_of(whole(), "cluster", earlier=earlier, columns=columns)["cluster"]
    assert (row["snapshots"], row["history_ms"], row["longest_gap_ms"]) == (7, 100 * HOUR_MS, 50 * HOUR_MS)
    assert row["clock_skew_before_ms"] == 7000
    assert [text.split(": ", 1)[1] for text in row["incomplete_snapshots"]] == [
        "without broker 2",
        "without broker 3",
        "its clock could not be compared with the cluster's",
        "it names no broker",
    ]


def test_an_earlier_snapshot_that_was_changed_leaves_a_gap_and_is_named(spark: SparkSession, tmp_path: Path) -> None:
    for hours in (3, 2):
        past = whole().write(tmp_path, READ_AT - timedelta(hours=hours))
    past.dataset("topics").write_bytes(b"changed")
    snapshot = whole().write(tmp_path)
    evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
    row = wide_rows("cluster", evidence, load_policy()).select("snapshots", "longest_gap_ms", "unusable_snapshots").collect()[0]
    assert (row["snapshots"], row["longest_gap_ms"], len(row["unusable_snapshots"])) == (2, 3 * HOUR_MS, 1)
    assert row["unusable_snapshots"][0].startswith(f"{past.snapshot_id}: topics.parquet: its sha256 differs")


def feature(name: str, finalized: int | None, supported: int) -> dict:
    return {"name": name, "finalized_min": finalized, "finalized_max": finalized, "supported_min": 0, "supported_max": supported}


def test_a_feature_without_a_finalized_level_stands_at_zero_once_any_level_was_told(spark: SparkSession, tmp_path: Path) -> None:
    told, untold = whole(), whole()
    told.tables["cluster"][0]["features"] = [feature("metadata.version", 30, 30), feature("transaction.version", None, 2)]
    untold.tables["cluster"][0]["features"] = [feature("metadata.version", None, 30)]
    evidences = [Evidence(spark=spark, snapshot=one.write(tmp_path / name)) for name, one in (("told", told), ("untold", untold))]
    row = spark.range(1).select(*[feature_levels(one).alias(str(index)) for index, one in enumerate(evidences)]).collect()[0]
    assert row.asDict(recursive=True) == {
        "0": {
            "metadata.version": {"finalized": 30, "supported": 30},
            "transaction.version": {"finalized": 0, "supported": 2},
            "group.version": {"finalized": 0, "supported": 0},
        },
        "1": None,
    }
