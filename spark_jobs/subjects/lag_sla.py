"""Whether a group keeps its SLA in seconds, by the offset that brokers name for that time (ListOffsets by timestamp, KIP-79)."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.datasets import Evidence
from spark_jobs.subjects.tiers import sla_number, sla_policy

_PLACE = ["topic", "partition"]


def with_demanded_offsets(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds ``demanded``: a map of seconds to the first offset whose record is at least that young; NULL where none was asked for."""
    if not evidence.snapshot.dataset("sla_offsets").is_file():  # snapshots did not always ask
        return rows.withColumn("demanded", F.lit(None).cast("map<int,bigint>"))
    asked = evidence.table("sla_offsets").where(F.col("error").isNull() & F.col("offset").isNotNull())
    each = asked.groupBy(*_PLACE, "max_lag_seconds").agg(F.max("offset").alias("offset"))
    entries = F.collect_list(F.struct("max_lag_seconds", "offset"))
    return rows.join(each.groupBy(*_PLACE).agg(F.map_from_entries(entries).alias("demanded")), on=_PLACE, how="left")


def with_sla(rows: DataFrame, policy: Policy) -> DataFrame:
    """Adds behind_sla and sla_seconds_asked (kafka_audit.subjects), and ``sla_seconds`` int.

    Needs group_id, topic, demanded, lag, committed, record_offset, lag_ms_method and only_markers_unread.
    """
    rows = rows.withColumn("sla_rule", sla_number(policy, "group_id", "topic"))
    rows = rows.withColumn("sla_rule", sla_policy(policy, F.col("group_id"), F.col("sla_rule")))
    rows = rows.withColumn("sla_seconds", (F.col("sla_rule.max_lag_ms") / 1000).cast("int")).drop("sla_rule")
    rows = rows.withColumn("demanded", F.when(F.col("has_commit"), F.col("demanded")[F.col("sla_seconds")]))
    # Between the commit and the first record that is still there may lie what compaction took, or the ends of transactions.
    first = F.coalesce("record_offset", "committed")
    may_be_marker = (F.col("lag") == 1) & F.col("only_markers_unread").isNull()
    behind = (
        F.when((F.col("lag_ms_method") == "caught up") & F.col("sla_seconds").isNotNull(), F.lit(False))
        .when(first >= F.col("demanded"), F.lit(False))
        .when((first < F.col("demanded")) & ~may_be_marker, F.lit(True))
    )
    asked = F.when(F.col("demanded").isNotNull(), F.col("sla_seconds"))
    return rows.withColumns({"behind_sla": behind, "sla_seconds_asked": asked}).drop("demanded")
