"""Lag in time: how long ago the log ended where the group stands, from the log ends that snapshots saw."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence
from spark_jobs.subjects.ages import below, largest, set_of, smallest


def with_lag_time(rows: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds lag_ms, lag_ms_is_bound, lag_ms_least and lag_ms_most (kafka_audit.subjects).

    Needs committed, lag, beyond_end, only_markers_unread, and log_ends and ends_at (spark_jobs.subjects.past_ends). The log passed the
    committed offset between two neighbouring snapshots, ``older`` and ``newer``; in between its end is taken to have grown evenly.
    """
    level = (F.col("beyond_end") == 0) & ((F.col("lag") == 0) | F.col("only_markers_unread"))
    behind = (F.col("lag") > 0) & ~F.coalesce("only_markers_unread", F.lit(False))
    rows = rows.withColumns(
        {
            "past_it": set_of(evidence, lambda age: f"log_ends[{age}] > committed and ends_at[{age}] is not null"),
            "not_past_it": set_of(evidence, lambda age: f"log_ends[{age}] <= committed and ends_at[{age}] is not null"),
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
    }
    measured = {name: F.when(F.col("newer").isNotNull(), value) for name, value in estimates.items()}
    none = {name: F.lit(False) if name == "lag_ms_is_bound" else zero for name in estimates}
    rows = rows.withColumns({name: F.when(level, none[name]).otherwise(value) for name, value in measured.items()})
    return rows.drop("past_it", "not_past_it", "older", "newer")


def _at(age: str) -> Column:
    return F.get("ends_at", F.col(age))


def _passed() -> Column:
    """When the log end was at the committed offset, in milliseconds since the epoch."""
    start, end = F.get("log_ends", F.col("older")), F.get("log_ends", F.col("newer"))
    return _at("older") + F.round((F.col("committed") - start) / (end - start) * (_at("newer") - _at("older"))).cast("bigint")
