"""Rolls the offsets snapshots of one UTC day up into two files, sorted by group, topic, partition and time."""

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from kafka_audit.errors import IntegrityError
from kafka_audit.lag_days import (
    GROUP_PARTITIONS,
    GROUPS,
    LagDay,
    can_be_replaced,
    day_start_ms,
    manifest_of,
    needs_work,
    read_days,
    snapshot_days,
)
from kafka_audit.lag_samples import DAY_MS, Samples, read_samples
from kafka_audit.store.durable_files import replaced_folder, write_json
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import MANIFEST, tree_files
from spark_jobs.lag_history import rows
from spark_jobs.parquet_folder import write_one_file
from spark_jobs.session import whole_stages
from spark_jobs.tables import LargeTables, schema_of

_A_DAY = timedelta(days=1)


def roll_up(spark: SparkSession, root: EvidenceRoot, cluster: str, until: date, interval_seconds: int) -> list[date]:
    """Make every day up to ``until`` that has offsets snapshots and no folder that was made of them; returns these days.

    A folder that cannot be opened, and of which a snapshot is missing or changed, is left alone; IntegrityError after the other days.
    """
    made, broken = [], []
    for day in [one for one in snapshot_days(root, cluster) if one <= until]:
        start, interval_ms = day_start_ms(day), interval_seconds * 1000
        found = {one.day: one for one in read_days(root, cluster, day - _A_DAY, day)[0]}
        yesterday = found.get(day - _A_DAY)
        samples = read_samples(
            *(root, cluster),
            first_ms=start,
            last_ms=start + DAY_MS,
            interval_ms=interval_ms,
            cluster_id=None,
            before=yesterday.cluster_id if yesterday else None,
        )
        previous = yesterday if yesterday and yesterday.cluster_id == samples.cluster_id else None
        previous_sha256 = previous.manifest_sha256 if previous else None
        place = root.lag_days(cluster) / day.isoformat()
        if place.exists() and day not in found and not can_be_replaced(place, samples):
            broken.append(str(place))
        elif needs_work(found.get(day), samples, interval_ms, previous_sha256):
            with replaced_folder(place) as folder, whole_stages(spark):
                _write(spark, folder, samples, previous, manifest_of(cluster, day, samples, interval_ms, previous_sha256))
            made.append(day)
    if broken:
        raise IntegrityError(
            f"rolled up {len(made)} days, and left alone what cannot be opened and not all of whose snapshots are there as they were: "
            f"{', '.join(broken)}: restore it from a copy, or remove it"
        )
    return made


def _write(spark: SparkSession, folder: Path, samples: Samples, previous: LagDay | None, manifest: Mapping[str, Any]) -> None:
    tables = LargeTables(spark=spark)
    seed, seed_ms = rows.seed_of(tables, previous, samples.used[0].taken_ms)
    built = rows.group_partition_rows(tables, samples.used, seed, seed_ms, manifest["interval_seconds"] * 1000)
    write_one_file(built, [*rows.KEYS, "taken_ms"], folder / GROUP_PARTITIONS)
    written = tables.read(schema_of(rows.GROUP_PARTITIONS), [folder / GROUP_PARTITIONS])
    write_one_file(rows.group_rows(written), ["group_id", "topic", "taken_ms"], folder / GROUPS)
    write_json(folder / MANIFEST, {**manifest, "files": tree_files(folder)})
