"""Reads Parquet files and Spark's Parquet folders batch by batch, so that a report needs little memory."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from kafka_audit.errors import IntegrityError

_BATCH_ROWS = 32_768


def _broken(path: Path, problem: object) -> IntegrityError:
    return IntegrityError(f"{path}: cannot be read as Parquet ({problem}); run the step that writes it again, then the report")


def exists(path: Path) -> bool:
    """Whether the path is a Parquet file, or a folder with at least one Parquet part."""
    return path.is_file() or (path.is_dir() and any(path.glob("*.parquet")))


def batches(path: Path, columns: Sequence[str], only: pc.Expression | None = None, rows: int = _BATCH_ROWS) -> Iterator[pa.Table]:
    """Tables of at most ``rows`` rows with exactly ``columns``, filtered by ``only``, which reads these columns alone.

    IntegrityError if the file cannot be used.
    One batch is read after the other: Arrow's dataset scanner reads ahead in threads, and needs three times the memory where a batch takes
    longer to use than to read.
    """
    try:
        dataset = ds.dataset(path, format="parquet")
        for fragment in sorted(dataset.get_fragments(), key=lambda one: str(one.path)):
            with pq.ParquetFile(fragment.path) as file:
                if absent := sorted(set(columns) - set(file.schema_arrow.names)):
                    raise _broken(path, f"it has no columns {', '.join(absent)}")
                groups = None if only is None else [one.id for part in fragment.split_by_row_group(only) for one in part.row_groups]
                for batch in file.iter_batches(batch_size=rows, row_groups=groups, columns=list(columns), use_threads=False):
                    table = pa.Table.from_batches([batch]).select(list(columns))
                    table = table if only is None else table.filter(only)
                    if table.num_rows:
                        yield table
    except (OSError, pa.ArrowException) as problem:
        raise _broken(path, problem) from problem


def all_rows(path: Path, columns: Sequence[str]) -> list[dict[str, Any]]:
    """Every row as a dict; for tables that are always small (brokers, capabilities, the control summary)."""
    return [row for table in batches(path, columns) for row in table.to_pylist()]


def first_rows(kept: pa.Table | None, table: pa.Table, order: Sequence[tuple[str, str]], count: int) -> pa.Table:
    """The first ``count`` rows of ``kept`` and ``table`` together, in ``order`` (column, ascending|descending); nulls last."""
    joined = table if kept is None else pa.concat_tables([kept, table])
    return joined.take(pc.sort_indices(joined, sort_keys=list(order))[:count])


def rows_of(table: pa.Table | None) -> tuple[dict[str, Any], ...]:
    """The rows of a table as dicts; none without a table."""
    return tuple(table.to_pylist()) if table is not None else ()


def loses(table: pa.Table) -> pa.ChunkedArray:
    """A boolean array: true where unread records are deleted at the rates seen, before the group has caught up."""
    catches_up = pc.fill_null(pc.less_equal(table["catch_up_ms"], table["time_to_loss_ms"]), False)
    return pc.and_not(pc.is_valid(table["time_to_loss_ms"]), catches_up)


def positive(table: pa.Table, column: str) -> pa.ChunkedArray:
    """A boolean array: true where the column is known and above 0."""
    return pc.fill_null(pc.greater(table[column], 0), False)
