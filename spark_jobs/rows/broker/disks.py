"""Free space on brokers' disks, and how soon they are full at the pace of the last day."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence

_DAY_MS = 86_400_000
_PACE_MS = 23 * 3_600_000  # a day, less what a daily schedule may jitter: a shorter look would take the busy hours for the whole day
_NEVER_DAYS = 3650.0


def disk_space(evidence: Evidence) -> DataFrame:
    """broker_id and the columns fullest_log_dir to pace_ms of a broker (kafka_audit.catalogue.rows).

    The pace is the growth of what a volume holds since the newest snapshot that is about a day older (KIP-827), so a volume that was
    enlarged in between does not look as if it had been emptied.
    """
    measured = F.col("error").isNull() & (F.col("total_bytes") > 0) & (F.col("usable_bytes") >= 0)
    current = F.col("snapshot_id") == F.lit(evidence.snapshot.snapshot_id)
    day_old = F.col("taken_ms") <= F.lit(evidence.taken_ms - _PACE_MS)
    held = (F.col("total_bytes") - F.col("usable_bytes")).alias("held")
    dirs = (
        evidence.series("log_dirs", "broker_id", "path", "error", "total_bytes", "usable_bytes")
        .where(F.col("path").isNotNull())
        .groupBy("broker_id", "path")
        .agg(
            F.bool_or(current).alias("present"),
            F.max(F.when(current & measured, F.struct("total_bytes", "usable_bytes", held))).alias("now"),
            F.max(F.when(measured & day_old, F.struct("taken_ms", held))).alias("before"),
        )
        .where("present")
    )
    pace_ms = F.coalesce(F.lit(evidence.taken_ms) - F.col("before.taken_ms"), F.lit(0))
    per_day = (F.col("now.held") - F.col("before.held")) * F.lit(float(_DAY_MS)) / pace_ms
    days = F.when(per_day > 0, F.least(F.col("now.usable_bytes") / per_day, F.lit(_NEVER_DAYS))).when(per_day <= 0, _NEVER_DAYS)
    share = (F.col("now.usable_bytes") / F.col("now.total_bytes")).alias("share")
    place = F.struct(share, "path", F.col("now.total_bytes").alias("total_bytes"), F.col("now.usable_bytes").alias("usable_bytes"))
    known = F.col("now").isNotNull()
    brokers = dirs.groupBy("broker_id").agg(
        F.min(F.when(known, place)).alias("fullest"),
        F.array_sort(F.collect_list(F.when(~known, F.col("path")))).alias("unmeasured_log_dirs"),
        F.min(F.when(known, days)).alias("days_to_full"),
        F.min(F.when(known, pace_ms)).alias("pace_ms"),
    )
    return brokers.select(
        "broker_id",
        F.col("fullest.path").alias("fullest_log_dir"),
        F.col("fullest.total_bytes").alias("total_bytes"),
        F.col("fullest.usable_bytes").alias("usable_bytes"),
        "unmeasured_log_dirs",
        "days_to_full",
        "pace_ms",
    )
