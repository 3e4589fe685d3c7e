"""The SLAs of lag: whether a group keeps one now, and for how much of a window it kept it."""

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy.slas import LagSla
from kafka_audit.store.samples import DAY_MS, bridged_ms
from spark_jobs.engine.tables import table_of
from spark_jobs.lag.burns import newest_ms
from spark_jobs.lag.days import LagWindow
from spark_jobs.lag.positions import is_over, may_be_marker
from spark_jobs.lag.quiet import quiet_ms
from spark_jobs.lag.samples import WindowSamples, stands_for
from spark_jobs.lag.time import CAUGHT_UP

READ_COMMITTED, READ_UNCOMMITTED = "read_committed", "read_uncommitted"
_HOUR_MS = 3_600_000
_TREND = 3
"""Two points lie on a line whatever they are; from three on a slope says something."""


def may_wait(waits: Column) -> Column:
    """Whether a group has to wait for an open transaction, or it is not known: where ``waits``, unless it reads what is not committed."""
    return waits & F.coalesce(F.col("isolation") != READ_UNCOMMITTED, F.lit(True))


def with_behind_sla(rows: DataFrame) -> DataFrame:
    """Adds behind_sla and sla_seconds_asked (kafka_audit.catalogue.rows).

    Needs sla_seconds int, the group's limit; has_commit, limits, lag, beyond_end, position, record_offset, record_ms, first_is_record,
    hidden_record, has_hole, only_markers_unread, waits, isolation, lag_ms_method and lag_ms_least. Timestamps need not rise with the
    offsets, so a position at the limit's offset keeps the SLA only where nothing contradicts.
    """
    before = rows.columns
    asked = F.get(F.filter("limits", lambda limit: limit["max_lag_seconds"] == F.col("sla_seconds")), F.lit(0))
    rows = rows.withColumn("limit", F.when(F.col("has_commit"), asked))
    over = is_over(F.col("limit"))
    was_there = F.coalesce((F.col("lag_ms_least") > F.col("sla_seconds").cast("bigint") * 1000) & ~F.col("has_hole"), F.lit(False))
    behind = (
        F.when(F.col("beyond_end") > 0, F.lit(None).cast("boolean"))
        .when((F.col("lag_ms_method") == CAUGHT_UP) & F.col("sla_seconds").isNotNull(), F.lit(False))
        .when(F.col("waits") & (F.col("isolation") == READ_COMMITTED) & F.col("sla_seconds").isNotNull(), F.lit(False))
        .when(over & ~may_be_marker(F.col("lag"), F.col("only_markers_unread")) & ~may_wait(F.col("waits")), F.lit(True))
        .when(~over & ~was_there & F.col("hidden_record").isNull(), F.lit(False))
    )
    seconds = F.when(F.col("limit").isNotNull(), F.col("sla_seconds"))
    return rows.select(*before, behind.alias("behind_sla"), seconds.alias("sla_seconds_asked"))


def present_figures(counts: Column, ages: Sequence[int]) -> dict[str, Column]:
    """Aggregates over the group partitions that one SLA covers: the columns of group_sla (kafka_audit.catalogue.rows) for this snapshot.

    Under other names: committed_partitions, unknown, beyond, behind, unasked and untimed are numbers of partitions. And by age, for
    :func:`lag_growth`: lag_sums and lag_counts array<bigint>. ``counts``: a lag is demanded of the partition. Needs the columns of
    group_partition, and ``place`` as topic-partition, ``unread``, ``held``, ``waits``, isolation and lags_by_age (spark_jobs.lag).
    """
    place, zero = F.col("place"), F.lit(0).cast("bigint")
    held = F.when(counts, F.col("held"))
    doubtful, barred = held_by_isolation(held)
    unread = F.when(counts, F.col("unread")) - barred
    unknown, beyond = counts & unread.isNull(), counts & F.coalesce(F.col("beyond_end") > 0, F.lit(False))
    behind, unasked = counts & F.col("behind_sla"), counts & F.col("behind_sla").isNull()
    least = F.when(may_be_marker(unread, F.col("only_markers_unread")), zero).otherwise(unread - doubtful)
    lag_ms = F.when(counts, F.col("lag_ms"))
    # Brokers named an offset, and whether what lies before it is a record is not known: snapshots do not tell better.
    doubted = F.col("sla_seconds_asked").isNotNull() & F.col("hidden_record").isNull() & ~F.col("waits")
    largest = F.max(F.when(unread.isNotNull(), F.struct(unread.alias("lag"), place)))
    latest = F.max(F.when(lag_ms.isNotNull(), F.struct(lag_ms.alias("lag_ms"), place, "lag_ms_method")))
    lags = [F.when(counts, F.get("lags_by_age", F.lit(age))) for age in ages]
    return {
        "committed_partitions": _number("has_commit"),
        "unknown": _number(unknown),
        "beyond": _number(beyond),
        "lag_known": F.sum(unread),
        "lag_least": F.sum(least),
        "lag_held": F.sum(held),
        "lag_max": largest["lag"],
        "lag_max_partition": largest["place"],
        "behind": _number(behind),
        "behind_partition": F.min(F.when(behind, place)),
        "unasked": _number(unasked),
        "hidden_record": F.min(F.when(unasked, F.concat(place, F.lit(" ("), "hidden_record", F.lit(")")))),
        "lag_ms": latest["lag_ms"],
        "lag_ms_partition": latest["place"],
        "lag_ms_method": latest["lag_ms_method"],
        "unasked_lag_ms": F.max(F.when(unasked, F.col("lag_ms"))),
        "lag_ms_least": F.max(F.when(unasked, F.col("lag_ms_least"))),
        "lag_ms_gap": F.max(F.when(unasked, F.col("lag_ms_most") - F.col("lag_ms_least"))),
        "lag_ms_is_bound": F.bool_or(F.when(unasked, F.col("lag_ms_is_bound"))),
        "untimed": _number(unasked & (F.col("lag_ms").isNull() | doubted)),
        "lag_sums": F.array(*[F.sum(lag) for lag in lags]),
        "lag_counts": F.array(*[F.count(lag) for lag in lags]),
    }


