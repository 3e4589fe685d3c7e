"""Writes raw records of a topic as Parquet, as they came, and counts which offsets were read, lost or skipped.

Offsets tell what is missing: the broker can compact records away while the log start stays 0.
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame

from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import rename_durably

RAW = pa.schema(
    [
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
)
"""A record of a Kafka topic, unchanged."""

LOST_ITS_END = (
    "the topic lost records at its end (an unclean leader election, or restored brokers). Keep this history as evidence and begin another"
)

_COUNTS = "partition int, count bigint, first bigint, last bigint"
_DELTAS = ("offset", "timestamp")
_ROWS_OF_A_GROUP = 262_144


@dataclass(frozen=True, kw_only=True)
class RawCounts:
    """What was written of one partition of the topic: how many records, and their smallest and largest offset."""

    count: int
    first: int
    last: int


def write_raw(rows: DataFrame, folder: Path) -> dict[int, RawCounts]:
    """Write ``rows`` (RAW) into part files of a new folder, one for each task; returns what they hold by partition.

    Rows are counted while they are written, which saves reading them again.
    """
    folder.mkdir()
    found: dict[int, RawCounts] = {}
    for partition, count, first, last in rows.mapInArrow(partial(_write, folder), _COUNTS).collect():  # a row for each partition and task
        before = found.get(partition, RawCounts(count=0, first=first, last=last))
        found[partition] = RawCounts(count=before.count + count, first=min(before.first, first), last=max(before.last, last))
    return found


def _write(folder: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a Python worker: write the batches of one task, and give back what they hold."""
    context = TaskContext.get()
    assert context is not None  # it runs in a task
    target = folder / f"part-{context.partitionId():05d}.parquet"
    partial_ = target.with_name(f".{target.name}.{context.taskAttemptId()}")  # a task that is tried again writes it once more
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


@dataclass(frozen=True, kw_only=True)
class PartitionCoverage:
    """One partition of one batch: offsets from ``start`` up to ``end``, and where they are.

    ``rows`` were read. ``lost`` lay before the log start: gone for certain. ``skipped`` is the rest: transaction markers, aborted commits
    and compacted records, which Kafka does not let a consumer tell apart. rows + lost + skipped = end - start.
    """

    partition: int
    start: int
    end: int
    log_start: int
    rows: int
    lost: int
    skipped: int


def coverage(
    start: Mapping[int, int], end: Mapping[int, int], log_start: Mapping[int, int], rows: Mapping[int, int]
) -> list[PartitionCoverage]:
    """The partitions in which the batch has a range, by number; IntegrityError where one ends before its start."""
    found = []
    for partition in sorted(end):
        first, last, read = start.get(partition, 0), end[partition], rows.get(partition, 0)
        if last == first:
            continue
        if last < first:
            raise IntegrityError(f"partition {partition} was read up to {first}, and ends at {last}: {LOST_ITS_END}")
        gone = max(0, min(log_start[partition], last) - first)
        # A record may be deleted between the look at the log start and the reading: it counts as skipped then, as lost only if not read.
        gone = min(gone, last - first - read)
        found.append(
            PartitionCoverage(
                partition=partition,
                start=first,
                end=last,
                log_start=log_start[partition],
                rows=read,
                lost=gone,
                skipped=last - first - gone - read,
            )
        )
    return found


def totals(partitions: list[PartitionCoverage]) -> dict[str, int]:
    """Sums of expected (end - start), rows, lost and skipped."""
    rows = [asdict(each) for each in partitions]
    return {"expected": sum(each["end"] - each["start"] for each in rows)} | {
        name: sum(each[name] for each in rows) for name in ("rows", "lost", "skipped")
    }
