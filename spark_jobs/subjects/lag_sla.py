"""Whether a group keeps its SLA in seconds, by the offset that brokers name for that time (ListOffsets by timestamp, KIP-79)."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from kafka_audit.unread_records import HIDES_ITS_TIME
from spark_jobs.datasets import Evidence
from spark_jobs.subjects.lag_time import CAUGHT_UP
from spark_jobs.subjects.tiers import sla_number, sla_policy

_PLACE = ["topic", "partition"]


def with_demanded_offsets(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds ``demanded``: a map of seconds to the first offset whose record is at least as young as ``timestamp_ms``, and that time.

    NULL where none was asked for.
    """
    if not evidence.snapshot.dataset("sla_offsets").is_file():  # snapshots did not always ask
        return rows.withColumn("demanded", F.lit(None).cast("map<int,struct<offset:bigint,timestamp_ms:bigint>>"))
    asked = evidence.table("sla_offsets").where(F.col("error").isNull() & F.col("offset").isNotNull())
    each = asked.groupBy(*_PLACE, "max_lag_seconds").agg(F.max(F.struct("offset", "timestamp_ms")).alias("found"))
    entries = F.collect_list(F.struct("max_lag_seconds", "found"))
    return rows.join(each.groupBy(*_PLACE).agg(F.map_from_entries(entries).alias("demanded")), on=_PLACE, how="left")


def with_sla(rows: DataFrame, policy: Policy) -> DataFrame:
    """Adds behind_sla and sla_seconds_asked (kafka_audit.subjects), and ``sla_seconds`` int.

    Needs group_id, topic, demanded, lag, beyond_end, has_commit, position, record_offset, record_ms, hidden_record, lag_ms_method,
    lag_ms_least and only_markers_unread.
    """
    rows = rows.withColumn("sla_rule", sla_number(policy, "group_id", "topic"))
    rows = rows.withColumn("sla_rule", sla_policy(policy, F.col("group_id"), F.col("sla_rule")))
    rows = rows.withColumn("sla_seconds", (F.col("sla_rule.max_lag_ms") / 1000).cast("int")).drop("sla_rule")
    rows = rows.withColumn("demanded", F.when(F.col("has_commit"), F.col("demanded")[F.col("sla_seconds")]))
    asked = F.when(F.col("demanded").isNotNull(), F.col("sla_seconds"))
    return rows.withColumns({"behind_sla": _behind(), "sla_seconds_asked": asked}).drop("demanded")


def _behind() -> Column:
    """Timestamps need not rise with the offsets, so a position at the demanded offset keeps the SLA only where nothing contradicts."""
    # Between the position and the first record that is still there may lie what compaction took, or the ends of transactions.
    first, demanded = F.coalesce("record_offset", "position"), F.col("demanded.offset")
    is_older = F.col("record_ms") < F.col("demanded.timestamp_ms")
    is_hole = F.coalesce(F.col("record_offset") > F.col("position"), F.lit(False))
    was_there = (F.col("lag_ms_least") > F.col("sla_seconds").cast("bigint") * 1000) & ~is_hole
    return (
        F.when(F.col("beyond_end") > 0, F.lit(None).cast("boolean"))
        .when((F.col("lag_ms_method") == CAUGHT_UP) & F.col("sla_seconds").isNotNull(), F.lit(False))
        .when(((first < demanded) & ~may_be_marker()) | is_older, F.lit(True))
        .when((first >= demanded) & ~F.coalesce(was_there, F.lit(False)) & F.col("hidden_record").isNull(), F.lit(False))
    )


def hidden_record() -> Column:
    """The error with which the first unread record hides its time; NULL where there is none of these."""
    return F.when(F.col("record_error").isin(*HIDES_ITS_TIME), F.col("record_error"))


def may_be_marker() -> Column:
    """Whether all that is unread is one offset, which may be the end of a transaction."""
    return (F.col("lag") == 1) & F.col("only_markers_unread").isNull()
