"""How often a group rebalanced, from the generations and epochs in its records."""

from datetime import datetime, timezone

import pytest
from commit_log import WEEK_MS, Log
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from spark_jobs.commit_history.describe.commit_behaviour import commit_behaviour
from spark_jobs.commit_history.describe.group_behaviour import group_behaviour
from spark_jobs.engine.tables import table_of

pytestmark = pytest.mark.spark

NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)


def lives(records: DataFrame) -> Row:
    spark = records.sparkSession
    nobody = table_of(spark, [], "group_id string, empty_since timestamp")
    (row,) = group_behaviour(records, commit_behaviour(Log().table(spark), nobody, WEEK_MS)).collect()
    return row


def generations(records: DataFrame, seconds: list[int]) -> DataFrame:
    """A recorded classic group with members, which gets a generation at each of these seconds."""
    one = records.where("record_type = 2 and size(group_metadata.members) > 0").limit(1)
    at = F.posexplode(F.array(*[F.lit(second) for second in seconds])).alias("n", "second")
    return (
        one.select("*", at)
        .withColumns(
            {
                "log_offset": F.col("n").cast("bigint"),
                "append_time": F.timestamp_seconds(F.lit(int(NOON.timestamp())) + F.col("second")),
                "group_metadata": F.col("group_metadata").withField("generation", F.col("n") + 1),
            }
        )
        .drop("n", "second")
    )


@pytest.mark.parametrize(
    ("seconds", "rebalances", "longest_ms"),
    [
        ([0, 3], 1, 3_000),  # the two steps of cooperative assignment
        ([0, 3, 600, 604], 2, 4_000),
        ([10 * n for n in range(360)], 120, 3_590_000),  # members are evicted in a circle for an hour
    ],
)
def test_generations_in_a_row_are_one_rebalance_and_one_that_goes_on_is_many(
    spark: SparkSession, recorded_tables: dict[str, DataFrame], seconds: list[int], rebalances: int, longest_ms: int
) -> None:
    row = lives(generations(recorded_tables["group_records"], seconds))
    assert (row.generations, row.rebalances, row.longest_rebalance_ms) == (len(seconds), rebalances, longest_ms)


def test_the_last_member_of_a_group_of_the_newer_protocol_leaves_without_a_rebalance(
    spark: SparkSession, recorded_tables: dict[str, DataFrame]
) -> None:
    records = recorded_tables["group_records"].where("group_id = 's-java-auto5-848'")
    whole = lives(records)
    left = records.where("record_type = 5 and tombstone").agg(F.min("log_offset")).collect()[0][0]
    epochs = records.where("record_type = 3 and not tombstone")
    with_members = epochs.where(F.col("log_offset") < left).count()
    assert epochs.where(F.col("log_offset") > left).count() > 0, "the recorded member left"
    assert (whole.generations, whole.member_count) == (with_members, 0)
    assert whole.rebalances == 1
