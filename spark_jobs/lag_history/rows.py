"""Rows of the lag history: where each group stood in each sample, and what the sample before tells."""

from collections.abc import Sequence

import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kafka_audit import lag_days
from kafka_audit.lag_samples import bridged_ms
from kafka_audit.store.layout import Snapshot
from kafka_audit.unread_records import HIDES_ITS_TIME
from spark_jobs.tables import Tables, schema_of, table_of

KEYS = ("group_id", "topic", "partition")
GROUP_PARTITIONS = (
    "group_id string, topic string, partition int, topic_id string, taken_ms bigint, state string, counts boolean, committed bigint, "
    "log_start bigint, log_end bigint, last_stable bigint, over_seconds int, kept_seconds int, before_ms bigint, committed_before bigint, "
    "log_start_before bigint, log_end_before bigint, recreated boolean, still_since_ms bigint, movement_known boolean, only_markers boolean"
)
"""One row for each sample and partition that a group has committed, or whose commit could not be read. NULL is not known.

counts: an SLA is judged by it; not so where the topic was deleted, or a Stable group's members read it no longer. over_seconds: the largest
limit in seconds that is proven broken; kept_seconds: the least one proven kept (sla_offsets). before_ms and *_before: the sample before,
of the same topic id; NULL after a gap. recreated: the topic had another id before. still_since_ms: since when, by samples without a gap,
records have waited and the committed offset has not moved; NULL where it moved, nothing waits or it is not known. movement_known: it moved,
nothing waits or waited before, or it stands still since a sample of which this is known; where it is false it may stand still for longer
than still_since_ms says. only_markers: nothing but ends of transactions follows the committed offset, which is no lag; NULL where one
offset is unread and it is not known what it is.
"""
GROUPS = (
    "group_id string, topic string, taken_ms bigint, partitions int, unknown int, perhaps int, lag bigint, lag_max bigint, lost bigint, "
    "over_seconds int, kept_seconds int, still_since_ms bigint, still_unknown int"
)
"""One row for each sample, group and topic, over the partitions that count; lag and lost are sums over those whose offsets are known.

perhaps: partitions with one unread offset that may be the end of a transaction. unknown: partitions whose lag is not known;
still_unknown: those of which it is not known whether they moved or since when they stand still.
"""


def group_partition_rows(
    tables: Tables, samples: Sequence[Snapshot], seed: DataFrame | None, seed_ms: int | None, interval_ms: int
) -> DataFrame:
    """Rows of ``GROUP_PARTITIONS`` of consecutive samples; ``seed`` are the rows of the sample before the first, taken at ``seed_ms``."""
    times = ([seed_ms] if seed_ms is not None else []) + [one.taken_ms for one in samples]
    before = {at: times[index - 1] for index, at in enumerate(times) if index and at - times[index - 1] <= bridged_ms(interval_ms)}
    rows = _positions(tables, samples).withColumns({"seed_since_ms": F.lit(None).cast("bigint"), "seed_known": F.lit(None).cast("boolean")})
    if seed is not None:
        kept = ("topic_id", "taken_ms", "committed", "log_start", "log_end")
        rows = rows.unionByName(
            seed.select(
                *KEYS, *kept, "only_markers", F.col("still_since_ms").alias("seed_since_ms"), F.col("movement_known").alias("seed_known")
            ),
            allowMissingColumns=True,
        )
    rows = rows.join(F.broadcast(table_of(tables.spark, before.items(), "taken_ms bigint, expected_ms bigint")), on="taken_ms", how="left")
    by_time = Window.partitionBy(*KEYS).orderBy("taken_ms")

    def last(column: str) -> Column:
        return F.lag(column).over(by_time)

    rows = rows.withColumns({f"last_{name}": last(name) for name in ("taken_ms", "topic_id", "committed", "log_start", "log_end")})
    next_to = (F.col("last_taken_ms") == F.col("expected_ms")) & (F.col("last_topic_id") == F.col("topic_id"))
    rows = rows.withColumns(
        {
            "before_ms": F.when(next_to, F.col("last_taken_ms")),
            **{f"{name}_before": F.when(next_to, F.col(f"last_{name}")) for name in ("committed", "log_start", "log_end")},
            "recreated": F.coalesce(F.col("last_topic_id") != F.col("topic_id"), F.lit(False)),
        }
    )
    waited = (
        (F.col("log_end_before") > F.greatest("committed_before", "log_start_before"))
        & (lag_of_row() > 0)
        & F.col("only_markers").isNotNull()
    )
    still = F.coalesce(waited & (F.col("committed") == F.col("committed_before")), F.lit(False))
    seen = (
        F.coalesce(lag_of_row() == 0, F.lit(False))
        | F.coalesce(F.col("committed") != F.col("committed_before"), F.lit(False))
        | F.coalesce(F.col("log_end_before") <= greatest_known("committed_before", "log_start_before"), F.lit(False))
    )
    start = F.struct(
        F.coalesce("seed_since_ms", "taken_ms").alias("at"), F.coalesce("seed_known", seen).alias("seen")
    )  # of a run of samples in which nothing moves
    run = F.last(F.when(~still, start), ignorenulls=True).over(by_time.rowsBetween(Window.unboundedPreceding, Window.currentRow))
    rows = rows.withColumns({"still_since_ms": F.when(still, run["at"]), "movement_known": run["seen"]})
    return _selected(rows.where(F.col("taken_ms") >= samples[0].taken_ms), GROUP_PARTITIONS)


