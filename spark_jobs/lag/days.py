"""Positions kept by UTC day: rows with what the sample before tells, rolled up once, and read back for a window."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import reduce
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_audit.errors import IntegrityError
from kafka_audit.policy import Policy
from kafka_audit.store import lag_days
from kafka_audit.store.durable_files import replaced_folder
from kafka_audit.store.lag_days import LagDay, can_be_replaced, day_start_ms, manifest_of, needs_work, read_days, snapshot_days
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from kafka_audit.store.samples import DAY_MS, Samples, read_samples
from kafka_audit.store.sealed import seal
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.remote_tables import tables_of
from spark_jobs.engine.session import whole_stages
from spark_jobs.engine.tables import Tables, schema_of, selected, table_of, write_one_file
from spark_jobs.lag.positions import KEYS, held_unread, lost, may_be_marker, positions, seconds_broken_and_kept, unread, waits
from spark_jobs.lag.samples import WindowSamples, before_each, dataset, window_samples
from spark_jobs.lag.steps import with_sample_before

GROUP_PARTITIONS = (
    "group_id string, topic string, partition int, topic_id string, taken_ms bigint, state string, counts boolean, committed bigint, "
    "log_start bigint, log_end bigint, last_stable bigint, over_seconds int, kept_seconds int, before_ms bigint, committed_before bigint, "
    "log_start_before bigint, log_end_before bigint, recreated boolean, still_since_ms bigint, movement_known boolean, only_markers boolean"
)
"""One row for each sample and partition that a group has committed, or whose commit could not be read. NULL is not known.

counts: an SLA is judged by it; not so where the topic was deleted, or a Stable group's members read it no longer; NULL where records wait
and it is not known whether these read it. over_seconds: the largest
limit in seconds that is proven broken; kept_seconds: the least one proven kept (sla_offsets). before_ms and *_before: the sample before,
of the same topic id; NULL after a gap. recreated: the topic had another id before. still_since_ms: since when, by samples without a gap,
records have waited and the committed offset has not moved; NULL where it moved, nothing waits or it is not known. movement_known: it moved,
nothing waits or waited before, or it stands still since a sample of which this is known; where it is false it may stand still for longer
than still_since_ms says. only_markers: nothing but ends of transactions and aborted records follows the committed offset,
which is no lag; NULL where one offset is unread and it is not known what it is.
"""
GROUPS = (
    "group_id string, topic string, taken_ms bigint, partitions int, unknown int, perhaps int, lag bigint, lag_max bigint, held bigint, "
    "lost bigint, over_seconds int, over_held_seconds int, kept_seconds int, kept_committed_seconds int, still_since_ms bigint, "
    "still_unknown int, waiting_unknown int"
)
"""One row for each sample, group and topic, over the partitions that count; lag and lost are sums over those whose offsets are known.

perhaps: partitions with one unread offset that may be the end of a transaction, and is not held. held: records of lag that open
transactions hold back from read_committed consumers. over_held_seconds: as over_seconds, which does not count them, over partitions where
these hold back all that is unread; a read_uncommitted group breaks it. kept_committed_seconds: as kept_seconds, but with 0 for these
partitions, on which a read_committed group has nothing to read. unknown: partitions whose lag is not known; still_unknown: those of which
it is not known whether they moved or since when they stand still; waiting_unknown: those of these on which open transactions hold back
all that is unread.
"""


@dataclass(frozen=True, kw_only=True)
class LagWindow:
    """Rows of ``GROUP_PARTITIONS`` and of ``GROUPS`` over the samples of a window."""

    group_partitions: DataFrame
    groups: DataFrame
    samples: WindowSamples


def read_window(evidence: Evidence, policy: Policy) -> LagWindow:
    """The rows of the longest window of the policy's SLAs: those of rolled-up days, and of snapshots of the other days."""
    samples = window_samples(evidence, policy)
    raw = evidence.cached_table("lag_rows", lambda: _raw_rows(evidence.tables, samples))
    groups = evidence.cached_table("lag_group_rows", lambda: group_rows(raw))
    return LagWindow(
        group_partitions=_with_days(evidence.tables, samples, lag_days.GROUP_PARTITIONS, GROUP_PARTITIONS, raw),
        groups=_with_days(evidence.tables, samples, lag_days.GROUPS, GROUPS, groups),
        samples=samples,
    )


