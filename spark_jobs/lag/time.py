"""Lag in time: by the time of the first unread record, or by when the log ended there, as earlier samples saw it."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.lag.positions import may_be_marker

CAUGHT_UP, BY_RECORD, INTERPOLATED, AT_LEAST = "caught up", "record timestamp", "interpolated", "at least"
_TOLERANCE_MS = 60_000


def with_lag_time(rows: DataFrame) -> DataFrame:
    """Adds lag_ms, lag_ms_method, lag_ms_is_bound, lag_ms_least and lag_ms_most (kafka_audit.catalogue.rows).

    Needs lag, beyond_end, only_markers_unread, record_lag_ms, and from log_read_ms to passed_ms (spark_jobs.lag.movement). The time of the
    record is better than what the samples tell, unless it contradicts them: then the clock that wrote it was wrong (KIP-32: CreateTime).
    """
    markers = F.coalesce("only_markers_unread", F.lit(False))
    level = (F.col("beyond_end") == 0) & ((F.col("lag") == 0) | markers)
    behind = (F.col("lag") > 0) & ~markers
    now, seen, zero = F.col("log_read_ms"), F.col("seen_unread_ms"), F.lit(0).cast("bigint")
    # In all samples the log end is past the position: how long it has been is not known.
    is_bound = F.col("not_past_ms").isNull()
    # One offset that nobody takes may be the marker of a transaction, which is no record: then nothing is late.
    marker = may_be_marker(F.col("lag"), F.col("only_markers_unread"))
    estimates = {
        "lag_ms": now - F.when(is_bound, seen).otherwise(F.col("passed_ms")),
        "lag_ms_least": F.when(marker, zero).otherwise(now - seen),
        "lag_ms_most": now - F.col("not_past_ms"),
        "lag_ms_is_bound": is_bound,
        "lag_ms_method": F.when(is_bound, AT_LEAST).otherwise(INTERPOLATED),
    }
    none = {**dict.fromkeys(estimates, zero), "lag_ms_is_bound": F.lit(False), "lag_ms_method": F.lit(CAUGHT_UP)}
    measured = behind & seen.isNotNull()
    rows = rows.withColumns({name: F.when(level, none[name]).when(measured, value) for name, value in estimates.items()})
    return _with_record_time(rows, behind)


def _with_record_time(rows: DataFrame, behind: Column) -> DataFrame:
    """Puts the time of the first unread record in place of the estimate, where the two do not contradict each other."""
    record, least, most = F.col("record_lag_ms"), F.col("lag_ms_least"), F.col("lag_ms_most")
    apart = F.greatest(most - least, F.lit(_TOLERANCE_MS).cast("bigint"))
    contradicts = F.coalesce((record < least - apart) | (record > most + apart), F.lit(False))
    chosen = F.coalesce(behind & record.isNotNull() & ~contradicts, F.lit(False))
    by_record = {
        "lag_ms": F.greatest(record, least, F.lit(0).cast("bigint")),
        "lag_ms_method": F.lit(BY_RECORD),
        "lag_ms_is_bound": F.lit(False),
        "lag_ms_most": F.greatest(most, record, least, F.lit(0).cast("bigint")),
    }
    return rows.withColumns({name: F.when(chosen, value).otherwise(F.col(name)) for name, value in by_record.items()})
