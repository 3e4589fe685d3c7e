"""Writes raw records of a topic as Parquet, as they came, and counts which offsets were read, lost or skipped.

Offsets tell what is missing: the broker can compact records away while the log start stays 0.
"""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame

from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import rename_durably
from kafka_audit.submit import is_local
from spark_jobs.engine.remote_tables import tables_of
from spark_jobs.engine.tables import parts_of

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


def write_raw(rows: DataFrame, folder: Path) -> dict[int, tuple[int, int, int]]:
    """Write ``rows`` (RAW) into part files of a new folder, one for each task.

    Returns partition -> how many records were written of it, and their smallest and largest offset. Executors that are threads of the
    driver write the files, and count the rows meanwhile. All others see no folder of the driver: it writes what they send.
    """
    if is_local(rows.sparkSession.conf.get("spark.master") or ""):
        folder.mkdir()
        written = rows.mapInArrow(partial(_write, folder), _COUNTS).toArrow()  # a row for each partition and task
    else:
        tables_of(rows.sparkSession).write(rows, folder)
        written = pa.concat_tables(map(_counts, parts_of([folder])))
    sums = written.group_by("partition").aggregate([("count", "sum"), ("first", "min"), ("last", "max")]).to_pylist()
    return {row["partition"]: (row["count_sum"], row["first_min"], row["last_max"]) for row in sums}


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
            seen.append(_summed(pa.Table.from_batches([batch.select(["partition", "offset"])])))
    rename_durably(partial_, target)
    if seen:
        yield from pa.concat_tables(seen).to_batches()


def _counts(part: Path) -> pa.Table:
    """Those of the rows of a file that the driver wrote."""
    return _summed(pq.read_table(part, columns=["partition", "offset"]))


def _summed(rows: pa.Table) -> pa.Table:
    sums = rows.group_by("partition").aggregate([("offset", "count"), ("offset", "min"), ("offset", "max")])
    return sums.select(["partition", "offset_count", "offset_min", "offset_max"]).rename_columns(["partition", "count", "first", "last"])


def coverage(
    start: Mapping[int, int], end: Mapping[int, int], log_start: Mapping[int, int], rows: Mapping[int, int]
) -> list[dict[str, int]]:
    """The partitions in which the batch has a range, by number: partition, start, end, log_start, rows, lost and skipped.

    Of the offsets from start up to end, ``rows`` were read. ``lost`` lay before the log start: gone for certain. ``skipped`` is the rest:
    transaction markers, aborted commits and compacted records, which Kafka does not let a consumer tell apart. IntegrityError where a
    range ends before its start.
    """
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
        place = {"partition": partition, "start": first, "end": last, "log_start": log_start[partition]}
        found.append({**place, "rows": read, "lost": gone, "skipped": last - first - gone - read})
    return found


def totals(partitions: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Sums of expected (end - start), rows, lost and skipped."""
    counted = [{**each, "expected": each["end"] - each["start"]} for each in partitions]
    return {name: sum(each[name] for each in counted) for name in ("expected", "rows", "lost", "skipped")}
