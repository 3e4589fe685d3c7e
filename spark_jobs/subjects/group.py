"""Wide rows of groups: state, members and lag summed over their partitions."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.datasets import Evidence
from spark_jobs.subjects import missing
from spark_jobs.subjects.commit_behaviour import with_group_behaviour
from spark_jobs.subjects.group_partition import positions
from spark_jobs.subjects.membership import groups_with_members
from spark_jobs.subjects.past_groups import lag_growth, lag_sums, past_groups, snapshots_over
from spark_jobs.subjects.subscriptions import unassigned
from spark_jobs.subjects.tiers import group_policy


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each group of the groups dataset."""
    groups = groups_with_members(evidence).transform(with_group_behaviour, evidence).join(_figures(evidence), on="group_id", how="left")
    groups = groups.join(past_groups(evidence), on="group_id", how="left").join(unassigned(evidence), on="group_id", how="left")
    if "assignor" not in groups.columns:  # snapshots did not always keep it
        groups = groups.withColumn("assignor", F.lit(None).cast("string"))
    committed = F.coalesce("committed_partitions", F.lit(0))
    commits_read = ~F.map_contains_key("errors", F.lit("committed_offsets"))
    known = (committed > 0) | commits_read
    stable = (F.col("state") == "Stable") & ~F.map_contains_key("errors", F.lit("members"))
    groups = groups.withColumns(
        {
            "resource": F.col("group_id"),
            "errors": missing.joined(F.col("lacking"), F.col("errors")),
            "partition_count": F.when(known, committed),
            "unknown_partitions": F.when(known, F.coalesce("unknown", F.lit(0))),
            "lag_ms_unknown": F.when(known, F.coalesce("untimed", F.lit(0))),
            "unassigned_partitions": F.when(stable, F.col("unassigned_partitions")),
            "unassigned_count": F.when(stable, F.col("unassigned_count")),
            "policy": group_policy(policy, F.col("group_id")),
        }
    )
    return groups.withColumns({"snapshots_over_sla": snapshots_over(F.col("policy.max_lag_records")), "lag_growth": lag_growth(evidence)})


def _figures(evidence: Evidence) -> DataFrame:
    """Per group: committed_partitions, unknown and untimed int, lacking map<dataset, reason>, and its lag by records, time and age.

    Lag leaves out partitions that no lag can be demanded of: those of deleted topics, and those of topics that none of the members of
    a Stable group reads any more. Their own rows (group_partition) show them.
    """
    place = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    counts = F.col("has_commit") & ~F.col("abandoned") & F.coalesce(F.col("topic_exists"), F.lit(True))
    rows = positions(evidence).withColumns({"place": place, "counted_lag": F.when(counts, F.col("lag"))})
    rows = rows.withColumns({name: F.when(counts, F.col(name)) for name in ("lag_ms", "lag_ms_least", "lag_ms_most", "lag_ms_is_bound")})
    unknown = counts & F.col("lag").isNull()
    largest = F.max(F.when(F.col("counted_lag").isNotNull(), F.struct("counted_lag", "place")))
    latest = F.max(F.when(F.col("lag_ms").isNotNull(), F.struct("lag_ms", "place")))
    lacking = missing.extra(
        offsets=_first("offsets", F.col("place"), unknown),
        committed_offsets=_first("committed_offsets", F.col("place"), F.col("has_commit").isNull()),
    )
    return rows.groupBy("group_id").agg(
        F.count_if("has_commit").cast("int").alias("committed_partitions"),
        F.count_if(unknown).cast("int").alias("unknown"),
        F.sum("counted_lag").alias("lag_known"),
        largest["counted_lag"].alias("lag_max"),
        largest["place"].alias("lag_max_partition"),
        latest["lag_ms"].alias("lag_ms"),
        latest["place"].alias("lag_ms_partition"),
        F.max("lag_ms_least").alias("lag_ms_least"),
        F.max(F.col("lag_ms_most") - F.col("lag_ms_least")).alias("lag_ms_gap"),
        F.bool_or("lag_ms_is_bound").alias("lag_ms_is_bound"),
        F.count_if(counts & F.col("lag_ms").isNull()).cast("int").alias("untimed"),
        missing.joined(lacking).alias("lacking"),
        *[sums.alias(name) for name, sums in lag_sums(evidence, counts).items()],
    )


def _first(dataset: str, place: Column, concerned: Column) -> Column:
    return missing.of_its_partitions(F.when(concerned, F.col("errors")[dataset]), place)
