"""Decodes raw Parquet of a topic into its tables, in Spark's Python workers: regular records by position, all others field by field."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from kafka_audit.store.durable_files import rename_durably
from kafka_audit.submit import is_local
from spark_jobs.commit_history.decode import commits, transactions
from spark_jobs.commit_history.decode.messages import Row
from spark_jobs.commit_history.decode.records import (
    COMMIT_TYPES,
    GROUP_RECORD_FIELDS,
    GROUP_RECORDS,
    OFFSETS_RECORDS,
    PLACE,
    TRANSACTION_RECORDS,
    Decoded,
    RecordType,
    decode_record,
)
from spark_jobs.commit_history.read.raw_writer import RAW
from spark_jobs.commit_history.read.source import TOPIC

_ROWS_AT_A_TIME = 131_072
_BYTES_AT_A_TIME = 1 << 30  # an Arrow array of texts ends at twice that; a group id may have 32,767 bytes
_IRREGULAR_AT_A_TIME = 10_000
_IRREGULAR_BYTES_AT_A_TIME = 2 << 20  # Python objects take up to 130 times that; a record has at most 1 MB by default (message.max.bytes)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of decoded records. ``types``: the numbers of its record types. ``row``: the columns of a record, but for its place.

    ``deltas``: columns whose values hardly repeat, so that a Parquet dictionary of them would only cost time.
    """

    name: str
    schema: pa.Schema
    types: Collection[int]
    row: Callable[[Decoded], Row]
    deltas: Collection[str] = ()


@dataclass(frozen=True, kw_only=True)
class Topic:
    """A coordinators' topic. ``tables``: the first holds the regular records, the last those that cannot be decoded.

    ``split`` divides raw rows (RAW, the key may be a dictionary) into rows of the first table's schema and all other raw rows.
    """

    name: str
    records: Mapping[int, RecordType]
    split: Callable[[pa.RecordBatch], tuple[pa.RecordBatch, pa.RecordBatch]]
    tables: Sequence[Table]


def _group_record(record: Decoded) -> Row:
    about = {"record_type": record.type, "record_name": record.name, "version": record.version, "tombstone": record.value is None}
    return {**about, **record.key, str(record.name): record.value}


OFFSET_COMMITS = Table(
    name="offset_commits",
    schema=commits.SCHEMA,
    types=COMMIT_TYPES,
    row=commits.irregular_commit,
    deltas=("log_offset", "append_time", "committed", "commit_time"),
)
GROUP_TABLE = Table(
    name="group_records",
    schema=pa.schema(
        [
            *PLACE,
            ("record_type", pa.int16()),
            ("record_name", pa.string()),
            ("version", pa.int16()),
            pa.field("tombstone", pa.bool_(), nullable=False),
            ("group_id", pa.string()),
            ("member_id", pa.string()),
            ("regular_expression", pa.string()),
            *GROUP_RECORD_FIELDS,
        ]
    ),
    types=[each.number for each in GROUP_RECORDS],
    row=_group_record,
)
"""A row holds the struct of its own record name; the other structs are NULL, and all of them are in a tombstone."""
UNDECODED = Table(
    name="undecoded",
    schema=pa.schema(
        [
            *PLACE,
            ("record_type", pa.int16()),
            ("version", pa.int16()),
            ("problem", pa.string()),
            ("key", pa.binary()),
            ("value", pa.binary()),
        ]
    ),
    types=(),
    row=lambda record: {"record_type": record.type, "version": record.version, "problem": record.problem},
)
"""Records that cannot be decoded, unchanged; ``problem`` says why."""
TRANSACTION_TABLE = Table(
    name="transactions",
    schema=transactions.SCHEMA,
    types=tuple(TRANSACTION_RECORDS),
    row=transactions.irregular_transaction,
    deltas=("log_offset", "append_time", "last_update", "start"),
)

OFFSETS = Topic(
    name=TOPIC,
    records=OFFSETS_RECORDS,
    split=commits.regular_commits,
    tables=(OFFSET_COMMITS, GROUP_TABLE, UNDECODED),
)
TRANSACTIONS = Topic(
    name="__transaction_state",
    records=TRANSACTION_RECORDS,
    split=transactions.regular_transactions,
    tables=(TRANSACTION_TABLE, UNDECODED),
)
TOPICS = {topic.name: topic for topic in (OFFSETS, TRANSACTIONS)}


def decode_batch(spark: SparkSession, topic: Topic, raw: Path, folder: Path) -> dict[str, int]:
    """Decode the parts of ``raw`` into ``<table>.parquet`` of ``folder``, each row into exactly one table; returns the rows of each.

    A table has a part for each raw part, of the same name. Where executors see no folder of the driver, the driver decodes.
    """
    parts = sorted(raw.glob("part-*.parquet"))
    for table in topic.tables:
        (folder / f"{table.name}.parquet").mkdir()
    rows = Counter({table.name: 0 for table in topic.tables})
    if not is_local(spark.conf.get("spark.master") or ""):
        for part in parts:
            rows.update(decode_part(topic, part, folder))
        return dict(rows)
    # One task for each part.
    tasks = spark.range(0, len(parts), 1, max(1, len(parts)))
    for name, count in tasks.mapInArrow(partial(_decode_parts, topic.name, parts, folder), "name string, rows bigint").collect():
        rows[name] += count
    return dict(rows)


