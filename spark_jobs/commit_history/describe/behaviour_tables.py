"""Writes the behaviour tables of a history: what groups did in a window of time.

    behaviour/<end of the window>/group_partitions.parquet, groups.parquet, manifest.json

They are made from the decoded batches, once for each window; old ones are removed. What happened before the window (the newest commit of an
idle group, when a group lost its last member) is copied from the tables of the window before; for the first window
it is read from all batches.
"""

from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import reduce
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_audit.store.behaviour_tables import GROUP_PARTITIONS, GROUPS, KEPT, Behaviour, folders_until, open_behaviour
from kafka_audit.store.commit_batches import REPAIR_OF_DECODED, verify_batch
from kafka_audit.store.durable_files import remove_folder, replaced_folder
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.sealed import seal
from kafka_audit.times import parse_time, stamp
from spark_jobs.commit_history.describe.behaviour_sources import manifest_of, newest_record
from spark_jobs.commit_history.describe.commit_behaviour import KEYS, commit_behaviour
from spark_jobs.commit_history.describe.group_behaviour import emptied, group_behaviour
from spark_jobs.commit_history.describe.read_coverage import Reading, new_batches, readings, with_home_partition
from spark_jobs.engine.parquet_folder import write_parquet

_ROWS_OF_A_PART = 200_000
_BEGINNING = datetime(1, 1, 2, tzinfo=timezone.utc)


@dataclass(frozen=True, kw_only=True)
class Window:
    """The time to describe, in UTC. ``retention_ms``: the cluster's offsets.retention.minutes in milliseconds (None: not known).

    ``partitions``: how many the offsets topic has (None: not known). ``held_back``: those in which an open transaction holds records back.
    """

    end: datetime
    length: timedelta
    retention_ms: int | None = None
    partitions: int | None = None
    held_back: Set[int] = frozenset()

    @property
    def start(self) -> datetime:
        return self.end - self.length


def describe(spark: SparkSession, history: Path, window: Window) -> Path | None:
    """Write the behaviour tables of a window and return their folder; None when no batch is decoded yet. An existing folder is kept.

    IntegrityError when a batch, or the tables of the window before, differ from their manifests.
    """
    batches = sorted(found.parent for found in history.glob(f"decoded/[!.]*/{MANIFEST}"))
    target = history / "behaviour" / stamp(window.end)
    if not batches or (target / MANIFEST).is_file():
        return target if batches else None
    before = _tables_before(history, window)
    since = min(window.start, parse_time(before.manifest["start"])) if before else _BEGINNING
    stood = [Reading.from_json(said) for said in before.manifest.get("readings", ())] if before else []
    reaching = [batch for batch in batches if newest_record(batch) >= since]  # looks at each batch: one that lost files is refused
    new = new_batches(history, batches, stood)
    used = sorted({*reaching, *new})
    for batch in used:
        verify_batch(batch, REPAIR_OF_DECODED)
    commits, records = (_read(spark, used or batches[-1:], new, name, (since, window.end)) for name in ("offset_commits", "group_records"))
    read = readings(
        *(history, new, stood), end=window.end, partitions=window.partitions or 0, held=_newest_read(commits, records, window.held_back)
    )
    with replaced_folder(target) as folder:
        records = records.persist()
        carried = _carried_groups(spark, before)
        earlier = _earlier_commits(spark, before, commits, window)
        empty = emptied(records, carried)
        deleted = records.where("record_type in (2, 3, 11, 17) and tombstone").selectExpr("group_id", "append_time deleted_at")
        partitions = commit_behaviour(_within(commits, window), empty, window.retention_ms, earlier, deleted).persist()
        groups = group_behaviour(records.withColumn("in_window", _is_within(window)), partitions, carried)
        groups = with_home_partition(groups, window.partitions)
        groups = groups.join(F.broadcast(_as_rows(spark, read)), on="home_partition", how="left").persist()
        of_group = groups.select("group_id", "session_timeout_ms", "empty_since", *_READ)
        over = F.col("longest_gap_ms") > F.col("session_timeout_ms")
        wide = partitions.join(of_group, on="group_id", how="left").withColumn("gap_over_session", over).drop("session_timeout_ms")
        rows = {"group_partitions": _write(wide, folder / GROUP_PARTITIONS, *KEYS), "groups": _write(groups, folder / GROUPS, "group_id")}
        seen = {"observed_from": _observed_from(partitions, _within(records, window)), "readings": [each.as_json() for each in read]}
        for each in (groups, partitions, records):
            each.unpersist()
        about = {"start": window.start, "end": window.end, "offsets_retention_ms": window.retention_ms, "rows": rows, **seen}
        seal(folder, manifest_of(history, used, before, about))
    for old in sorted(history.glob("behaviour/[!.]*"))[:-KEPT]:
        remove_folder(old)
    return target


