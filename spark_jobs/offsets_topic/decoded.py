"""Raw Parquet of the offsets topic -> three tables: offset commits, group records, and what could not be decoded."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from spark_jobs.offsets_topic import commits
from spark_jobs.offsets_topic.records import COMMIT_TYPES, GROUP_RECORDS, taken_apart
from spark_jobs.verification import write_parquet

TABLES = ("offset_commits", "group_records", "undecoded")
RAW_DDL = "partition int, offset bigint, timestamp timestamp, key binary, value binary"

_ROWS_AT_A_TIME = 131_072
_BYTES_AT_A_TIME = 1 << 30  # an Arrow array of texts ends at twice that; a group id may have 32,767 bytes
_ROWS_OF_A_PART = 500_000
_DELTAS = ("log_offset", "append_time", "committed", "commit_time")
"""Columns in which a dictionary only costs time: hardly a value comes twice."""


def decode(spark: SparkSession, raw: Path, folder: Path) -> dict[str, int]:
    """Decode the parts of ``raw`` into the tables of ``folder``, each row into exactly one; returns the rows of each table.

    offset_commits: commits.SCHEMA. group_records: log_partition int, log_offset bigint, append_time timestamp, record_type smallint,
    record_name, version smallint, tombstone boolean, group_id, member_id, regular_expression, and a struct for each record name.
    undecoded: log_partition, log_offset, append_time, record_type, version, problem (why), key and value as they were.
    """
    parts = sorted(raw.glob("part-*.parquet"))
    (folder / "offset_commits.parquet").mkdir()
    pairs = [(part, folder / "offset_commits.parquet" / part.name) for part in parts]
    # One task for each part. Only what is not regular, a few rows in a thousand, comes back to Spark and is taken apart there.
    rest = spark.range(0, len(pairs), 1, max(1, len(pairs))).mapInArrow(partial(_write_regular, pairs), RAW_DDL)
    # A checkpoint and not persist(): four queries follow, and planning the taking apart again for each costs more than doing it.
    others = rest.transform(taken_apart).localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)
    sound, commit = F.col("problem").isNull(), F.col("record_type").isin(*COMMIT_TYPES)
    irregular, groups, undecoded = (others.where(rows) for rows in (sound & commit, sound & ~commit, ~sound))
    counts = others.agg(F.count_if(sound & commit), F.count_if(sound & ~commit), F.count_if(~sound)).first()
    rows = dict(zip(TABLES, counts or (0, 0, 0), strict=True))
    if rows["offset_commits"]:
        _write(irregular.transform(_irregular_commits), folder / "irregular", rows["offset_commits"])
        for part in sorted((folder / "irregular").iterdir()):
            part.rename(folder / "offset_commits.parquet" / f"irregular-{part.name}")
        (folder / "irregular").rmdir()
    _write(groups.select(*_GROUP_COLUMNS), folder / "group_records.parquet", rows["group_records"])
    _write(undecoded.select(*_UNDECODED_COLUMNS), folder / "undecoded.parquet", rows["undecoded"])
    rows["offset_commits"] += sum(pq.read_metadata(target).num_rows for _, target in pairs)
    return rows


_PLACE = ("log_partition", "log_offset", "append_time", "record_type")
_GROUP_COLUMNS = (
    *(*_PLACE, "record_name", "version", "tombstone", "group_id", "member_id", "regular_expression"),
    *(record.name for record in GROUP_RECORDS),
)
_UNDECODED_COLUMNS = (*_PLACE, "version", "problem", "key", "value")


def _write_regular(pairs: Sequence[tuple[Path, Path]], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a Python worker: write the regular commits of the parts with the numbers in ``batches``, and give back their other rows."""
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from _regular_of(*pairs[number])


def _regular_of(source: Path, target: Path) -> Iterator[pa.RecordBatch]:
    partial_ = target.with_name(f".{target.name}")  # a task that is tried again begins anew
    columns = [name for name in commits.COLUMNS if name not in _DELTAS]
    with (
        pq.ParquetFile(source, read_dictionary=["key"], coerce_int96_timestamp_unit="us") as file,
        pq.ParquetWriter(
            *(partial_, commits.SCHEMA),
            compression="zstd",
            compression_level=1,
            use_dictionary=columns,
            column_encoding=dict.fromkeys(_DELTAS, "DELTA_BINARY_PACKED"),
            store_schema=False,
        ) as writer,
    ):
        for batch in file.iter_batches(_ROWS_AT_A_TIME, columns=commits.RAW.names):
            at = commits.RAW.get_field_index("timestamp")
            timed = batch.set_column(at, "timestamp", batch.column(at).cast(commits.RAW.field("timestamp").type))
            longest = pc.max(pc.binary_length(timed.column("key").dictionary)).as_py() or 1
            step = max(1, _BYTES_AT_A_TIME // longest)
            for first in range(0, len(timed), step):
                regular, rest = commits.regular_commits(timed.slice(first, step))
                writer.write_batch(regular)
                if len(rest):
                    yield rest.cast(commits.RAW)
    partial_.rename(target)


def _irregular_commits(rows: DataFrame) -> DataFrame:
    value = {name: F.col(f"offset_commit.{name}") for name in ("committed", "leader_epoch", "metadata", "topic_id")}
    times = {f"{name}_time": F.expr(commits.time_of(f"offset_commit.{name}_ms")) for name in ("commit", "expire")}
    return rows.withColumns({**value, **times}).select(*commits.COLUMNS)


def _write(rows: DataFrame, target: Path, count: int) -> None:
    write_parquet(rows.coalesce(1 + count // _ROWS_OF_A_PART), target)
