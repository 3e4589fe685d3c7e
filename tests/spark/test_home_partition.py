"""Which partition of the offsets topic holds a group's records, against what Kafka wrote and what Java computes."""

import random

import pytest
from coordinator_records import recorded_rows, tables
from pyspark.sql import SparkSession

from spark_jobs.commit_history.describe.read_coverage import with_home_partition

pytestmark = pytest.mark.spark


def test_a_group_is_sent_to_the_partition_that_kafka_computes(spark: SparkSession) -> None:
    found = tables(recorded_rows())
    seen = {(row.group_id, row.log_partition) for name in ("offset_commits", "group_records") for row in found[name]}
    assert len(seen) > 20
    groups = spark.createDataFrame(sorted(seen), "group_id string, log_partition int")
    assert with_home_partition(groups, 50).where("home_partition <> log_partition").collect() == []


def test_the_hash_of_a_group_id_is_javas(spark: SparkSession) -> None:
    pick = random.Random(3)
    alphabet = [*"abz-._ \n", "é", "漢", "\U0001f600", "\uffff"]
    ids = ["", "a", "polygenelubricants", *("".join(pick.choices(alphabet, k=pick.randint(1, 40))) for _ in range(300))]
    found = with_home_partition(spark.createDataFrame([(each,) for each in ids], "group_id string"), 2**31 - 1)
    assert {row.group_id: row.home_partition for row in found.collect()} == {each: java_partition(each, 2**31 - 1) for each in ids}


def java_partition(group: str, partitions: int) -> int:
    units = group.encode("utf-16-be")
    code = 0
    for i in range(0, len(units), 2):
        code = (code * 31 + int.from_bytes(units[i : i + 2], "big")) & 0xFFFFFFFF
    signed = code - 2**32 if code >= 2**31 else code
    return (0 if signed == -(2**31) else abs(signed)) % partitions
