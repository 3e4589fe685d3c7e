"""Lag in time: by the time of the first unread record, or by when the log ended there, from the log ends that snapshots saw."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence
from spark_jobs.subjects.ages import below, largest, set_of, smallest

CAUGHT_UP, BY_RECORD, INTERPOLATED, AT_LEAST = "caught up", "record timestamp", "interpolated", "at least"
_TOLERANCE_MS = 60_000
_RECORD = {
    "record_offset": "bigint",
    "record_ms": "bigint",
    "record_lag_ms": "bigint",
    "record_error": "string",
    "record_sought": "boolean",
}


def with_first_unread(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds ``position`` bigint, where the group reads on, and of the first record there: record_offset, record_ms and
    record_lag_ms bigint.

    Also record_error string, and record_sought boolean: the log was read from there on, and without a record_offset it has no record.
    ``record_ms`` is its timestamp. ``record_lag_ms`` is negative where a producer's clock is ahead, and NULL without a timestamp. Needs
    committed, log_start and lag.
    """
    rows = rows.withColumn("position", F.when(F.col("lag").isNotNull(), F.greatest("committed", "log_start")))
    if not evidence.snapshot.dataset("first_unread").is_file():  # snapshots did not always read it
        return rows.withColumns({name: F.lit(None).cast(kind) for name, kind in _RECORD.items()})
    found = evidence.table("first_unread").groupBy("topic", "partition", F.col("offset").alias("position"))
    records = found.agg(
        F.max("record_offset").alias("record_offset"),
        F.max("timestamp_ms").alias("record_ms"),
        F.max("error").alias("record_error"),
        F.max(F.unix_millis("read_at")).alias("record_read_ms"),
    )
    rows = rows.join(records, on=["topic", "partition", "position"], how="left")
    age = F.col("record_read_ms") - F.col("record_ms")
    sought = F.col("record_read_ms").isNotNull() & F.col("record_error").isNull()
    record = F.when(F.col("record_ms") >= 0, F.col("record_ms"))
    return rows.withColumns({"record_ms": record, "record_lag_ms": F.when(record.isNotNull(), age), "record_sought": sought}).drop(
        "record_read_ms"
    )


def with_lag_time(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds lag_ms, lag_ms_method, lag_ms_is_bound, lag_ms_least and lag_ms_most (kafka_audit.subjects).

    Needs position, record_lag_ms, lag, beyond_end, only_markers_unread, and log_ends and ends_at (spark_jobs.subjects.past_ends). The log
    passed the position between two neighbouring snapshots, ``older`` and ``newer``; in between its end is taken to have grown evenly. The
    time of the record itself is better, unless it contradicts them: then the clock that wrote it was wrong (KIP-32: CreateTime).
    """
    level = (F.col("beyond_end") == 0) & ((F.col("lag") == 0) | F.col("only_markers_unread"))
    behind = (F.col("lag") > 0) & ~F.coalesce("only_markers_unread", F.lit(False))
    rows = rows.withColumns(
        {
            "past_it": set_of(evidence, lambda age: f"log_ends[{age}] > position and ends_at[{age}] is not null"),
            "not_past_it": set_of(evidence, lambda age: f"log_ends[{age}] <= position and ends_at[{age}] is not null"),
        }
    )
    rows = rows.withColumn("older", smallest(F.col("not_past_it")))
    rows = rows.withColumn("newer", F.when(behind, largest(below(F.col("past_it"), F.col("older")))))
    now, seen, before = F.col("ends_at")[0], _at("newer"), _at("older")
    # One offset that nobody takes may be the marker of a transaction, which is no record: then nothing is late.
    may_be_marker = (F.col("lag") == 1) & F.col("only_markers_unread").isNull()
    zero = F.lit(0).cast("bigint")
    estimates = {
        "lag_ms": F.when(F.col("older").isNull(), now - seen).otherwise(now - _passed()),
        "lag_ms_least": F.when(may_be_marker, zero).otherwise(now - seen),
        "lag_ms_most": now - before,
        "lag_ms_is_bound": F.col("older").isNull(),
        "lag_ms_method": F.when(F.col("older").isNull(), AT_LEAST).otherwise(INTERPOLATED),
    }
    measured = {name: F.when(F.col("newer").isNotNull(), value) for name, value in estimates.items()}
    none = {**dict.fromkeys(estimates, zero), "lag_ms_is_bound": F.lit(False), "lag_ms_method": F.lit(CAUGHT_UP)}
    rows = rows.withColumns({name: F.when(level, none[name]).otherwise(value) for name, value in measured.items()})
    return _with_record_time(rows, behind).drop("past_it", "not_past_it", "older", "newer")


def _with_record_time(rows: DataFrame, behind: Column) -> DataFrame:
    """Puts the time of the first unread record in place of the estimate, where the two do not contradict each other."""
    record, least, most = F.col("record_lag_ms"), F.col("lag_ms_least"), F.col("lag_ms_most")
    apart = F.greatest(most - least, F.lit(_TOLERANCE_MS).cast("bigint"))
    contradicts = F.coalesce((record < least - apart) | (record > most + apart), F.lit(False))
    rows = rows.withColumn("by_record", F.coalesce(behind & record.isNotNull() & ~contradicts, F.lit(False)))
    by_record = {
        "lag_ms": F.greatest(record, least, F.lit(0).cast("bigint")),
        "lag_ms_method": F.lit(BY_RECORD),
        "lag_ms_is_bound": F.lit(False),
        "lag_ms_most": F.greatest(most, record, least, F.lit(0).cast("bigint")),
    }
    chosen = {name: F.when(F.col("by_record"), value).otherwise(F.col(name)) for name, value in by_record.items()}
    return rows.withColumns(chosen).drop("by_record")


def _at(age: str) -> Column:
    return F.get("ends_at", F.col(age))


def _passed() -> Column:
    """When the log end was at the committed offset, in milliseconds since the epoch."""
    start, end = F.get("log_ends", F.col("older")), F.get("log_ends", F.col("newer"))
    return _at("older") + F.round((F.col("position") - start) / (end - start) * (_at("newer") - _at("older"))).cast("bigint")
