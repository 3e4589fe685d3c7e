"""Writes the behaviour tables of a history: what groups did in a window of time.

    behaviour/<end of the window>/group_partitions.parquet, groups.parquet, manifest.json

They are made from the decoded batches, once for each window; old ones are removed. What happened before the window (the newest commit of an
idle group, when a group lost its last member) is copied from the tables of the window before; for the first window
it is read from all batches.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_audit.store.behaviour_tables import GROUP_PARTITIONS, GROUPS, KEPT, Behaviour, folders_until, open_behaviour
from kafka_audit.store.commit_batches import (
    REPAIR_OF_DECODED,
    SOURCE,
    batches_in,
    published_folder,
    raw_manifest,
    read_as_parquet,
    read_at,
    verify_batch,
)
from kafka_audit.store.durable_files import read_json, remove_folder, sha256_of
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.mirrors import bring, bring_manifest, remote_at
from kafka_audit.store.sealed import BEHAVIOUR, seal
from kafka_audit.times import parse_time, stamp
from spark_jobs.commit_history.describe.commit_behaviour import KEYS, commit_behaviour
from spark_jobs.commit_history.describe.group_behaviour import RECORD_COLUMNS, emptied, group_behaviour
from spark_jobs.commit_history.describe.read_coverage import Reading, new_batches, readings, recent_batches, with_home_partition
from spark_jobs.engine.remote_tables import tables_of
from spark_jobs.engine.tables import SMALL_ROWS, Tables, at_most, table_of

_ROWS_OF_A_PART = 200_000
_GAPS_LISTED = 20
_WITH_TIMES = ("offset_commits.parquet/", "group_records.parquet/")
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
    names = batches_in(history / "decoded")
    target = history / "behaviour" / stamp(window.end)
    bring_manifest(target)
    if not names or (target / MANIFEST).is_file():
        return target if names else None
    newest = next(folders_until(history, window.end - timedelta(seconds=1)), None)
    before = open_behaviour(newest) if newest else None
    since = min(window.start, parse_time(before.manifest["start"])) if before else _BEGINNING
    stood = [Reading.from_json(said) for said in before.manifest.get("readings", ())] if before else []
    recent = recent_batches(history, since, stood)
    reaching = [batch for batch in recent if newest_record(batch) >= since]  # looks at each batch: one that lost files is refused
    new = new_batches(history, recent, stood)
    used = sorted({*reaching, *new})
    for batch in used:
        verify_batch(batch, REPAIR_OF_DECODED)
    sources = used or [history / "decoded" / names[-1]]  # without any the newest batch gives tables without rows
    bring(sources[-1])
    tables = _tables(spark, sources, before)
    with tables.settings(), published_folder(target) as folder:
        named = ("offset_commits", "group_records")
        commits, records = (_read(tables, sources, new, name, (since, window.end)) for name in named)
        records = tables.keep(records.select("log_partition", *RECORD_COLUMNS))
        held = _newest_read(commits, records, window.held_back)
        read = readings(history, new, stood, end=window.end, partitions=window.partitions or 0, held=held)
        carried = tables.read_whole(before.table(GROUPS)).where(~F.coalesce("removed", F.lit(False))) if before else None
        earlier = _earlier_commits(tables, before, commits, window)
        empty = emptied(records, carried)
        deleted = records.where("record_type in (2, 3, 11, 17) and tombstone").selectExpr("group_id", "append_time deleted_at")
        within = commits.where(_is_within(window))
        partitions = tables.keep(commit_behaviour(within, empty, window.retention_ms, earlier, deleted))
        groups = group_behaviour(records.withColumn("in_window", _is_within(window)), partitions, carried)
        groups = with_home_partition(groups, window.partitions)
        reached = table_of(spark, [(each.partition, *(getattr(each, name) for name in _READ)) for each in read], _READ_DDL)
        groups = tables.keep(groups.join(F.broadcast(reached), on="home_partition", how="left"))
        of_group = groups.select("group_id", "session_timeout_ms", "empty_since", *_READ)
        over = F.col("longest_gap_ms") > F.col("session_timeout_ms")
        wide = partitions.join(of_group, on="group_id", how="left").withColumn("gap_over_session", over).drop("session_timeout_ms")
        rows = {"group_partitions": partitions.count(), "groups": groups.count()}
        tables.write(wide, folder / GROUP_PARTITIONS, KEYS, 1 + rows["group_partitions"] // _ROWS_OF_A_PART)
        tables.write(groups, folder / GROUPS, ["group_id"], 1 + rows["groups"] // _ROWS_OF_A_PART)
        observed_from = _observed_from(partitions, records.where(_is_within(window)))
        seen = {"observed_from": observed_from, "readings": [each.as_json() for each in read]}
        for each in (groups, partitions, records):
            each.unpersist()
        about = {"start": window.start, "end": window.end, "offsets_retention_ms": window.retention_ms, "rows": rows, **seen}
        seal(folder, _manifest_of(history, used, before, about))
    if not remote_at(history):  # in a store rules of the bucket delete
        for old in sorted(history.glob("behaviour/[!.]*"))[:-KEPT]:
            remove_folder(old)
    return target


def _tables(spark: SparkSession, batches: list[Path], before: Behaviour | None) -> Tables:
    folders = [*batches, *([before.path] if before and before.path else [])]
    files = (part for folder in folders for part in folder.glob("*.parquet/[!.]*.parquet"))
    return tables_of(spark, small=at_most(SMALL_ROWS, files))


def _read(tables: Tables, batches: list[Path], new: list[Path], name: str, between: tuple[datetime, datetime]) -> DataFrame:
    """Rows of a table between two times. New batches give older rows, too: a transaction may have held them back."""
    since, end = between

    def of(some: list[Path]) -> DataFrame:
        return tables.read_whole(*[batch / f"{name}.parquet" for batch in some]).where(F.col("append_time") < F.lit(end))

    seen = [batch for batch in batches if batch not in new]
    found = [*([of(new)] if new else []), *([of(seen).where(F.col("append_time") >= F.lit(since))] if seen else [])]
    return reduce(DataFrame.unionByName, found)


def _newest_read(commits: DataFrame, records: DataFrame, partitions: Set[int]) -> dict[int, datetime | None]:
    """For each of these partitions, the time of its newest record that was read; None where there is none."""
    if not partitions:
        return {}
    both = commits.select("log_partition", "append_time").union(records.select("log_partition", "append_time"))
    newest = both.where(F.col("log_partition").isin(*partitions)).groupBy("log_partition").agg(F.unix_millis(F.max("append_time")))
    times = {number: datetime.fromtimestamp(ms / 1000, timezone.utc) for number, ms in newest.collect()}  # a row for each partition
    return {number: times.get(number) for number in partitions}


_READ = ("complete_since", "lost_until", "read_to")
_READ_DDL = "home_partition int, complete_since timestamp, lost_until timestamp, read_to timestamp"


def _is_within(window: Window) -> Column:
    return F.col("append_time") >= F.lit(window.start)


def _earlier_commits(tables: Tables, before: Behaviour | None, commits: DataFrame, window: Window) -> DataFrame:
    """The newest commit of each group and partition before the window: rows like ``commits``, none where the offset was removed."""
    earlier = commits.where(~_is_within(window))
    if before:
        described = tables.read_whole(before.table(GROUP_PARTITIONS))
        described = described.where(F.col("removed").isNull() | (F.col("removed_at") >= F.lit(window.start)))
        place = (F.col("last_commit_offset").alias("log_offset"), F.col("last_commit").alias("commit_time"))
        newest = F.struct(*place, "committed", "topic_id", "expire_time")
        stood = F.when(F.col("last_commit") < F.lit(window.start), newest).otherwise(F.col("earlier")).alias("stood")
        known = described.select(*KEYS, stood).where(F.col("stood").isNotNull()).select(*KEYS, "stood.*")
        earlier = earlier.unionByName(known.withColumn("tombstone", F.lit(False)), allowMissingColumns=True)
    row = F.struct(*[F.col(name) for name in commits.columns if name not in KEYS])
    newest_rows = earlier.groupBy(*KEYS).agg(F.max_by(row, "log_offset").alias("row"))
    return newest_rows.select(*KEYS, "row.*").where(~F.col("tombstone"))


def _observed_from(partitions: DataFrame, records: DataFrame) -> str | None:
    """The time of the oldest record in the window (ISO 8601): later than its start after compaction, or where reading began later."""
    times = partitions.select(F.col("first_commit").alias("at")).union(records.select("append_time"))
    ((at,),) = times.agg(F.unix_millis(F.min("at"))).collect()
    return datetime.fromtimestamp(at / 1000, timezone.utc).isoformat() if at is not None else None


def newest_record(batch: Path) -> datetime:
    """When the newest record of a decoded batch was appended; for a batch without records, when the run that read it began.

    IntegrityError (exit 5) when files are missing, were added or cannot be read. Hashes are not compared here.
    """
    times = []
    for name in verify_batch(batch, REPAIR_OF_DECODED, names_only=True):
        if name.startswith(_WITH_TIMES):
            with read_as_parquet(batch / name, REPAIR_OF_DECODED):
                times.append(_newest_of(batch / name))
    return max((time for time in times if time is not None), default=None) or read_at(batch.parents[1], batch.name)


def _newest_of(part: Path) -> datetime | None:
    file = pq.ParquetFile(part, coerce_int96_timestamp_unit="us")
    column = file.schema_arrow.get_field_index("append_time")
    groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
    statistics: list[Any] = [group.column(column).statistics for group in groups if group.num_rows]
    if all(one is not None and one.has_min_max for one in statistics):
        times = [one.max for one in statistics]
    else:
        times = [
            pc.max(file.read_row_group(number, columns=["append_time"])["append_time"]).as_py() for number in range(file.num_row_groups)
        ]
    return max((_utc(time) for time in times if time is not None), default=None)


def _utc(time: datetime) -> datetime:
    return time.astimezone(timezone.utc) if time.tzinfo else time.replace(tzinfo=timezone.utc)


def _manifest_of(history: Path, batches: list[Path], before: Behaviour | None, about: Mapping[str, Any]) -> dict[str, Any]:
    """What a behaviour folder's manifest says besides its files: its sources with their manifests' sha256, and the offsets they lack."""
    raw = {batch.name: history / "raw" / batch.name / MANIFEST for batch in batches}
    manifests = {name: raw_manifest(history, name) for name in raw}
    # Offsets that were deleted before they could be read, by partition of the offsets topic.
    gaps = [
        {"batch": name, **{field: one[field] for field in ("partition", "start", "lost")}}
        for name, manifest in manifests.items()
        for one in manifest.get("partitions", ())
        if one["lost"]
    ]
    return {
        **read_json(history / SOURCE),
        **{name: value.isoformat() if isinstance(value, datetime) else value for name, value in about.items()},
        "kind": BEHAVIOUR,
        "before": {"folder": before.path.name, "manifest_sha256": sha256_of(before.path / MANIFEST)} if before and before.path else None,
        "sources": [
            {"batch": batch.name, "manifest_sha256": sha256_of(batch / MANIFEST), "raw_manifest_sha256": sha256_of(raw[batch.name])}
            for batch in batches
        ],
        "totals": {
            name: sum(manifests[batch.name]["totals"][name] for batch in batches) for name in ("expected", "rows", "lost", "skipped")
        },
        "gaps": gaps[:_GAPS_LISTED],
        "gap_count": len(gaps),
    }
