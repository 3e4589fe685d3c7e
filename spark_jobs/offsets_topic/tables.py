"""Rows that were taken apart -> Parquet tables, each row in exactly one of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from spark_jobs.parquet_folder import write_parquet

UNDECODED = "undecoded"
PLACE = ("log_partition", "log_offset", "append_time", "record_type")
"""The columns of every table but those of regular commits: where and when the broker wrote the record, and the type that its key says."""

_ROWS_OF_A_PART = 500_000
_UNDECODED_COLUMNS = (*PLACE, "version", "problem", "key", "value")


@dataclass(frozen=True, kw_only=True)
class Table:
    """The decoded rows for which ``rows`` (SQL) is true, as ``columns`` makes them; ``optional``: not written without rows."""

    name: str
    rows: str
    columns: Callable[[DataFrame], DataFrame]
    optional: bool = False


def write_tables(apart: DataFrame, tables: Sequence[Table], folder: Path) -> dict[str, int]:
    """Write rows of records.taken_apart into ``<name>.parquet`` of ``folder``; returns the rows of each table.

    Rows with a problem are the table ``undecoded``: log_partition, log_offset, append_time, record_type, version, problem (why), key and
    value as they were. ``tables`` must not overlap.
    """
    # A checkpoint and not persist(): several queries follow, and planning the taking apart again for each costs more than doing it.
    kept = apart.localCheckpoint(storageLevel=StorageLevel.MEMORY_AND_DISK)
    undecoded = Table(name=UNDECODED, rows="problem is not null", columns=lambda rows: rows.select(*_UNDECODED_COLUMNS))
    every = {table.name: (table, f"problem is null and ({table.rows})") for table in tables} | {UNDECODED: (undecoded, undecoded.rows)}
    counts = kept.agg(*[F.expr(f"count_if({sql})") for _, sql in every.values()]).first()
    rows: dict[str, int] = dict(zip(every, counts or (), strict=True))
    for name, (table, sql) in every.items():
        if rows[name] or not table.optional:
            chosen = kept.where(sql).transform(table.columns)
            write_parquet(chosen.coalesce(1 + rows[name] // _ROWS_OF_A_PART), folder / f"{name}.parquet")
    return rows
