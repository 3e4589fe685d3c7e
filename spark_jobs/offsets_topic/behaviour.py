"""The behaviour tables of a history: what groups did in a window of time, as far as the offsets topic was read.

    behaviour/<end of the window>/group_partitions.parquet, groups.parquet, manifest.json

They are derived: made from the decoded batches, once for each window, and old ones are removed.
"""

import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_audit.durable_files import read_json, replaced_folder, sha256_of, write_json
from spark_jobs.offsets_topic.commit_behaviour import KEYS, commit_behaviour
from spark_jobs.offsets_topic.group_behaviour import emptied, group_behaviour
from spark_jobs.verification import write_parquet

_KEPT = 200
_ROWS_OF_A_PART = 200_000
_FORMAT = "%Y%m%dT%H%M%SZ"


@dataclass(frozen=True, kw_only=True)
class Window:
    """From when to when, in UTC; of a cluster whose offsets.retention.minutes is ``retention_ms`` (None: not known)."""

    end: datetime
    length: timedelta
    retention_ms: int | None = None

    @property
    def start(self) -> datetime:
        return self.end - self.length


def describe(spark: SparkSession, history: Path, window: Window) -> Path | None:
    """Write the behaviour tables of a window; None when no batch is decoded yet. A window that is there is kept."""
    batches = sorted(found.parent for found in history.glob("decoded/[!.]*/manifest.json"))
    target = history / "behaviour" / window.end.strftime(_FORMAT)
    if not batches or (target / "manifest.json").is_file():
        return target if batches else None
    commits, records = (_within(spark, batches, name, window) for name in ("offset_commits", "group_records"))
    with replaced_folder(target) as folder:
        records = records.persist()
        partitions = commit_behaviour(commits, emptied(records), window.retention_ms).persist()
        groups = group_behaviour(records, partitions).persist()
        session = groups.select("group_id", "session_timeout_ms")
        over = F.col("longest_gap_ms") > F.col("session_timeout_ms")
        wide = partitions.join(session, on="group_id", how="left").withColumn("gap_over_session", over).drop("session_timeout_ms")
        rows = {
            "group_partitions": _write(wide, folder / "group_partitions.parquet", *KEYS),
            "groups": _write(groups, folder / "groups.parquet", "group_id"),
        }
        seen = _observed_from(partitions, records)
        for each in (groups, partitions, records):
            each.unpersist()
        write_json(folder / "manifest.json", {**_manifest(history, batches, window, rows, folder), **seen})
    for old in sorted(history.glob("behaviour/[!.]*"))[:-_KEPT]:
        shutil.rmtree(old)
    return target


def _within(spark: SparkSession, batches: list[Path], name: str, window: Window) -> DataFrame:
    rows = spark.read.parquet(*[str(batch / f"{name}.parquet") for batch in batches])
    return rows.where((F.col("append_time") >= F.lit(window.start)) & (F.col("append_time") < F.lit(window.end)))


def _write(rows: DataFrame, target: Path, *order: str) -> int:
    parts = 1 + rows.count() // _ROWS_OF_A_PART
    write_parquet(rows.repartitionByRange(parts, *order).sortWithinPartitions(*order), target)
    return rows.count()


def _observed_from(partitions: DataFrame, records: DataFrame) -> dict[str, str | None]:
    """The oldest record of the window: where the broker had compacted, or reading began later, the window is shorter than asked for."""
    oldest = (
        partitions.select(F.min("first_commit").alias("at")).union(records.select(F.min("append_time"))).agg(F.unix_millis(F.min("at")))
    )
    found = oldest.first()
    at = found[0] if found else None
    return {"observed_from": datetime.fromtimestamp(at / 1000, timezone.utc).isoformat() if at is not None else None}


def _manifest(history: Path, batches: list[Path], window: Window, rows: dict[str, int], folder: Path) -> dict[str, Any]:
    """What the tables are of, and how completely the topic was read in all batches that were there."""
    totals = [read_json(history / "raw" / batch.name / "manifest.json")["totals"] for batch in batches]
    return {
        "kind": "commit_behaviour",
        **read_json(history / "source.json"),
        "start": window.start.isoformat(),
        "end": window.end.isoformat(),
        "offsets_retention_ms": window.retention_ms,
        "batches": len(batches),
        "totals": {name: sum(each[name] for each in totals) for name in ("expected", "rows", "lost", "skipped")},
        "rows": rows,
        "files": {path.relative_to(folder).as_posix(): sha256_of(path) for path in sorted(folder.rglob("*.parquet")) if path.is_file()},
    }
