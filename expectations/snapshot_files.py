"""Reads a snapshot's Parquet files column by column, so that a gate holds only what it counts, and checks their columns."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_audit.collect.datasets import DATASETS
from kafka_audit.errors import IntegrityError
from kafka_audit.store.layout import Snapshot


@dataclass(kw_only=True)
class SnapshotFiles:
    """One snapshot's files; ``read`` gives a table only when its columns are what the contract says."""

    snapshot: Snapshot
    _schemas: dict[str, pa.Schema | None] = field(default_factory=dict)

    def schema(self, dataset: str) -> pa.Schema | None:
        """The file's schema; None when there is no file."""
        if dataset not in self._schemas:
            path = self.snapshot.dataset(dataset)
            try:
                self._schemas[dataset] = pq.read_schema(path) if path.is_file() else None
            except (pa.ArrowException, OSError) as problem:
                raise self._unreadable(dataset, problem) from problem
        return self._schemas[dataset]

    def read(self, dataset: str, columns: Sequence[str]) -> pa.Table | None:
        """The named columns; None when the file is missing or one of the columns is not there with its expected type."""
        found = self.schema(dataset)
        if found is None:
            return None
        expected = pa.schema([DATASETS[dataset].schema.field(name) for name in columns])
        if schema_problem(found, expected) != "ok":
            return None
        try:
            return pq.read_table(self.snapshot.dataset(dataset), columns=list(columns))
        except (pa.ArrowException, OSError) as problem:
            raise self._unreadable(dataset, problem) from problem

    def rows(self, dataset: str) -> int | None:
        """Number of rows; None when there is no file."""
        if self.schema(dataset) is None:
            return None
        return int(pq.read_metadata(self.snapshot.dataset(dataset)).num_rows)

    def _unreadable(self, dataset: str, problem: Exception) -> IntegrityError:
        path = self.snapshot.dataset(dataset)
        return IntegrityError(f"{path} is not readable Parquet ({problem}): restore it from a copy or take a new snapshot")


def schema_problem(found: pa.Schema, expected: pa.Schema) -> str:
    """``ok``, or every expected column that is missing or of another type. Further columns are allowed."""
    problems: list[str] = []
    for column in expected:
        if column.name not in found.names:
            problems.append(f"column {column.name} is missing")
        elif found.field(column.name).type != column.type:
            problems.append(f"column {column.name} is {found.field(column.name).type} where {column.type} is expected")
    return "; ".join(problems) or "ok"
