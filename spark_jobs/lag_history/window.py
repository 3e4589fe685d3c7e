"""What a window of the lag history says: aggregates that only add up, over rows that are neither sorted nor compared with each other."""

from collections.abc import Sequence
from datetime import datetime, timezone
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.lag_samples import BRIDGED, DAY_MS, bridged_ms
from kafka_audit.policy.slas import LagSla
from spark_jobs.lag_history.reading import LagWindow
from spark_jobs.lag_history.rows import KEYS, lag_of_row, not_below_zero
from spark_jobs.tables import table_of


def partition_figures(window: LagWindow) -> DataFrame:
    """One row for each group partition: group_id, topic, partition and, all bigint, over the samples of the window:

    samples, known_ms (time for which its lag is known), worst_lag, worst_lost, rewinds, ends_back (the log end was lower than before),
    recreated (the topic was), still_ms (longest time without progress while records waited), produced and consumed (offsets).
    """
    weights = stands_for(window)
    samples = table_of(window.group_partitions.sparkSession, weights, "taken_ms bigint, stands_ms bigint")
    rows = window.group_partitions.join(F.broadcast(samples), on="taken_ms", how="inner")
    lag, zero = lag_of_row(), F.lit(0)
    moved = {"produced": ("log_end", "log_end_before"), "consumed": ("committed", "committed_before")}
    return rows.groupBy(*KEYS).agg(
        F.count("*").alias("samples"),
        F.sum(F.when(lag.isNotNull(), F.col("stands_ms")).otherwise(zero)).alias("known_ms"),
        F.max(lag).alias("worst_lag"),
        F.max(not_below_zero(F.col("log_start") - F.col("committed"))).alias("worst_lost"),
        F.count_if(F.col("committed") < F.col("committed_before")).alias("rewinds"),
        F.count_if(F.col("log_end") < F.col("log_end_before")).alias("ends_back"),
        F.count_if("recreated").alias("recreated"),
        F.max(F.col("taken_ms") - F.col("still_since_ms")).alias("still_ms"),
        *[F.sum(not_below_zero(F.col(now) - F.col(before))).alias(name) for name, (now, before) in moved.items()],
    )


def sla_samples(window: LagWindow, slas: Sequence[LagSla], covering: Column) -> DataFrame:
    """One row for each group, SLA and sample of the SLA's window, judged over the topics that the SLA covers.

    group_id, sla int (its number), taken_ms, stands_ms bigint (time it stands for, quiet hours left out), recent boolean (one of the newest
    samples that ``breach`` asks for), lag, lost, still_ms bigint, and boolean, NULL where that is not known: lag_outside (the limit in
    records, or of time without progress, was broken), time_outside (that in seconds was) and outside (any was).
    ``covering``: the number of the SLA of a group_id and topic, or NULL.
    """
    spark = window.groups.sparkSession
    sampled = F.broadcast(table_of(spark, [row for number, sla in enumerate(slas) for row in _judged(window, number, sla)], _JUDGED))
    pairs = window.groups.select("group_id", "topic").distinct().withColumn("sla", covering).where("sla is not null")
    rows = window.groups.join(F.broadcast(pairs), on=["group_id", "topic"], how="inner")
    sums = rows.groupBy("group_id", "sla", "taken_ms").agg(
        F.sum("unknown").alias("unknown"),
        F.sum("lag").alias("lag"),
        F.sum(F.col("lag") - F.coalesce("perhaps", F.lit(0))).alias("lag_least"),
        F.sum("lost").alias("lost"),
        F.max("over_seconds").alias("over_seconds"),
        F.max("kept_seconds").alias("kept_seconds"),
        F.count_if(F.col("kept_seconds").isNull()).alias("untimed"),
        F.max(F.col("taken_ms") - F.col("still_since_ms")).alias("still_ms"),
        F.sum("still_unknown").alias("still_unknown"),
    )
    rows = sums.join(sampled, on=["sla", "taken_ms"], how="inner")
    records, seconds, still = F.col("max_lag_records"), F.col("max_lag_seconds"), F.col("max_no_progress_seconds") * 1000
    in_records = _outside(records, F.col("lag_least"), F.col("lag"), F.col("unknown") == 0)
    moving = _outside(still, F.col("still_ms"), F.coalesce("still_ms", F.lit(0)), F.col("still_unknown") == 0)
    in_time = _outside(seconds, F.col("over_seconds") + 1, F.col("kept_seconds"), F.col("untimed") == 0)
    rows = rows.withColumns({"lag_outside": in_records | moving, "time_outside": in_time})
    # Where it is known of every partition whether it moved, none stood still unless one says so.
    still_ms = F.when(F.col("still_unknown") == 0, F.coalesce("still_ms", F.lit(0))).otherwise(F.col("still_ms")).alias("still_ms")
    kept = ("group_id", "sla", "taken_ms", "stands_ms", "recent", "lag", "lost", still_ms, "lag_outside", "time_outside")
    return rows.select(*kept, (F.col("lag_outside") | F.col("time_outside")).alias("outside"))


