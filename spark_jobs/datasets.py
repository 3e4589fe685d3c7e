"""The datasets of one snapshot as Spark tables, read only when a subject asks for them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from kafka_audit.collect.scope import INTERNAL_TOPICS
from kafka_audit.errors import IntegrityError
from kafka_audit.history import History
from kafka_audit.store.layout import Snapshot
from kafka_audit.times import parse_time

T = TypeVar("T")


@dataclass(kw_only=True)
class Evidence:
    """One verified snapshot and the earlier ones it is compared with. :meth:`table` gives a dataset with its collected columns."""

    spark: SparkSession
    snapshot: Snapshot
    history: History = field(default_factory=History)
    _tables: dict[str, DataFrame] = field(default_factory=dict)
    _derived: dict[str, DataFrame] = field(default_factory=dict)
    _remembered: dict[str, object] = field(default_factory=dict)

    def table(self, name: str) -> DataFrame:
        """A dataset; IntegrityError when its file is missing or is no Parquet file."""
        if name not in self._tables:
            # The schema is taken from the file's footer here, because Spark starts a job of its own to infer it.
            schema = from_arrow_schema(self._footer(name).schema.to_arrow_schema())
            self._tables[name] = self.spark.read.schema(schema).parquet(str(self.snapshot.dataset(name)))
        return self._tables[name]

    def series(self, name: str, *columns: str) -> DataFrame:
        """Columns of a dataset over all snapshots of either kind, this one included.

        With ``snapshot_id`` string and ``taken_ms`` bigint, its start in milliseconds since the epoch.
        A snapshot that did not collect the dataset has no rows; a column it did not collect is NULL.
        """
        snapshots = [one for one in (*self.history.all, self.snapshot) if one.dataset(name).is_file()]
        whole = from_arrow_schema(self._footer(name).schema.to_arrow_schema())
        schema = StructType([whole[column] for column in columns])
        taken = {one.snapshot_id: one.taken_ms for one in snapshots}
        read = self.spark.read.schema(schema).parquet(*[str(one.dataset(name)) for one in snapshots])
        snapshot_id = F.element_at(F.split("_metadata.file_path", "/"), -2)
        times = F.from_json(F.lit(json.dumps({name: str(at) for name, at in taken.items()})), "map<string,string>")
        return read.select(*columns, snapshot_id.alias("snapshot_id"), times[snapshot_id].cast("bigint").alias("taken_ms"))

    @property
    def taken_ms(self) -> int:
        """When this snapshot began, in milliseconds since the epoch."""
        return self.snapshot.taken_ms

    def rows(self, name: str) -> int:
        """Number of rows of a dataset, without reading them."""
        return int(self._footer(name).metadata.num_rows)

    def once(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """A table that several subjects stand on: built at the first call, kept by Spark, and the same at every later one."""
        if name not in self._derived:
            self._derived[name] = make().persist()
        return self._derived[name]

    def remembered(self, name: str, make: Callable[[], T]) -> T:
        """A value that takes time to make: made at the first call, and the same at every later one."""
        if name not in self._remembered:
            self._remembered[name] = make()
        return cast(T, self._remembered[name])

    def _footer(self, name: str) -> pq.ParquetFile:
        path = self.snapshot.dataset(name)
        try:
            return pq.ParquetFile(path)
        except (OSError, pa.ArrowException) as problem:
            raise _broken(path, problem) from problem

    def small(self, name: str, *columns: str) -> list[dict[str, Any]]:
        """Columns of a dataset that has a few rows for each broker. Never for one that grows with topics or groups: this reads it whole."""
        return self._read(name, columns, ())

    @cached_property
    def whole_dataset_errors(self) -> dict[str, str]:
        """Dataset -> why it could not be read at all; a few rows whatever the cluster's size."""
        found = self._read("errors", ("dataset", "api", "error", "message"), ("broker_id", "topic", "group_id"))
        reasons = {row["dataset"]: f"{row['error']} ({row['api']}): {row['message']}" for row in reversed(found)}
        return dict(sorted(reasons.items()))

    @cached_property
    def broker_errors(self) -> list[dict[str, Any]]:
        """The errors of whole brokers: a few rows for each broker that failed."""
        found = self._read("errors", ("dataset", "api", "broker_id", "error", "message"), ("topic", "group_id"))
        return [row for row in found if row["broker_id"] is not None]

    def _read(self, name: str, columns: Sequence[str], null: Sequence[str]) -> list[dict[str, Any]]:
        """The rows in which every column of ``null`` is null, batch by batch, so that a long dataset does not have to fit in memory."""
        rows: list[dict[str, Any]] = []
        # pyarrow.dataset would filter by itself, but importing it imports pandas, which takes a second.
        for batch in self._footer(name).iter_batches(columns=[*columns, *(column for column in null if column not in columns)]):
            wanted = pa.array([True] * batch.num_rows, pa.bool_())
            for column in null:
                wanted = pc.and_(wanted, pc.is_null(batch.column(column)))
            rows += batch.filter(wanted).select(list(columns)).to_pylist()
        return rows

    @property
    def topic_scope(self) -> list[str]:
        """Globs of the topics that were asked for, and the internal ones, which always are; empty means all."""
        asked = _patterns(self.snapshot.manifest, "topics")
        return [*asked, *sorted(INTERNAL_TOPICS)] if asked else []

    @property
    def group_scope(self) -> list[str]:
        """Globs of the groups that were asked for; empty means all."""
        return _patterns(self.snapshot.manifest, "groups")

    @property
    def seconds(self) -> float | None:
        """How long the snapshot took, by its manifest."""
        manifest = self.snapshot.manifest
        try:
            started, finished = (parse_time(manifest[name]) for name in ("started_at", "finished_at"))
        except (KeyError, ValueError):
            return None
        return (finished - started).total_seconds()


def _broken(path: Path, problem: object) -> IntegrityError:
    return IntegrityError(f"{path}: cannot be read as Parquet ({problem}); restore the snapshot from a copy or take a new one")


def _patterns(manifest: Mapping[str, Any], kind: str) -> list[str]:
    scope = manifest.get("scope") or {}
    found = scope.get(kind) or []
    return [found] if isinstance(found, str) else [str(pattern) for pattern in found]
