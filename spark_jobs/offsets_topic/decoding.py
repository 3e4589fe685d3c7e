"""Raw Parquet of a topic -> its tables: regular records by position, in tasks of their own, and what is left field by field."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from kafka_audit.store.durable_files import rename_durably
from spark_jobs.offsets_topic.commits import RAW
from spark_jobs.offsets_topic.records import RAW_DDL, Record, taken_apart
from spark_jobs.offsets_topic.tables import Table, write_tables

_ROWS_AT_A_TIME = 131_072
_BYTES_AT_A_TIME = 1 << 30  # an Arrow array of texts ends at twice that; a group id may have 32,767 bytes
_IRREGULAR = "irregular"


@dataclass(frozen=True, kw_only=True)
class Regular:
    """A table most of whose rows are read by position.

    ``split`` parts raw rows (commits.RAW, the key a dictionary) into rows of ``schema`` and what is not regular. Of that, Spark takes the
    ones for which ``rows`` (SQL) is true into the same table, as ``columns`` makes them. ``deltas`` are columns in which a dictionary only
    costs time: hardly a value comes twice.
    """

    table: str
    schema: pa.Schema
    deltas: tuple[str, ...]
    split: Callable[[pa.RecordBatch], tuple[pa.RecordBatch, pa.RecordBatch]]
    rows: str
    columns: Callable[[DataFrame], DataFrame]


def decode_batch(  # noqa: PLR0917  (what is read, and how)
    spark: SparkSession, raw: Path, folder: Path, regular: Regular, records: Sequence[Record], others: Sequence[Table] = ()
) -> dict[str, int]:
    """Decode the parts of ``raw`` into the tables of ``folder``, each row into exactly one; returns the rows of each table.

    ``records`` are the topic's; ``others`` the tables beside that of ``regular`` and ``undecoded``.
    """
    parts = sorted(raw.glob("part-*.parquet"))
    target = folder / f"{regular.table}.parquet"
    target.mkdir()
    pairs = [(part, target / part.name) for part in parts]
    # One task for each part. Only what is not regular, a few rows in a thousand, comes back to Spark and is taken apart there.
    rest = spark.range(0, len(pairs), 1, max(1, len(pairs))).mapInArrow(partial(_write_regular, regular, pairs), RAW_DDL)
    irregular = Table(name=_IRREGULAR, rows=regular.rows, columns=regular.columns, optional=True)
    rows = write_tables(taken_apart(rest, records), (irregular, *others), folder)
    if rows[_IRREGULAR]:
        for part in sorted((folder / f"{_IRREGULAR}.parquet").iterdir()):
            part.rename(target / f"{_IRREGULAR}-{part.name}")
        (folder / f"{_IRREGULAR}.parquet").rmdir()
    rows[regular.table] = rows.pop(_IRREGULAR) + sum(pq.read_metadata(part).num_rows for _, part in pairs)
    return rows


def _write_regular(regular: Regular, pairs: Sequence[tuple[Path, Path]], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a Python worker: write the regular records of the parts with the numbers in ``batches``, and give back their other rows."""
    for batch in batches:
        for number in batch.column("id").to_pylist():
            yield from _regular_of(regular, *pairs[number])


def _regular_of(regular: Regular, source: Path, target: Path) -> Iterator[pa.RecordBatch]:
    partial_ = target.with_name(f".{target.name}")  # a task that is tried again begins anew
    columns = [field.name for field in regular.schema if field.name not in regular.deltas and not pa.types.is_nested(field.type)]
    with (
        pq.ParquetFile(source, read_dictionary=["key"], coerce_int96_timestamp_unit="us") as file,
        pq.ParquetWriter(
            *(partial_, regular.schema),
            compression="zstd",
            compression_level=1,
            use_dictionary=columns,
            column_encoding=dict.fromkeys(regular.deltas, "DELTA_BINARY_PACKED"),
            store_schema=False,
        ) as writer,
    ):
        groups = range(file.num_row_groups)  # one after another: Arrow would hold as many as it takes for a whole batch, of any size
        for batch in (one for group in groups for one in file.iter_batches(_ROWS_AT_A_TIME, row_groups=[group], columns=RAW.names)):
            at = RAW.get_field_index("timestamp")
            timed = batch.set_column(at, "timestamp", batch.column(at).cast(RAW.field("timestamp").type))
            longest = pc.max(pc.binary_length(timed.column("key").dictionary)).as_py() or 1
            step = max(1, _BYTES_AT_A_TIME // longest)
            for first in range(0, len(timed), step):
                rows, rest = regular.split(timed.slice(first, step))
                writer.write_batch(rows)
                if len(rest):
                    yield rest.cast(RAW)
    rename_durably(partial_, target)  # here: the driver may be another machine