def sla_figures(samples: DataFrame, last_ms: int) -> DataFrame:
    """One row for each group and SLA of :func:`sla_samples`: group_id, sla int and, all bigint,

    samples, samples_outside; recent_<kind>_known and recent_<kind>_outside for the kinds lag and time; in_ms, out_ms (time inside and
    outside of the limits), worst_lag and worst_still_ms (the largest while outside), and still_ms of the sample taken at ``last_ms``.
    """
    outside = F.coalesce("outside", F.lit(False))
    inside = F.coalesce(~F.col("outside"), F.lit(False))
    return samples.groupBy("group_id", "sla").agg(
        F.count("*").alias("samples"),
        F.count_if(outside).alias("samples_outside"),
        *[F.count_if(F.col(f"{kind}_outside").isNotNull() & F.col("recent")).alias(f"recent_{kind}_known") for kind in ("lag", "time")],
        *[F.count_if(F.col(f"{kind}_outside") & F.col("recent")).alias(f"recent_{kind}_outside") for kind in ("lag", "time")],
        F.max(F.when(F.col("taken_ms") == last_ms, F.col("still_ms"))).alias("still_ms"),
        F.sum(F.when(inside, F.col("stands_ms")).otherwise(0)).alias("in_ms"),
        F.sum(F.when(outside, F.col("stands_ms")).otherwise(0)).alias("out_ms"),
        F.max(F.when(outside, F.col("lag"))).alias("worst_lag"),
        F.max(F.when(outside, F.col("still_ms"))).alias("worst_still_ms"),
    )


def stands_for(window: LagWindow) -> list[tuple[int, int]]:
    """(time, how long it stands for) of each sample, in milliseconds: the time to the next one, or ``BRIDGED`` intervals before a gap."""
    pairs = [(at, after - at) for at, after in pairwise([*window.times, window.last_ms])]
    return [(at, length if length <= bridged_ms(window.interval_ms) else BRIDGED * window.interval_ms) for at, length in pairs]


def sla_spans(window: LagWindow, slas: Sequence[LagSla]) -> list[tuple[int, int, int, bool]]:
    """(number, length of its window, quiet time in it, both in milliseconds, whether it is quiet at the end) of each SLA."""
    found = []
    for number, sla in enumerate(slas):
        quiet = _quiet(sla, _first(window, sla), window.last_ms + 1)
        length = window.last_ms - _first(window, sla)
        spent = sum(min(ends, window.last_ms) - begins for begins, ends in quiet)
        found.append((number, length, spent, bool(quiet) and quiet[-1][1] > window.last_ms))
    return found


_JUDGED = (
    "sla int, taken_ms bigint, stands_ms bigint, recent boolean, max_lag_records bigint, max_lag_seconds bigint, "
    "max_no_progress_seconds bigint"
)


def _judged(window: LagWindow, number: int, sla: LagSla) -> list[tuple[int, int, int, bool, int | None, int | None, int | None]]:
    """The samples of an SLA's window with its limits, newest last: rows of ``_JUDGED``."""
    first = _first(window, sla)
    spans = _quiet(sla, first, window.last_ms + 1)
    found, recent = [], 0
    for at, stands in reversed(stands_for(window)):
        if at < first:
            break
        is_quiet = any(begins <= at < ends for begins, ends in spans)
        recent += not is_quiet
        spent = sum(max(0, min(ends, at + stands) - max(begins, at)) for begins, ends in spans)
        newest = not is_quiet and recent <= sla.breach.of
        found.append((number, at, stands - spent, newest, sla.max_lag_records, sla.max_lag_seconds, sla.max_no_progress_seconds))
    return found


def _first(window: LagWindow, sla: LagSla) -> int:
    return window.last_ms - sla.window_days * DAY_MS


def _quiet(sla: LagSla, first_ms: int, last_ms: int) -> list[tuple[int, int]]:
    first, last = (datetime.fromtimestamp(ms / 1000, timezone.utc) for ms in (first_ms, last_ms))
    return [(round(begins.timestamp() * 1000), round(ends.timestamp() * 1000)) for begins, ends in sla.quiet_spans(first, last)]


def _outside(limit: Column, least: Column, most: Column, known: Column) -> Column:
    """Whether a limit was broken: proven by ``least``, what is known of the figure; kept is proven by ``most`` where all is ``known``."""
    broken = F.coalesce(least > limit, F.lit(False))
    kept = limit.isNull() | F.coalesce(known & (most <= limit), F.lit(False))
    return F.when(broken, F.lit(True)).when(kept, F.lit(False))
