"""Groups that went from the classic protocol to the consumer protocol (KIP-848), or back, while their records were read."""

from typing import Any

import pytest
from commit_log import START, WEEK_MS, Log
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.commit_history.describe.commit_behaviour import commit_behaviour
from spark_jobs.commit_history.describe.group_behaviour import emptied, group_behaviour
from spark_jobs.engine.tables import SmallTables, table_of

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def migrated(spark: SparkSession, recorded_tables: dict[str, DataFrame]) -> dict[str, DataFrame]:
    """Records of two groups, in the order in which coordinators write them: ``up`` goes to the consumer protocol, ``down`` leaves it.

    ``classic``, ``newer``: of a group that had each protocol alone, from which the two are made.
    """
    records = recorded_tables["group_records"].withColumn("in_window", F.lit(True))
    classic = records.where("group_id = 's-java-auto5' and record_type = 2 and size(group_metadata.members) > 0")
    newer = records.where("group_id = 's-java-auto5-848' and record_type in (3, 5) and not tombstone")
    nothing = F.lit(None).cast(records.schema["group_metadata"].dataType)
    later = lambda rows, by: rows.withColumn("log_offset", F.col("log_offset") + by)  # noqa: E731
    gone = classic.limit(1).withColumns(
        {"tombstone": F.lit(True), "group_metadata": nothing, "log_offset": F.lit(1_000_000).cast("bigint")}
    )
    up = classic.union(gone).union(later(newer, 2_000_000))
    values = {
        f"consumer_group_{name}": F.lit(None).cast(records.schema[f"consumer_group_{name}"].dataType)
        for name in ("metadata", "member_metadata")
    }
    left = later(newer, 1_000_000).withColumns({"tombstone": F.lit(True), **values})
    down = newer.union(left).union(later(classic, 3_000_000))
    of = {"up": up, "down": down}
    return {"classic": classic, "newer": newer, **{name: rows.withColumn("group_id", F.lit(name)) for name, rows in of.items()}}


def test_a_group_that_changed_its_protocol_has_the_figures_of_the_newer_one(spark: SparkSession, migrated: dict[str, DataFrame]) -> None:
    none = commit_behaviour(Log().table(spark), table_of(spark, [], "group_id string, empty_since timestamp"), WEEK_MS)
    figures = ("group_type", "removed", "member_count", "static_members", "assignor", "session_timeout_ms", "rebalance_timeout_ms")

    def told(records: DataFrame, carried: DataFrame | None = None) -> tuple[Any, ...]:
        (row,) = group_behaviour(records, none, carried).select(*figures).collect()
        return tuple(row)

    classic, newer = told(migrated["classic"]), told(migrated["newer"])
    assert (classic[0], classic[4:6], newer[0], newer[4:6]) == ("classic", ("range", 45_000), "consumer", (None, None))
    assert told(migrated["up"]) == newer
    assert told(migrated["down"]) == classic
    before = SmallTables(spark=spark).keep(group_behaviour(migrated["up"].where("record_type = 2 and not tombstone"), none))
    assert told(migrated["up"].where("record_type <> 2 or tombstone"), before) == newer
    before = SmallTables(spark=spark).keep(group_behaviour(migrated["down"].where("record_type <> 2 and not tombstone"), none))
    assert told(migrated["down"].where("record_type = 2 or tombstone"), before) == classic


def test_a_group_that_was_empty_before_it_changed_its_protocol_is_not_known_as_empty(
    spark: SparkSession, migrated: dict[str, DataFrame]
) -> None:
    empty = F.col("group_metadata").withField("members", F.array().cast("array<string>")).withField("state_ms", F.lit(1_000).cast("bigint"))
    emptied_once = migrated["up"].withColumn("group_metadata", F.when(F.col("group_metadata").isNotNull(), empty))
    known = table_of(spark, [("up", START)], "group_id string, empty_since timestamp")
    assert [row.group_id for row in emptied(emptied_once.where("record_type = 2")).collect()] == ["up"]  # it expired, or was deleted
    assert emptied(emptied_once).collect() == []
    assert emptied(emptied_once.where("record_type <> 2"), known).collect() == []
