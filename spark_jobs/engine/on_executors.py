"""What the Python workers of a Spark cluster run: they read Parquet that the driver sent, and make Parquet for the driver to write.

A worker needs pyarrow and nothing of this project: the functions here are sent to it as they are. So nothing here may import from
``kafka_audit`` or ``spark_jobs``.
"""

import io
import sys
from collections.abc import Iterator
from typing import TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import Broadcast, TaskContext, cloudpickle

ROWS_OF_A_GROUP = 32_768
"""Rows of a row group, which a worker holds in memory until they are written."""

_ROWS_OF_A_BATCH = 10_000


SentFile: TypeAlias = tuple[str, bytes, str | None]
"""The name of a Parquet file, its bytes or those of some of its rows, and the ``snapshot_id`` that its rows get, if they get one.

Plain values: a broadcast is unpickled where no class of this project is.
"""


def decoded(schema: pa.Schema, files: Broadcast[list[SentFile]], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of the files with the columns of ``schema``; one that a file does not have is null. ``batches`` do not count."""
    for _ in batches:
        pass
    for name, data, snapshot_id in files.value:
        try:
            yield from _rows(data, schema, snapshot_id)
        except (OSError, pa.ArrowException) as problem:
            raise ValueError(f"{name}: cannot be read as Parquet ({problem})") from problem


def _rows(data: bytes, schema: pa.Schema, snapshot_id: str | None) -> Iterator[pa.RecordBatch]:
    source = pq.ParquetFile(io.BytesIO(data), coerce_int96_timestamp_unit="us")
    there = [name for name in schema.names if name in source.schema_arrow.names]
    for batch in source.iter_batches(_ROWS_OF_A_BATCH, columns=there):
        constants = {"snapshot_id": snapshot_id} if snapshot_id is not None else {}
        yield pa.RecordBatch.from_arrays(
            [
                pa.repeat(pa.scalar(constants[field.name], field.type), batch.num_rows)
                if field.name in constants
                else batch[field.name].cast(field.type)
                if field.name in there
                else pa.nulls(batch.num_rows, field.type)
                for field in schema
            ],
            schema=schema,
        )


def encoded(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of one partition as a Parquet file in pieces: ``part`` int (the partition's number), ``data`` binary. Without rows: none."""
    context = TaskContext.get()
    assert context is not None  # it runs in a task
    out, writer = _Pieces(), None
    for rows in _groups(batches):
        writer = writer or pq.ParquetWriter(pa.PythonFile(out, mode="w"), schema, compression="zstd", store_schema=False)
        writer.write_table(rows.cast(schema))
        yield _piece(context.partitionId(), out.take())
    if writer is not None:
        writer.close()
        yield _piece(context.partitionId(), out.take())


def _piece(part: int, data: bytes) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([part], pa.int32()), pa.array([data], pa.binary())], ["part", "data"])


def _groups(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(batch)
        if sum(one.num_rows for one in held) >= ROWS_OF_A_GROUP:
            yield pa.Table.from_batches(held)
            held = []
    if any(one.num_rows for one in held):
        yield pa.Table.from_batches(held)


class _Pieces(io.RawIOBase):
    """A file of which what was written can be taken away."""

    def __init__(self) -> None:
        self._held: list[bytes] = []
        self._position = 0

    def writable(self) -> bool:
        return True

    def write(self, data: memoryview) -> int:  # type: ignore[override]  # a buffer, as pyarrow gives it
        self._held.append(bytes(data))
        self._position += len(self._held[-1])
        return len(self._held[-1])

    def tell(self) -> int:
        return self._position

    def take(self) -> bytes:
        held, self._held = self._held, []
        return b"".join(held)


cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]
