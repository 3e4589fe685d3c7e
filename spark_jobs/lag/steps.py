"""What happened to a group partition from one sample to the next."""

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_jobs.engine.tables import table_of
from spark_jobs.lag.positions import KEYS, lag_of, may_be_marker, offsets_between, unread, waits


def with_sample_before(rows: DataFrame, seed: DataFrame | None, before: Mapping[int, int]) -> DataFrame:
    """Adds what the sample before tells (spark_jobs.lag.days, from before_ms to movement_known).

    ``before``: the time of a sample -> that of the one before it; none after a gap. ``seed``: the same rows of a sample before the first;
    used to compute the first step, not returned.
    """
    since, known = F.lit(None).cast("bigint"), F.lit(None).cast("boolean")
    rows = rows.withColumns({"seed_since_ms": since, "seed_known": known, "is_seed": F.lit(False)})
    if seed is not None:
        kept = (*KEYS, "topic_id", "taken_ms", "committed", "log_start", "log_end", "last_stable", "only_markers")
        told = (F.col("still_since_ms").alias("seed_since_ms"), F.col("movement_known").alias("seed_known"), F.lit(True).alias("is_seed"))
        rows = rows.unionByName(seed.select(*kept, *told), allowMissingColumns=True)
    expected = table_of(rows.sparkSession, before.items(), "taken_ms bigint, expected_ms bigint")
    rows = rows.join(F.broadcast(expected), on="taken_ms", how="left")
    by_time = Window.partitionBy(*KEYS).orderBy("taken_ms")
    offsets = ("committed", "log_start", "log_end")
    # One unread offset may be no record, and a group that stands before an open transaction may have to wait.
    certain = ~may_be_marker(unread(), F.col("only_markers")) & ~waits()
    to_read = F.when(F.col("only_markers"), F.lit(0)).otherwise(lag_of(*(F.col(name) for name in offsets)))
    rows = rows.withColumns({"to_read": to_read, "waiting": F.when(certain, unread())})
    told_before = ("taken_ms", "topic_id", *offsets, "to_read", "waiting")
    rows = rows.withColumns({f"last_{name}": F.lag(name).over(by_time) for name in told_before})
    next_to = (F.col("last_taken_ms") == F.col("expected_ms")) & (F.col("last_topic_id") == F.col("topic_id"))
    rows = rows.withColumns(
        {
            "before_ms": F.when(next_to, F.col("last_taken_ms")),
            **{f"{name}_before": F.when(next_to, F.col(f"last_{name}")) for name in offsets},
            "recreated": F.coalesce(F.col("last_topic_id") != F.col("topic_id"), F.lit(False)),
        }
    )
    nothing_waited = (unread() == 0) | (F.col("before_ms").isNotNull() & (F.col("last_to_read") == 0))
    stood = F.col("committed") == F.col("committed_before")
    still = F.coalesce(stood & (F.col("last_waiting") > 0) & (F.col("waiting") > 0), F.lit(False))
    seen = F.coalesce(nothing_waited, F.lit(False)) | F.coalesce(~stood, F.lit(False))
    # Where a run of samples in which nothing moves begins, and whether it is known that nothing stood still before.
    start = F.struct(F.coalesce("seed_since_ms", "taken_ms").alias("at"), F.coalesce("seed_known", seen).alias("seen"))
    run = F.last(F.when(~still, start), ignorenulls=True).over(by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    return rows.withColumns({"still_since_ms": F.when(still, run["at"]), "movement_known": run["seen"]}).where(~F.col("is_seed"))


def steps() -> dict[str, Column]:
    """What happened since the sample before, of rows of spark_jobs.lag.days: went_back and end_went_back boolean; produced and consumed."""
    return {
        "went_back": F.col("committed") < F.col("committed_before"),
        "end_went_back": F.col("log_end") < F.col("log_end_before"),
        "produced": offsets_between(F.col("log_end_before"), F.col("log_end")),
        "consumed": offsets_between(F.col("committed_before"), F.col("committed")),
    }