def seed_of(tables: Tables, day: lag_days.LagDay | None, before_ms: int) -> tuple[DataFrame | None, int | None]:
    """The rows of a day's last sample before a time, and when that was taken."""
    times = [source["taken_ms"] for source in day.sources if source["taken_ms"] < before_ms] if day else []
    if day is None or not times:
        return None, None
    read = tables.read(schema_of(GROUP_PARTITIONS), [day.path / lag_days.GROUP_PARTITIONS])
    return read.where(F.col("taken_ms") == times[-1]), times[-1]


def greatest_known(one: str, other: str) -> Column:
    """The greater of two columns; NULL where one of them is, which Spark's greatest() would skip."""
    return F.when(F.col(one).isNotNull() & F.col(other).isNotNull(), F.greatest(one, other))


def not_below_zero(difference: Column) -> Column:
    """The difference, or 0 where that is negative; NULL stays NULL."""
    return F.when(difference.isNotNull(), F.greatest(difference, F.lit(0)))


def lag_of_row() -> Column:
    """Records unread, as bigint; NULL where an offset is not known, and for a commit beyond the end, which is no position in this log."""
    lag = F.when(F.col("only_markers"), F.lit(0)).otherwise(F.col("log_end") - F.greatest("committed", "log_start"))
    known = F.col("committed").isNotNull() & F.col("log_start").isNotNull() & (F.col("committed") <= F.col("log_end"))
    return F.when(known, lag)


def group_rows(rows: DataFrame) -> DataFrame:
    """Rows of ``GROUP_PARTITIONS`` -> rows of ``GROUPS``."""
    lag, lost = lag_of_row(), not_below_zero(F.col("log_start") - F.col("committed"))
    kept = F.when(lag == 0, F.lit(0)).otherwise(F.col("kept_seconds"))
    found = (
        rows.where("counts")
        .groupBy("group_id", "topic", "taken_ms")
        .agg(
            F.count("*").cast("int").alias("partitions"),
            F.count_if(lag.isNull()).cast("int").alias("unknown"),
            F.count_if((lag == 1) & F.col("only_markers").isNull()).cast("int").alias("perhaps"),
            F.sum(lag).alias("lag"),
            F.max(lag).alias("lag_max"),
            F.sum(lost).alias("lost"),
            F.max("over_seconds").alias("over_seconds"),
            F.count_if(kept.isNull()).alias("without"),
            F.max(kept).alias("kept_seconds"),
            F.min("still_since_ms").alias("still_since_ms"),
            F.count_if(~F.coalesce("movement_known", F.lit(False)) | lag.isNull()).cast("int").alias("still_unknown"),
        )
    )
    return _selected(found.withColumn("kept_seconds", F.when(F.col("without") == 0, F.col("kept_seconds"))), GROUPS)


def _positions(tables: Tables, samples: Sequence[Snapshot]) -> DataFrame:
    """The rows without what the sample before tells."""
    known = F.broadcast(table_of(tables.spark, [(one.snapshot_id, one.taken_ms) for one in samples], "snapshot_id string, taken_ms bigint"))
    commits = _dataset(tables, samples, "committed_offsets", "group_id string, topic string, partition int, committed bigint, error string")
    commits = commits.where("committed >= 0 or error is not null").withColumn("committed", F.expr("if(committed >= 0, committed, null)"))
    groups = _dataset(tables, samples, "groups", "group_id string, state string, group_type string").join(
        _read_topics(tables, samples), on=["snapshot_id", "group_id"], how="left"
    )
    offsets = _dataset(tables, samples, "offsets", "topic string, partition int, log_start bigint, log_end bigint, last_stable bigint")
    topics = _dataset(tables, samples, "topics", "topic string, topic_id string").withColumn("listed", F.lit(True))
    unlisted = _dataset(tables, samples, "errors", "dataset string, topic string").where("dataset = 'topics'")
    unlisted = unlisted.select("snapshot_id").distinct().withColumn("topics_failed", F.lit(True))
    place = ["snapshot_id", "topic", "partition"]
    rows = commits.drop("error").join(groups, on=["snapshot_id", "group_id"], how="left").where("coalesce(group_type, '') <> 'share'")
    rows = rows.join(offsets.withColumn("asked", F.lit(True)), on=place, how="left").join(topics, on=["snapshot_id", "topic"], how="left")
    rows = rows.join(F.broadcast(unlisted), on="snapshot_id", how="left").join(_limits(tables, samples), on=place, how="left")
    rows = rows.withColumn("position", greatest_known("committed", "log_start")).join(
        _records(tables, samples), on=[*place, "position"], how="left"
    )
    # Between the commit and the first record that is still there may lie what compaction took, or the ends of transactions.
    first = F.coalesce("record_offset", "position")
    unread = F.coalesce(F.col("log_end") - F.col("position"), F.lit(0))
    exists = F.coalesce("listed", "asked", "topics_failed", F.lit(False))
    left = (F.col("state") == "Stable") & (F.size("read_topics") > 0) & ~F.array_contains("read_topics", F.col("topic"))
    # A position below the offset of a limit leaves a record unread that is older than the limit (collect/sla_offsets.py). Times may be out
    # of order: the first unread record may be older though it lies at or after that offset.
    limits = F.filter("limits", lambda limit: limit["offset"].isNotNull())

    def is_over(limit: Column) -> Column:
        return (limit["offset"] > first) | F.coalesce(F.col("record_ms") < limit["timestamp_ms"], F.lit(False))

    over, kept = F.filter(limits, is_over), F.filter(limits, lambda limit: ~is_over(limit))
    hidden = ~F.coalesce("sought", F.lit(True))
    waits = (unread > 0) & F.when(F.col("sought"), F.col("record_offset").isNotNull()).otherwise(unread != 1)
    rows = rows.withColumns(
        {
            "only_markers": F.when(F.col("sought"), F.col("record_offset").isNull()).when(unread != 1, F.lit(False)),
            "counts": exists & ~F.coalesce(left, F.lit(False)),
            "over_seconds": F.when(waits, F.array_max(F.transform(over, lambda limit: limit["max_lag_seconds"]))),
            "kept_seconds": F.when(
                (F.col("committed") <= F.col("log_end")) & ~hidden, F.array_min(F.transform(kept, lambda limit: limit["max_lag_seconds"]))
            ),
        }
    )
    columns = (*KEYS, "topic_id", "taken_ms", "state", "counts", "committed", "log_start", "log_end", "last_stable")
    return rows.join(known, on="snapshot_id", how="inner").select(*columns, "over_seconds", "kept_seconds", "only_markers")