def held_by_isolation(held: Column) -> tuple[Column, Column]:
    """Of records that open transactions hold back: those of which it is not known whether they are lag, and those that are none.

    Only a read_committed consumer has to wait for them (KIP-98); needs isolation string, what its group declares, or NULL.
    """
    zero = F.lit(0).cast("bigint")
    return F.when(F.col("isolation").isNull(), held).otherwise(zero), F.when(F.col("isolation") == READ_COMMITTED, held).otherwise(zero)


def _number(holds: Column | str) -> Column:
    return F.count_if(holds).cast("int")


def lag_growth(times: Sequence[int]) -> Column:
    """By how many records an hour ``lag_sums`` grows, as double: the slope of the least-squares line over samples taken at ``times``.

    The times are by age, in epoch milliseconds. Only samples that show the lag of as many partitions as this one are compared, and fewer
    than three give NULL.
    """
    hours = F.lit([(at - times[0]) / _HOUR_MS for at in times])
    points = F.zip_with("lag_sums", "lag_counts", lambda lag, of: F.when(of == F.col("lag_counts")[0], lag.cast("double")))
    points = F.zip_with(hours, points, lambda hour, lag: F.struct(hour.alias("x"), lag.alias("y")))

    def add(sums: Column, point: Column) -> Column:
        x, y = point["x"], point["y"]
        added = {"n": F.lit(1.0), "x": x, "y": y, "xy": x * y, "xx": x * x}
        return F.struct(*[(sums[name] + value).alias(name) for name, value in added.items()])

    start = F.struct(*[F.lit(0.0).alias(name) for name in ("n", "x", "y", "xy", "xx")])

    def slope(sums: Column) -> Column:
        n = sums["n"]
        return F.when(n >= _TREND, (n * sums["xy"] - sums["x"] * sums["y"]) / (n * sums["xx"] - sums["x"] * sums["x"]))

    return F.aggregate(F.filter(points, lambda point: point["y"].isNotNull()), start, add, slope)


