"""Recorded and invented records of the offsets topic as raw rows."""

import struct
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.offsets_topic.records import RAW_DDL
from spark_jobs.offsets_topic.topic import OFFSETS, Topic
from spark_jobs.parquet_folder import write_parquet

RECORDED = Path(__file__).parents[1] / "recorded"


def recorded(spark: SparkSession) -> DataFrame:
    """4,169 records of every type, as Kafka 4.3.1 wrote them."""
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


def raw(spark: SparkSession, *records: tuple[bytes | None, bytes | None]) -> DataFrame:
    return spark.createDataFrame([(0, offset, None, *record) for offset, record in enumerate(records)], RAW_DDL)


@contextmanager
def decoded(rows: DataFrame, topic: Topic = OFFSETS) -> Iterator[dict[str, DataFrame]]:
    """The decoded tables of raw rows, for as long as the block lasts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_parquet(rows.coalesce(2), folder / "raw")
        counts = topic.decode(rows.sparkSession, folder / "raw", folder)
        tables = {table: rows.sparkSession.read.parquet(str(folder / f"{table}.parquet")) for table in counts}
        assert {table: found.count() for table, found in tables.items()} == counts
        yield tables