def _read_topics(tables: Tables, samples: Sequence[Snapshot]) -> DataFrame:
    """snapshot_id, group_id and read_topics array<string> of the groups all of whose members told what they have assigned."""
    members = _dataset(
        tables, samples, "members", "group_id string, assignment array<struct<topic:string,partition:int>>, subscribed_topics array<string>"
    )
    told = F.concat("assignment.topic", F.coalesce("subscribed_topics", F.array().cast("array<string>")))
    found = members.groupBy("snapshot_id", "group_id").agg(
        F.count_if(F.col("assignment").isNull()).alias("silent"),
        F.array_distinct(F.flatten(F.collect_list(told))).alias("topics"),
    )
    return found.select("snapshot_id", "group_id", F.when(F.col("silent") == 0, F.col("topics")).alias("read_topics"))


def _records(tables: Tables, samples: Sequence[Snapshot]) -> DataFrame:
    """snapshot_id, topic, partition, position, and record_offset and record_ms (its timestamp) of the first record from there on.

    Only where the log was read from there on (``sought``), and where the record hides its time (not ``sought``).
    """
    columns = "topic string, partition int, offset bigint, record_offset bigint, timestamp_ms bigint, error string"
    read = _dataset(tables, samples, "first_unread", columns)
    stamped = F.when(F.col("timestamp_ms") >= 0, F.col("timestamp_ms"))  # -1 in a record that has none
    told = read.where(F.col("error").isNull() | F.col("error").isin(*HIDES_ITS_TIME))
    return told.groupBy("snapshot_id", "topic", "partition", F.col("offset").alias("position")).agg(
        F.max("record_offset").alias("record_offset"),
        F.max_by(stamped, "record_offset").alias("record_ms"),
        F.bool_and(F.col("error").isNull()).alias("sought"),
    )


def _limits(tables: Tables, samples: Sequence[Snapshot]) -> DataFrame:
    """snapshot_id, topic, partition and limits array<struct<max_lag_seconds, timestamp_ms, offset>>."""
    asked = "topic string, partition int, max_lag_seconds int, timestamp_ms bigint, offset bigint, error string"
    limits = _dataset(tables, samples, "sla_offsets", asked).where("error is null")
    limit = F.struct("max_lag_seconds", "timestamp_ms", "offset")
    return limits.groupBy("snapshot_id", "topic", "partition").agg(F.collect_list(limit).alias("limits"))


def _dataset(tables: Tables, samples: Sequence[Snapshot], name: str, ddl: str) -> DataFrame:
    """Columns of a dataset over the samples that have it, and ``snapshot_id``."""
    having = [one for one in samples if one.dataset(name).is_file()]
    if not having:
        return table_of(tables.spark, [], f"{ddl}, snapshot_id string")
    whole = from_arrow_schema(pq.read_schema(having[-1].dataset(name)))
    # The file's own types: Spark's reader refuses a nested type that is spelt differently.
    typed = StructType([whole[field.name] if field.name in whole.names else field for field in schema_of(ddl)])
    return tables.read_each(typed, name, having)


def _selected(rows: DataFrame, ddl: str) -> DataFrame:
    return rows.select(*[F.col(field.name).cast(field.dataType).alias(field.name) for field in schema_of(ddl)])