def sla_samples(window: LagWindow, slas: Sequence[LagSla], covering: Column, isolation: Column) -> DataFrame:
    """One row for each group, SLA and sample of the SLA's window, judged over the topics that the SLA covers.

    group_id, sla int (its number), taken_ms, stands_ms bigint (time it stands for, quiet hours left out), recent boolean (one of the newest
    samples that ``breach`` asks for, not older than :func:`recent_ms`), lag, lost, still_ms bigint, and boolean, NULL where that is not
    known: lag_outside (the limit in records, or of time without progress, was broken), time_outside (that in seconds was) and outside (any
    was).
    ``covering``: the number of the SLA of a group_id and topic, or NULL. ``isolation``: the declared isolation.level of a group_id, or
    NULL.
    """
    judged = [row for number, sla in enumerate(slas) for row in _judged(window.samples, number, sla)]
    sampled = F.broadcast(table_of(window.groups.sparkSession, judged, _JUDGED))
    pairs = window.groups.select("group_id", "topic").distinct().withColumn("sla", covering).where("sla is not null")
    rows = window.groups.join(F.broadcast(pairs), on=["group_id", "topic"], how="inner").withColumn("isolation", isolation)
    doubtful, barred = held_by_isolation(F.coalesce("held", F.lit(0).cast("bigint")))
    committed = F.col("isolation") == READ_COMMITTED
    over = F.when(F.col("isolation") == READ_UNCOMMITTED, F.greatest("over_seconds", "over_held_seconds")).otherwise(F.col("over_seconds"))
    kept_seconds = F.when(committed, F.col("kept_committed_seconds")).otherwise(F.col("kept_seconds"))
    still_unknown = F.col("still_unknown") - F.when(committed, F.col("waiting_unknown")).otherwise(F.lit(0))
    sums = rows.groupBy("group_id", "sla", "taken_ms").agg(
        F.sum("unknown").alias("unknown"),
        F.sum(F.col("lag") - barred).alias("lag"),
        F.sum(F.col("lag") - barred - doubtful - F.coalesce("perhaps", F.lit(0))).alias("lag_least"),
        F.sum("lost").alias("lost"),
        F.max(over).alias("over_seconds"),
        F.max(kept_seconds).alias("kept_seconds"),
        F.count_if(kept_seconds.isNull()).alias("untimed"),
        F.max(F.col("taken_ms") - F.col("still_since_ms")).alias("still_ms"),
        F.sum(still_unknown).alias("still_unknown"),
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
    outside of the limits), worst_lag and worst_still_ms (the largest while outside), still_ms of the sample taken at ``last_ms``, and the
    times of spark_jobs.lag.burns.newest_ms.
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
        *[time.alias(name) for name, time in newest_ms(last_ms).items()],
    )


def sla_spans(window: WindowSamples, slas: Sequence[LagSla]) -> list[tuple[int, int, int, bool, int]]:
    """(number, length of its window, quiet time in it, whether it is quiet at the end, :func:`recent_ms`) of each SLA; in milliseconds."""
    found = []
    for number, sla in enumerate(slas):
        quiet = quiet_ms(sla, _first(window, sla), window.last_ms + 1)
        length = window.last_ms - _first(window, sla)
        spent = sum(min(ends, window.last_ms) - begins for begins, ends in quiet)
        found.append((number, length, spent, bool(quiet) and quiet[-1][1] > window.last_ms, recent_ms(window, sla)))
    return found


def recent_ms(window: WindowSamples, sla: LagSla) -> int:
    """How old the newest samples that ``breach`` asks for may be, without quiet hours: so many times the longest distance without a gap."""
    return sla.breach.of * bridged_ms(window.interval_ms)


_JUDGED = (
    "sla int, taken_ms bigint, stands_ms bigint, recent boolean, max_lag_records bigint, max_lag_seconds bigint, "
    "max_no_progress_seconds bigint"
)


def _judged(window: WindowSamples, number: int, sla: LagSla) -> list[tuple[int, int, int, bool, int | None, int | None, int | None]]:
    """The samples of an SLA's window with its limits, newest last: rows of ``_JUDGED``."""
    first = _first(window, sla)
    spans = quiet_ms(sla, first, window.last_ms + 1)
    found, recent = [], 0
    for at, stands in reversed(stands_for(window.times, window.last_ms, window.interval_ms)):
        if at < first:
            break
        is_quiet = any(begins <= at < ends for begins, ends in spans)
        recent += not is_quiet
        spent = sum(max(0, min(ends, at + stands) - max(begins, at)) for begins, ends in spans)
        quiet_since = sum(max(0, min(ends, window.last_ms) - max(begins, at)) for begins, ends in spans)
        is_young = window.last_ms - at - quiet_since <= recent_ms(window, sla)
        newest = not is_quiet and is_young and recent <= sla.breach.of
        found.append((number, at, stands - spent, newest, sla.max_lag_records, sla.max_lag_seconds, sla.max_no_progress_seconds))
    return found


def _first(window: WindowSamples, sla: LagSla) -> int:
    return window.last_ms - sla.window_days * DAY_MS


def _outside(limit: Column, least: Column, most: Column, known: Column) -> Column:
    """True if ``least``, the proven minimum, exceeds the limit; False if ``known`` and ``most`` does not, or without a limit; else NULL."""
    broken = F.coalesce(least > limit, F.lit(False))
    kept = limit.isNull() | F.coalesce(known & (most <= limit), F.lit(False))
    return F.when(broken, F.lit(True)).when(kept, F.lit(False))