def _raw_rows(tables: Tables, samples: WindowSamples) -> DataFrame:
    """Rows of what is not rolled up, stretch by stretch between rolled-up days. Whole snapshots tell positions only, no movement."""
    rolled_up = {day_start_ms(one.day): one for one in samples.days}
    stretches: dict[int | None, list[Snapshot]] = {}
    for one in samples.raw:
        stretches.setdefault(max((begins for begins in rolled_up if begins <= one.taken_ms), default=None), []).append(one)
    built = [
        group_partition_rows(tables, stretch, None if begins is None else rolled_up[begins], samples.interval_ms)
        for begins, stretch in stretches.items()
    ]
    if samples.whole:
        built.append(group_partition_rows(tables, samples.whole, None, 0).withColumn("recreated", F.lit(False)))
    return reduce(DataFrame.unionByName, built)


def _with_days(tables: Tables, samples: WindowSamples, name: str, ddl: str, raw: DataFrame) -> DataFrame:
    return tables.read(schema_of(ddl), [one.path / name for one in samples.days]).unionByName(raw) if samples.days else raw


def group_partition_rows(tables: Tables, samples: Sequence[Snapshot], previous: LagDay | None, interval_ms: int) -> DataFrame:
    """Rows of ``GROUP_PARTITIONS`` of consecutive samples. ``previous``: the day before; its last sample precedes the first of these."""
    times = [one.taken_ms for one in samples]
    rows = positions(tables, samples).where("committed is not null or commit_error is not null")
    taken = F.broadcast(table_of(tables.spark, [(one.snapshot_id, one.taken_ms) for one in samples], "snapshot_id string, taken_ms bigint"))
    rows = rows.join(taken, on="snapshot_id", how="inner").transform(_with_topics, tables, samples)
    over, kept = seconds_broken_and_kept()
    certain = ~F.coalesce(may_be_marker(F.col("lag"), F.col("only_markers")), F.lit(False))
    rows = rows.withColumns(
        {
            "counts": F.col("exists") & ~F.col("abandoned"),
            "over_seconds": over,
            "kept_seconds": kept,
            "only_markers": F.coalesce("only_markers", F.when(certain, F.lit(False))),
        }
    )
    seed_ms = max((source["taken_ms"] for source in previous.sources if source["taken_ms"] < times[0]), default=None) if previous else None
    seed = None
    if previous is not None and seed_ms is not None:
        times.insert(0, seed_ms)
        seed = tables.read(schema_of(GROUP_PARTITIONS), [previous.path / lag_days.GROUP_PARTITIONS]).where(F.col("taken_ms") == seed_ms)
    return selected(with_sample_before(rows, seed, before_each(times, interval_ms)), GROUP_PARTITIONS)


def _with_topics(rows: DataFrame, tables: Tables, samples: Sequence[Snapshot]) -> DataFrame:
    """Adds topic_id string, and exists boolean: the topic is listed, its log was asked for, or the topics could not be listed.

    Not so for a partition that a listed topic does not have.
    """
    topics = dataset(tables, samples, "topics", "topic string, topic_id string, partition_count int").withColumn("listed", F.lit(True))
    unlisted = dataset(tables, samples, "errors", "dataset string, topic string").where("dataset = 'topics'")
    unlisted = unlisted.select("snapshot_id").distinct().withColumn("unlisted", F.lit(True))
    rows = rows.join(topics, on=["snapshot_id", "topic"], how="left").join(F.broadcast(unlisted), on="snapshot_id", how="left")
    known = F.coalesce("listed", "log_asked", "unlisted", F.lit(False))
    return rows.withColumn("exists", known & ~F.coalesce(F.col("partition") >= F.col("partition_count"), F.lit(False)))


