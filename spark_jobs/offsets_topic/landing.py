"""Raw rows of the offsets topic -> Parquet as they came, written by Arrow in Spark's tasks, and counted on the way."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame

from kafka_audit.store.durable_files import rename_durably
from spark_jobs.offsets_topic.commits import RAW

_COUNTS = "partition int, count bigint, first bigint, last bigint"
_DELTAS = ("offset", "timestamp")
_ROWS_OF_A_GROUP = 262_144


@dataclass(frozen=True, kw_only=True)
class Landed:
    """What was written of one partition of the topic: how many records, the smallest and the largest offset."""

    count: int
    first: int
    last: int


def land(rows: DataFrame, folder: Path) -> dict[int, Landed]:
    """Write ``rows`` (commits.RAW) into part files of a new folder, one for each task; returns what they hold by partition.

    Counting on the way spares a second reading.
    """
    folder.mkdir()
    found: dict[int, Landed] = {}
    for partition, count, first, last in rows.mapInArrow(partial(_write, folder), _COUNTS).collect():  # a row for each partition and task
        before = found.get(partition, Landed(count=0, first=first, last=last))
        found[partition] = Landed(count=before.count + count, first=min(before.first, first), last=max(before.last, last))
    return found


def _write(folder: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a Python worker: write the batches of one task, and give back what they hold."""
    context = TaskContext.get()
    assert context is not None  # it runs in a task
    target = folder / f"part-{context.partitionId():05d}.parquet"
    partial_ = target.with_name(f".{target.name}.{context.taskAttemptId()}")  # a task that is tried again begins anew
    seen = []
    with pq.ParquetWriter(
        *(partial_, RAW),
        compression="zstd",
        compression_level=1,
        use_dictionary=["partition", "key"],
        column_encoding=dict.fromkeys(_DELTAS, "DELTA_BINARY_PACKED"),
        write_statistics=["partition", "offset", "timestamp"],
        store_schema=False,
    ) as writer:
        for batch in batches:
            writer.write_batch(batch.cast(RAW), row_group_size=_ROWS_OF_A_GROUP)
            seen.append(pa.Table.from_batches([batch.select(["partition", "offset"])]).group_by("partition").aggregate(_SUMS))
    rename_durably(partial_, target)  # here: the driver may be another machine
    if seen:
        whole = pa.concat_tables(seen)
        columns = [whole[name] for name in ("partition", "offset_count", "offset_min", "offset_max")]
        yield from pa.table(columns, names=["partition", "count", "first", "last"]).to_batches()


_SUMS = [("offset", "count"), ("offset", "min"), ("offset", "max")]