def _decode_parts(topic: str, parts: Sequence[Path], folder: Path, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In a Python worker: decode the parts with the numbers in ``batches``, and give back how many rows each table got."""
    for batch in batches:
        for number in batch.column("id").to_pylist():
            rows = decode_part(TOPICS[topic], parts[number], folder)
            yield pa.RecordBatch.from_pydict({"name": list(rows), "rows": list(rows.values())})


def decode_part(topic: Topic, source: Path, folder: Path) -> dict[str, int]:
    """Decode one raw part into a part of each table; returns the rows of each table."""
    rows = Counter({table.name: 0 for table in topic.tables})
    with ExitStack() as stack:
        parts = {table.name: stack.enter_context(_part(folder / f"{table.name}.parquet" / source.name, table)) for table in topic.tables}
        for raw in _raw_rows(source):
            rows.update(_write_decoded(topic, raw, parts))
    return dict(rows)


def _write_decoded(topic: Topic, raw: pa.RecordBatch, parts: Mapping[str, pq.ParquetWriter]) -> Counter[str]:
    """Decode raw rows and write them; returns the rows of each table that got some."""
    regular, rest = topic.split(raw)
    parts[topic.tables[0].name].write_batch(regular)
    rows = Counter({topic.tables[0].name: len(regular)})
    for step in _steps(rest):
        for table, batch in _field_by_field(topic, step.cast(RAW)):
            parts[table.name].write_table(pa.Table.from_batches([batch]))  # unlike write_batch it keeps nothing in memory
            rows[table.name] += len(batch)
    return rows


def _steps(rest: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Raw rows cut where the bytes of their keys and values reach the limit; a row that is larger than the limit is alone."""
    key = rest.column("key")
    sizes = [pc.binary_length(key.dictionary).take(key.indices), pc.binary_length(rest.column("value"))]
    ends = np.cumsum(sum(pc.fill_null(each, 0).to_numpy(zero_copy_only=False).astype(np.int64) for each in sizes))
    first = 0
    while first < len(rest):
        before = ends[first - 1] if first else 0
        fitting = int(np.searchsorted(ends, before + _IRREGULAR_BYTES_AT_A_TIME, side="right")) - first
        step = rest.slice(first, min(max(1, fitting), _IRREGULAR_AT_A_TIME))
        yield step
        first += len(step)


@contextmanager
def _part(target: Path, table: Table) -> Iterator[pq.ParquetWriter]:
    """A writer of one part of a table. The part gets its name when it is complete: a task that is tried again writes it again."""
    partial_ = target.with_name(f".{target.name}")
    plain = [each.name for each in table.schema if pa.types.is_nested(each.type) or pa.types.is_binary(each.type)]
    dictionaries = [name for name in table.schema.names if name not in {*table.deltas, *plain}]
    with pq.ParquetWriter(
        partial_,
        table.schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=dictionaries,
        column_encoding=dict.fromkeys(table.deltas, "DELTA_BINARY_PACKED"),
        store_schema=False,
    ) as writer:
        yield writer
    rename_durably(partial_, target)


def _raw_rows(source: Path) -> Iterator[pa.RecordBatch]:
    """The rows of a raw part, a bounded number of rows and bytes at a time."""
    with pq.ParquetFile(source, read_dictionary=["key"], coerce_int96_timestamp_unit="us") as file:
        groups = range(file.num_row_groups)  # one by one: Arrow would read as many groups, of any size, as fill a batch
        for batch in (one for group in groups for one in file.iter_batches(_ROWS_AT_A_TIME, row_groups=[group], columns=RAW.names)):
            at = RAW.get_field_index("timestamp")
            timed = batch.set_column(at, "timestamp", batch.column(at).cast(RAW.field("timestamp").type))
            longest = pc.max(pc.binary_length(timed.column("key").dictionary)).as_py() or 1
            step = max(1, _BYTES_AT_A_TIME // longest)
            for first in range(0, len(timed), step):
                yield timed.slice(first, step)


def _field_by_field(topic: Topic, rest: pa.RecordBatch) -> Iterator[tuple[Table, pa.RecordBatch]]:
    """Raw rows (RAW) decoded, as one batch for each table that gets some of them."""
    pairs = zip(rest.column("key").to_pylist(), rest.column("value").to_pylist(), strict=True)
    records = [decode_record(topic.records, key, value) for key, value in pairs]
    of_type = {number: table.name for table in topic.tables for number in table.types}
    names = [UNDECODED.name if record.problem else of_type[record.type or 0] for record in records]
    for table in topic.tables:
        chosen = [at for at, name in enumerate(names) if name == table.name]
        if chosen:
            rows = [table.row(records[at]) for at in chosen]
            kept = dict(zip((*[name for name, _ in PLACE], "key", "value"), rest.take(pa.array(chosen)).columns, strict=True))
            columns = [
                kept[each.name] if each.name in kept else pa.array([row.get(each.name) for row in rows], each.type) for each in table.schema
            ]
            yield table, pa.RecordBatch.from_arrays(columns, schema=table.schema)