def group_rows(rows: DataFrame) -> DataFrame:
    """Rows of ``GROUP_PARTITIONS`` -> rows of ``GROUPS``."""
    # Where it is not known whether the group still reads the topic, no figure is known either.
    values = ("committed", "log_start", "log_end", "over_seconds", "kept_seconds", "still_since_ms", "movement_known")
    rows = rows.where(F.coalesce("counts", F.lit(True))).withColumns({name: F.when(F.col("counts"), F.col(name)) for name in values})
    lag = unread()
    kept, kept_committed = (F.when(none, F.lit(0)).otherwise(F.col("kept_seconds")) for none in (lag == 0, (lag == 0) | waits()))
    still_unknown = ~F.coalesce("movement_known", F.lit(False)) | lag.isNull()
    found = rows.groupBy("group_id", "topic", "taken_ms").agg(
        F.count("*").alias("partitions"),
        F.count_if(lag.isNull()).alias("unknown"),
        F.count_if(may_be_marker(lag, F.col("only_markers")) & ~waits()).alias("perhaps"),
        F.sum(lag).alias("lag"),
        F.max(lag).alias("lag_max"),
        F.sum(held_unread()).alias("held"),
        F.sum(lost()).alias("lost"),
        F.max(F.when(~waits(), F.col("over_seconds"))).alias("over_seconds"),
        F.max(F.when(waits(), F.col("over_seconds"))).alias("over_held_seconds"),
        F.when(F.count_if(kept.isNull()) == 0, F.max(kept)).alias("kept_seconds"),
        F.when(F.count_if(kept_committed.isNull()) == 0, F.max(kept_committed)).alias("kept_committed_seconds"),
        F.min("still_since_ms").alias("still_since_ms"),
        F.count_if(still_unknown).alias("still_unknown"),
        F.count_if(still_unknown & waits()).alias("waiting_unknown"),
    )
    return selected(found, GROUPS)


def roll_up(spark: SparkSession, root: EvidenceRoot, cluster: str, until: date, interval_seconds: int) -> list[date]:
    """Make every day up to ``until`` that has offsets snapshots and no folder that was made of them; returns these days.

    A folder that cannot be opened, and of which a snapshot is missing or changed, is left alone; IntegrityError after the other days.
    """
    made, broken = [], []
    for day in [one for one in snapshot_days(root, cluster) if one <= until]:
        start, interval_ms, before = day_start_ms(day), interval_seconds * 1000, day - timedelta(days=1)
        found = {one.day: one for one in read_days(root, cluster, before, day)[0]}
        known = found[before].cluster_id if before in found else None
        samples = read_samples(
            root, cluster, first_ms=start, last_ms=start + DAY_MS, interval_ms=interval_ms, cluster_id=None, before=known
        )
        previous = found[before] if before in found and known == samples.cluster_id else None
        previous_sha256 = previous.manifest_sha256 if previous else None
        place = root.lag_days(cluster) / day.isoformat()
        if place.exists() and day not in found and not can_be_replaced(place, samples):
            broken.append(str(place))
        elif needs_work(found.get(day), samples, interval_ms, previous_sha256):
            with replaced_folder(place) as folder, whole_stages(spark):
                _write(spark, folder, samples, previous, manifest_of(cluster, day, samples, interval_ms, previous_sha256))
                if remote := root.remote:
                    remote.publish(folder, place, replace=True)
            made.append(day)
    if broken:
        raise IntegrityError(
            f"rolled up {len(made)} days, and left alone what cannot be opened and not all of whose snapshots are there as they were: "
            f"{', '.join(broken)}: restore it from a copy, or remove it"
        )
    return made


def _write(spark: SparkSession, folder: Path, samples: Samples, previous: LagDay | None, manifest: Mapping[str, Any]) -> None:
    tables = tables_of(spark)
    with tables.settings():
        built = group_partition_rows(tables, samples.used, previous, manifest["interval_seconds"] * 1000)
        write_one_file(tables, built, [*KEYS, "taken_ms"], folder / lag_days.GROUP_PARTITIONS)
        written = tables.read(schema_of(GROUP_PARTITIONS), [folder / lag_days.GROUP_PARTITIONS])
        write_one_file(tables, group_rows(written), ["group_id", "topic", "taken_ms"], folder / lag_days.GROUPS)
    seal(folder, manifest)
