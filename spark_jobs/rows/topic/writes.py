"""Who wrote a partition's newest record: by the header of its last batch, and where that was not read, by the leader's producer state."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence
from spark_jobs.lag.positions import offsets_between
from spark_jobs.rows import missing

_DAY_MS = 86_400_000
"""How long a write counts as recent, and as long as brokers keep an idle producer id by default (producer.id.expiration.ms)."""
_DISORDER_MS = 3_600_000
"""Record times of one producer may be out of order by as much (message.timestamp.after.max.ms allows an hour by default)."""
_LISTED = 20

IDENTIFIED, UNIDENTIFIED, UNDECIDED, IDLE = "identified", "unidentified", "undecided", "idle"


def with_writes(partitions: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds ``recent_write`` boolean (NULL when the newest record could not be read), ``header`` and ``write`` string to placed partitions.

    ``header`` is what the newest record batch itself proves: identified or unidentified (it has no producer id), NULL when it was not
    read. ``write`` is one of identified, unidentified (recent), idle (older than 24 h, or empty) and undecided: something could not be
    read, or there is no header and a producer id's last record is less than an hour older than the newest, which its own earlier record
    may be.
    """
    offsets = evidence.table("offsets").select(
        "topic",
        "partition",
        "log_start",
        "log_end",
        "max_timestamp_ms",
        F.unix_millis("read_at").alias("read_ms"),
        F.col("error").alias("offsets_error"),
    )
    producers = evidence.table("producers").groupBy("topic", "partition").agg(F.max("last_timestamp_ms").alias("last_identified_ms"))
    keys = ["topic", "partition"]
    rows = partitions.join(offsets, on=keys, how="left").join(producers, on=keys, how="left").transform(_with_header, evidence)
    errors = missing.joined(missing.extra(offsets=F.col("offsets_error")), F.col("errors"))
    return rows.withColumns({"errors": errors, "recent_write": _recent()}).withColumn("write", _write())


def _with_header(rows: DataFrame, evidence: Evidence) -> DataFrame:
    # A batch that could not be read, or whose format is too old to name its producer, has an error and no producer id.
    header = F.when(F.col("producer_id") >= 0, IDENTIFIED).when(F.col("producer_id") < 0, UNIDENTIFIED)
    batches = evidence.table("last_batches").select("topic", "partition", header.alias("header"))
    return rows.join(batches, on=["topic", "partition"], how="left")


def _recent() -> Column:
    """Whether the newest record is younger than 24 h; false for an empty partition, NULL when it could not be read."""
    empty = offsets_between(F.col("log_start"), F.col("log_end")) == 0
    dated = F.when(F.col("max_timestamp_ms") >= 0, F.col("max_timestamp_ms"))
    return F.when(empty, F.lit(False)).otherwise(F.col("read_ms") - dated < _DAY_MS)


def _write() -> Column:
    producers_read = (F.col("leader") >= 0) & ~F.map_contains_key("errors", F.lit("producers"))
    behind_ms = F.col("max_timestamp_ms") - F.col("last_identified_ms")  # NULL: there is no producer id, so none explains the record
    return (
        F.when(F.col("recent_write").isNull(), F.lit(UNDECIDED))
        .when(~F.col("recent_write"), F.lit(IDLE))
        .when(F.col("header").isNotNull(), F.col("header"))
        .when(behind_ms <= 0, F.lit(IDENTIFIED))
        .when(behind_ms < _DISORDER_MS, F.lit(UNDECIDED))
        .when(producers_read, F.lit(UNIDENTIFIED))
        .otherwise(F.lit(UNDECIDED))
    )


def write_figures() -> list[Column]:
    """Aggregates over a topic's partitions. A count is NULL when it is 0 only because partitions are undecided."""
    undecided = F.count_if(F.col("write") == UNDECIDED)
    recent, unread = F.count_if(F.col("recent_write")), F.count_if(F.col("recent_write").isNull())
    identified, unidentified = F.count_if(F.col("write") == IDENTIFIED), F.count_if(F.col("write") == UNIDENTIFIED)
    numbers = F.slice(F.array_sort(F.collect_list(F.when(F.col("write") == UNIDENTIFIED, F.col("partition")))), 1, _LISTED)
    return [
        F.when((recent > 0) | (unread == 0), recent).cast("int").alias("recent_write_partitions"),
        F.when((identified > 0) | (undecided == 0), identified).cast("int").alias("identified_write_partitions"),
        F.when((unidentified > 0) | (undecided == 0), unidentified).cast("int").alias("unidentified_write_partitions"),
        F.when((unidentified > 0) | (undecided == 0), numbers).alias("unidentified_partitions"),
        undecided.cast("int").alias("undecided_write_partitions"),
        F.when((recent > 0) | (unread == 0), F.count_if(F.col("recent_write") & F.col("header").isNotNull()))
        .cast("int")
        .alias("header_read_partitions"),
    ]
