"""Recorded and made-up records of the coordinators' topics as raw rows, and what they are decoded to."""

import struct
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, Row, SparkSession

from spark_jobs.commit_history.decode.batch import OFFSETS, Topic, decode_batch, decode_part
from spark_jobs.commit_history.read.raw_writer import RAW
from spark_jobs.engine.tables import write_parquet

RECORDED = Path(__file__).parent / "recorded"
RAW_DDL = "partition int, offset bigint, timestamp timestamp, key binary, value binary"

Pair = tuple[bytes | None, bytes | None]


@cache
def recorded_rows() -> pa.Table:
    """4,169 records of every type, as Kafka 4.3.1 wrote them (RAW)."""
    rows = pq.read_table(RECORDED / "consumer_offsets_all_kinds.parquet")
    times = rows["append_ts"].cast(pa.int64()).cast(pa.timestamp("ms", "UTC"))
    columns = [rows["kpartition"], rows["koffset"], times, rows["key"], rows["value"]]
    return pa.table(columns, names=RAW.names).cast(RAW)


def recorded(spark: SparkSession) -> DataFrame:
    """The same in Spark."""
    rows = spark.read.parquet(str(RECORDED / "consumer_offsets_all_kinds.parquet"))
    return rows.selectExpr("kpartition partition", "koffset offset", "timestamp_millis(append_ts) timestamp", "key", "value")


def values(coordinator: str = "coordinator") -> dict[tuple[str, int], bytes]:
    """Values that Kafka 4.3.1's own serialiser made (the Java files beside them), by name and version."""
    lines = (line.split() for line in (RECORDED / f"{coordinator}_values.txt").read_text().splitlines())
    return {(name, int(version)): bytes.fromhex(text) for name, version, text in lines}


def text(value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return struct.pack(">h", len(data)) + data


def key(record_type: int, *parts: str | bytes | int) -> bytes:
    return struct.pack(">h", record_type) + b"".join(struct.pack(">i", p) if isinstance(p, int) else text(p) for p in parts)


def raw_rows(*records: Pair) -> pa.Table:
    """Records of partition 0 without a time, at the offsets 0, 1, 2 and so on (RAW)."""
    rows = [(0, offset, None, *record) for offset, record in enumerate(records)]
    return pa.table([pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), RAW, strict=True)], schema=RAW)


def tables(rows: pa.Table, topic: Topic = OFFSETS) -> dict[str, list[Row]]:
    """The rows of each table that raw rows are decoded to, by their offset; structs are Rows, too. No Spark is started for it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pq.write_table(rows, folder / "part-00000.parquet")
        for table in topic.tables:
            (folder / f"{table.name}.parquet").mkdir()
        counts = decode_part(topic, folder / "part-00000.parquet", folder)
        found = {table: pq.read_table(folder / f"{table}.parquet").to_pylist() for table in counts}
    assert {table: len(of_table) for table, of_table in found.items()} == counts
    return {table: sorted(_rows(of_table), key=lambda row: (row.log_partition, row.log_offset)) for table, of_table in found.items()}


def _rows(values_: Iterable[Any]) -> list[Any]:
    return [_row(each) for each in values_]


def _row(value: Any) -> Any:
    if isinstance(value, dict):
        return Row(**{name: _row(each) for name, each in value.items()})
    return _rows(value) if isinstance(value, list) else value


@contextmanager
def decoded(rows: DataFrame, topic: Topic = OFFSETS) -> Iterator[dict[str, DataFrame]]:
    """The decoded tables of raw rows in Spark, for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_parquet(rows.coalesce(2), folder / "raw")
        counts = decode_batch(rows.sparkSession, topic, folder / "raw", folder)
        found = {table: rows.sparkSession.read.parquet(str(folder / f"{table}.parquet")) for table in counts}
        assert {table: of_table.count() for table, of_table in found.items()} == counts
        yield found