def _tables_before(history: Path, window: Window) -> Behaviour | None:
    """The newest tables that end before this window ends."""
    found = next(folders_until(history, window.end - timedelta(seconds=1)), None)
    return open_behaviour(found) if found else None


def _read(spark: SparkSession, batches: list[Path], new: list[Path], name: str, between: tuple[datetime, datetime]) -> DataFrame:
    """Rows of a table between two times. New batches give older rows, too: a transaction may have held them back."""
    since, end = between

    def of(some: list[Path]) -> DataFrame:
        return spark.read.parquet(*[str(batch / f"{name}.parquet") for batch in some]).where(F.col("append_time") < F.lit(end))

    seen = [batch for batch in batches if batch not in new]
    tables = [*([of(new)] if new else []), *([of(seen).where(F.col("append_time") >= F.lit(since))] if seen else [])]
    return reduce(DataFrame.unionByName, tables)


def _newest_read(commits: DataFrame, records: DataFrame, partitions: Set[int]) -> dict[int, datetime | None]:
    """For each of these partitions, the time of its newest record that was read; None where there is none."""
    if not partitions:
        return {}
    both = commits.select("log_partition", "append_time").union(records.select("log_partition", "append_time"))
    newest = both.where(F.col("log_partition").isin(*partitions)).groupBy("log_partition").agg(F.unix_millis(F.max("append_time")))
    times = {number: datetime.fromtimestamp(ms / 1000, timezone.utc) for number, ms in newest.collect()}  # a row for each partition
    return {number: times.get(number) for number in partitions}


_READ = ("complete_since", "lost_until", "read_to")


def _as_rows(spark: SparkSession, read: list[Reading]) -> DataFrame:
    rows = [(each.partition, each.complete_since, each.lost_until, each.read_to) for each in read]
    return spark.createDataFrame(rows, "home_partition int, complete_since timestamp, lost_until timestamp, read_to timestamp")


def _is_within(window: Window) -> Column:
    return F.col("append_time") >= F.lit(window.start)


def _within(rows: DataFrame, window: Window) -> DataFrame:
    return rows.where(_is_within(window))


def _earlier_commits(spark: SparkSession, before: Behaviour | None, commits: DataFrame, window: Window) -> DataFrame:
    """The newest commit of each group and partition before the window: rows like ``commits``, none where the offset was removed."""
    earlier = commits.where(~_is_within(window))
    if before:
        tables = spark.read.parquet(str(before.table(GROUP_PARTITIONS)))
        tables = tables.where(F.col("removed").isNull() | (F.col("removed_at") >= F.lit(window.start)))
        place = (F.col("last_commit_offset").alias("log_offset"), F.col("last_commit").alias("commit_time"))
        newest = F.struct(*place, "committed", "topic_id", "expire_time")
        stood = F.when(F.col("last_commit") < F.lit(window.start), newest).otherwise(F.col("earlier")).alias("stood")
        known = tables.select(*KEYS, stood).where(F.col("stood").isNotNull()).select(*KEYS, "stood.*")
        earlier = earlier.unionByName(known.withColumn("tombstone", F.lit(False)), allowMissingColumns=True)
    row = F.struct(*[F.col(name) for name in commits.columns if name not in KEYS])
    newest_rows = earlier.groupBy(*KEYS).agg(F.max_by(row, "log_offset").alias("row"))
    return newest_rows.select(*KEYS, "row.*").where(~F.col("tombstone"))


def _carried_groups(spark: SparkSession, before: Behaviour | None) -> DataFrame | None:
    if before is None:
        return None
    return spark.read.parquet(str(before.table(GROUPS))).where(~F.coalesce("removed", F.lit(False)))


def _write(rows: DataFrame, target: Path, *order: str) -> int:
    parts = 1 + rows.count() // _ROWS_OF_A_PART
    write_parquet(rows.repartitionByRange(parts, *order).sortWithinPartitions(*order), target)
    return rows.count()


def _observed_from(partitions: DataFrame, records: DataFrame) -> str | None:
    """The time of the oldest record in the window (ISO 8601): later than its start after compaction, or where reading began later."""
    oldest = (
        partitions.select(F.min("first_commit").alias("at")).union(records.select(F.min("append_time"))).agg(F.unix_millis(F.min("at")))
    )
    found = oldest.first()
    at = found[0] if found else None
    return datetime.fromtimestamp(at / 1000, timezone.utc).isoformat() if at is not None else None
