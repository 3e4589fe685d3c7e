"""Which transactions were open at their newest record, by decoded batches of ``__transaction_state``."""

import json
import struct
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from coordinator_records import RAW_DDL, text, values
from pyspark.sql import SparkSession

from spark_jobs.commit_history.decode.batch import TRANSACTIONS, decode_batch
from spark_jobs.engine.tables import write_parquet
from spark_jobs.read_commits import holding_back

pytestmark = pytest.mark.spark

VALUES = values("transaction")
STARTED = datetime(2026, 11, 20, 20, 32, 57, tzinfo=timezone.utc)


Log = list[tuple[int, int, datetime, str, bytes | None]]


def kept(spark: SparkSession, history: Path, *batches: Log, first: int = 1) -> None:
    """Decoded batches of records: partition, offset, time, transactional id, value."""
    for number, log in enumerate(batches, first):
        rows = [(*place, struct.pack(">h", 0) + text(name), value) for *place, name, value in log]
        folder = history / "decoded" / f"{number:08d}"
        folder.mkdir(parents=True)
        write_parquet(spark.createDataFrame(rows, RAW_DDL), folder / "raw")
        (folder / "manifest.json").write_text(json.dumps(decode_batch(spark, TRANSACTIONS, folder / "raw", folder)))


ONGOING, PREPARED, ENDED = (VALUES[f"state_{number}", 1] for number in (1, 2, 4))


def test_the_newest_record_tells_which_transactions_hold_partitions_back(spark: SparkSession, tmp_path: Path) -> None:
    log = [("ended", ONGOING), ("b", ONGOING), ("ended", ENDED), ("a", ENDED), ("a", PREPARED), ("gone", ONGOING), ("gone", None)]
    records = [(0, at, STARTED, name, value) for at, (name, value) in enumerate(log)]
    kept(spark, tmp_path, records[:2], records[2:])
    shared = {"since": "2026-11-20T20:32:57.000Z", "partitions": [5]}
    found = holding_back(spark, tmp_path, "__consumer_offsets", [4, 5, 6])
    assert found == [{"transactional_id": "a", "state": "PrepareCommit", **shared}, {"transactional_id": "b", "state": "Ongoing", **shared}]
    assert holding_back(spark, tmp_path, "__consumer_offsets", [4]) == []
    assert holding_back(spark, tmp_path / "none", "__consumer_offsets", [5]) == []


def test_the_newest_record_of_a_partition_is_the_last_one_whatever_the_brokers_clock_said(spark: SparkSession, tmp_path: Path) -> None:
    later = STARTED + timedelta(hours=1)
    log: Log = [
        (0, 0, later, "ended", ONGOING),
        (0, 1, STARTED, "ended", ENDED),
        (0, 2, later, "open", ENDED),
        (0, 3, STARTED, "open", ONGOING),
    ]
    moved: Log = [(0, 9, STARTED, "moved", ONGOING), (1, 0, later, "moved", ENDED)]  # the topic got more partitions between the two
    kept(spark, tmp_path, log, moved)
    found = holding_back(spark, tmp_path, "__consumer_offsets", [5])
    assert found is not None and [each["transactional_id"] for each in found] == ["open"]


def test_once_batches_were_deleted_no_transaction_that_is_found_open_does_not_mean_that_none_is(
    spark: SparkSession, tmp_path: Path
) -> None:
    kept(spark, tmp_path, [(0, 0, STARTED, "open", ONGOING)], first=2)
    assert holding_back(spark, tmp_path, "__consumer_offsets", [4]) is None
    assert holding_back(spark, tmp_path, "__consumer_offsets", []) == []
    assert len(holding_back(spark, tmp_path, "__consumer_offsets", [5]) or []) == 1
