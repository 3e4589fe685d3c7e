"""What earlier snapshots tell of groups: rebalances, and how long they have had no members."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.lag.samples import newest, with_age
from spark_jobs.rows.group.membership import WITHOUT_MEMBERS

REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
_UNKNOWN = ("", "Unknown")


@shortened
def past_groups(evidence: Evidence) -> DataFrame:
    """group_id, snapshots, snapshots_rebalancing int, history_ms, empty_ms and empty_within_ms bigint (kafka_audit.catalogue.rows).

    ``ages_with_members`` array<int>: the ages (spark_jobs.lag.samples) at which it had members, newest first.
    """
    known = F.col("state").isNotNull() & ~F.col("state").isin(*_UNKNOWN)
    empty, age = F.col("state").isin(*WITHOUT_MEMBERS), F.col("age")
    groups = (
        with_age(evidence, "groups", "group_id", "state")
        .groupBy("group_id")
        .agg(
            F.count_if(known).cast("int").alias("snapshots"),
            F.count_if(F.col("state").isin(*REBALANCING)).cast("int").alias("snapshots_rebalancing"),
            F.max(F.when(known, age)).alias("first"),
            F.sort_array(F.collect_list(F.when(empty, age))).alias("empty_ages"),
            F.sort_array(F.collect_list(F.when(known & ~empty, age))).alias("ages_with_members"),
        )
    )
    had_members = F.get("ages_with_members", F.lit(0))
    since_then = F.filter("empty_ages", lambda age: F.coalesce(age < had_members, F.lit(True)))
    is_empty = F.get("empty_ages", F.lit(0)) == 0
    times = F.lit([one.taken_ms for one in newest(evidence)])

    def since(age: Column) -> Column:
        return F.lit(evidence.taken_ms) - F.get(times, age)

    return groups.select(
        "group_id",
        "snapshots",
        since(F.col("first")).alias("history_ms"),
        "snapshots_rebalancing",
        F.when(is_empty, since(F.element_at(since_then, -1))).alias("empty_ms"),
        F.when(is_empty, since(had_members)).alias("empty_within_ms"),
        "ages_with_members",
    )
