"""A commit history of the recorded records in one batch, as a run of read_commits leaves it, and the rows of its tables."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
from coordinator_records import recorded_rows
from pyspark.sql import SparkSession

from kafka_audit.store.durable_files import write_json
from spark_jobs.commit_history.describe.behaviour_tables import Window, describe
from spark_jobs.commit_history.history import History, Planned

RECORDED = datetime(2026, 11, 20, 22, 10, tzinfo=timezone.utc)
"""After the newest of the recorded records."""


def land(spark: SparkSession, folder: Path) -> None:
    """Land the records, which executors get from the driver, decode them, and describe the day before RECORDED."""
    rows = recorded_rows()
    partitions = pc.unique(rows["partition"]).to_pylist()
    planned = Planned(batch="00000001", start=dict.fromkeys(partitions, 0), end=dict.fromkeys(partitions, 3_000_000))
    history = History(path=folder)
    write_json(folder / "source.json", {"cluster_id": "own", "topic_id": "topic"})
    history.land(spark.createDataFrame(rows).repartition(3), planned, planned.start, RECORDED)
    history.decode(spark)
    assert describe(spark, folder, Window(end=RECORDED, length=timedelta(hours=24), partitions=50)) is not None


def rows_below(folder: Path) -> dict[str, list[str]]:
    """The rows of every table in a folder, by its path there."""
    found: dict[str, list[str]] = {}
    for part in sorted(folder.glob("**/*.parquet/*.parquet")):
        found.setdefault(part.parent.relative_to(folder).as_posix(), []).extend(map(str, pq.read_table(part).to_pylist()))
    return {name: sorted(rows) for name, rows in found.items()}
