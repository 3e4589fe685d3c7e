"""What a report shows of a window: the lag and SLA compliance of the worst groups over time, and figures of each group partition."""

from collections.abc import Sequence

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.store.samples import BRIDGED
from spark_jobs.engine.tables import table_of
from spark_jobs.lag.days import LagWindow
from spark_jobs.lag.positions import KEYS, lost, unread
from spark_jobs.lag.samples import WindowSamples, stands_for
from spark_jobs.lag.steps import steps

BUCKETS = 120
GROUPS = 50


def worst_groups(slas: DataFrame, partitions: DataFrame) -> list[str]:
    """The ids of the ``GROUPS`` groups that are first by lost records, then lag, then share of the error budget used.

    ``slas`` are rows of group_sla and ``partitions`` of group_partition.
    """
    lost = partitions.groupBy("group_id").agg(F.sum("lost").alias("lost"), F.sum("lag").alias("lag"))
    used = F.col("budget_used_minutes") / F.nullif("budget_allowed_minutes", F.lit(0.0))
    budget = slas.groupBy("group_id").agg(F.max(used).alias("used"))
    rows = budget.join(lost, on="group_id", how="left")
    order = [F.desc_nulls_last("lost"), F.desc_nulls_last("lag"), F.desc_nulls_last("used"), F.asc("group_id")]
    return [row.group_id for row in rows.orderBy(*order).limit(GROUPS).collect()]


def lag_series(window: LagWindow, judged: DataFrame, groups: Sequence[str]) -> DataFrame:
    """One row for each group and bucket that has a sample of it: group_id, bucket_ms bigint (its start), lag and lost bigint, in_sla_share

    and known_share double. ``lag`` and ``lost`` are the largest sums over the group's partitions, ``known_share`` the part of the bucket in
    which all of these were known, and ``in_sla_share`` the part of the judged time inside of the SLAs; NULL when none was judged.
    ``judged`` are the rows of spark_jobs.lag.slas.sla_samples. The buckets begin with the first sample.
    """
    first, length = _buckets(window.samples)
    wanted = F.col("group_id").isin(list(groups))
    bucket = (F.lit(first) + F.floor((F.col("taken_ms") - first) / length) * length).cast("bigint").alias("bucket_ms")
    sums = window.groups.where(wanted & (F.col("taken_ms") >= first) & (F.col("taken_ms") <= window.samples.last_ms))
    sums = sums.groupBy("group_id", "taken_ms").agg(
        F.sum("lag").alias("lag"), F.sum("lost").alias("lost"), F.sum("unknown").alias("unknown")
    )
    known = F.sum(F.when(F.col("unknown") == 0, F.col("stands_ms")).otherwise(0)) / length
    levels = (
        sums.join(_stands_for(window), on="taken_ms", how="inner")
        .groupBy("group_id", bucket)
        .agg(F.max("lag").alias("lag"), F.max("lost").alias("lost"), F.least(known, F.lit(1.0)).alias("known_share"))
    )
    inside = F.sum(F.when(~F.col("outside"), F.col("stands_ms")).otherwise(0))
    share = (inside / F.nullif(F.sum("stands_ms"), F.lit(0))).alias("in_sla_share")
    shares = judged.where(wanted & F.col("outside").isNotNull()).groupBy("group_id", bucket).agg(share)
    rows = levels.join(shares, on=["group_id", "bucket_ms"], how="left")
    return rows.select("group_id", "bucket_ms", "lag", "lost", "in_sla_share", "known_share")


def partition_figures(window: LagWindow) -> DataFrame:
    """One row for each group partition: group_id, topic, partition and, all bigint, over the samples of the window:

    samples, known_ms (time for which its lag is known), worst_lag, worst_lost, rewinds, ends_back (the log end was lower than before),
    recreated (the topic was), still_ms (longest time without progress while records waited), produced and consumed (offsets).
    """
    rows, lag, moved = window.group_partitions.join(_stands_for(window), on="taken_ms", how="inner"), unread(), steps()
    return rows.groupBy(*KEYS).agg(
        F.count("*").alias("samples"),
        F.sum(F.when(lag.isNotNull(), F.col("stands_ms")).otherwise(F.lit(0))).alias("known_ms"),
        F.max(lag).alias("worst_lag"),
        F.max(lost()).alias("worst_lost"),
        F.count_if(moved["went_back"]).alias("rewinds"),
        F.count_if(moved["end_went_back"]).alias("ends_back"),
        F.count_if("recreated").alias("recreated"),
        F.max(F.col("taken_ms") - F.col("still_since_ms")).alias("still_ms"),
        F.sum(moved["produced"]).alias("produced"),
        F.sum(moved["consumed"]).alias("consumed"),
    )


def _stands_for(window: LagWindow) -> DataFrame:
    """taken_ms and stands_ms, how long a sample stands for, both bigint."""
    samples = window.samples
    weights = stands_for(samples.times, samples.last_ms, samples.interval_ms)
    return F.broadcast(table_of(window.group_partitions.sparkSession, weights, "taken_ms bigint, stands_ms bigint"))


def _buckets(window: WindowSamples) -> tuple[int, int]:
    """The start of the first bucket and the length of each, in milliseconds: whole intervals, and two at least, so that none is empty."""
    first = window.times[0]
    intervals = (window.last_ms - first) // window.interval_ms + 1
    return first, max(BRIDGED, -(-intervals // BUCKETS)) * window.interval_ms
