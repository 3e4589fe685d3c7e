"""The datasets of one snapshot as Spark tables, read only when a subject asks for them."""

import functools
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any, Concatenate, ParamSpec, TypeVar, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from kafka_audit.collect.scope import ALWAYS_COVERED
from kafka_audit.store.behaviour_tables import Behaviour, find_behaviour
from kafka_audit.store.history import History
from kafka_audit.store.lag_days import day_of_id, days_in
from kafka_audit.store.layout import Snapshot
from kafka_audit.store.samples import DAY_MS, day_of
from kafka_audit.store.sealed import OFFSETS
from kafka_audit.times import parse_time
from spark_jobs.engine.consistent import ConsistentSnapshot, without_contradictions
from spark_jobs.engine.remote_tables import tables_of
from spark_jobs.engine.tables import Tables, constant, schema_of_file, unreadable

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(kw_only=True)
class Evidence:
    """One verified snapshot and the earlier ones it is compared with. :meth:`table` gives a dataset with its collected columns.

    What contradicts itself in the snapshot is missing evidence here (spark_jobs.engine.consistent).
    ``behaviour``: the part of the commit history that is read with it; None: the newest that fits.
    ``small_cluster``: its tables are those of a small cluster (spark_jobs.engine.tables).
    ``scratch``: where what is judged of a snapshot with contradictions is kept meanwhile.
    """

    spark: SparkSession
    snapshot: Snapshot
    history: History = field(default_factory=History)
    behaviour: Behaviour | None = None
    small_cluster: bool = False
    scratch: Path | None = None
    _memo: dict[str, object] = field(default_factory=dict)
    _locks: defaultdict[str, RLock] = field(default_factory=lambda: defaultdict(RLock))

    def __post_init__(self) -> None:
        self.snapshot = without_contradictions(self.snapshot, self.scratch)

    @cached_property
    def tables(self) -> Tables:
        """How tables are read, kept and written."""
        return tables_of(self.spark, small=self.small_cluster)

    def table(self, name: str) -> DataFrame:
        """A dataset; IntegrityError when its file is missing or is no Parquet file."""
        return self.memo(f"table {name}", lambda: self.tables.read_whole(self.snapshot.dataset(name)))

    def series(self, name: str, *columns: str) -> DataFrame:
        """Columns of a dataset over all snapshots of either kind, this one included.

        With ``snapshot_id`` string and ``taken_ms`` bigint, its start in milliseconds since the epoch.
        A snapshot that did not collect the dataset has no rows; a column it did not collect is NULL.
        """
        snapshots = [one for one in (*self.history.all, self.snapshot) if one.dataset(name).is_file()]
        whole = schema_of_file(self.snapshot.dataset(name))
        schema = StructType([whole[column] for column in columns])
        taken = {one.snapshot_id: one.taken_ms for one in snapshots}
        read = self.tables.read_each(schema, name, snapshots)
        return read.withColumn("taken_ms", constant(taken, "map<string,bigint>")[F.col("snapshot_id")])

    @cached_property
    def used_behaviour(self) -> Behaviour:
        """The part of the commit history that is read, chosen and checked once."""
        return self.behaviour or find_behaviour(self.snapshot)

    @property
    def taken_ms(self) -> int:
        """When this snapshot began, in milliseconds since the epoch."""
        return self.snapshot.taken_ms

    def rows(self, name: str) -> int:
        """Number of rows of a dataset, without reading them."""
        return int(self._footer(name).metadata.num_rows)

    def cached_table(self, name: str, make: Callable[[], DataFrame]) -> DataFrame:
        """A table that several subjects use: built at the first call, kept by Spark, and the same at every later one."""
        return self.memo(name, lambda: self.tables.keep(make()))

    def memo(self, name: str, make: Callable[[], T]) -> T:
        """A value that takes time to make: made at the first call, and the same at every later one, whichever thread calls."""
        with self._locks[name]:
            if name not in self._memo:
                self._memo[name] = make()
            return cast(T, self._memo[name])

    def _footer(self, name: str) -> pq.ParquetFile:
        path = self.snapshot.dataset(name)
        try:
            return pq.ParquetFile(path)
        except (OSError, pa.ArrowException) as problem:
            raise unreadable(path, problem) from problem

    def small(self, name: str, *columns: str) -> list[dict[str, Any]]:
        """Columns of a dataset that has a few rows for each broker. Never for one that grows with topics or groups: this reads it whole."""
        return self._footer(name).read(list(columns)).to_pylist()  # type: ignore[no-any-return]  # pyarrow ships no types

    @cached_property
    def whole_dataset_errors(self) -> dict[str, str]:
        """Dataset -> why it could not be read at all; a few rows whatever the cluster's size."""
        found = [row for row in self._broad_errors if row["broker_id"] is None]
        reasons = {row["dataset"]: f"{row['error']} ({row['api']}): {row['message']}" for row in reversed(found)}
        return dict(sorted(reasons.items()))

    @property
    def broker_errors(self) -> list[dict[str, Any]]:
        """The errors of whole brokers: a few rows for each broker that failed."""
        return [row for row in self._broad_errors if row["broker_id"] is not None]

    @cached_property
    def coordinator_errors(self) -> dict[str, str]:
        """``groups`` and ``transactions`` -> why some were not listed: the first partition of the coordinators' topic that has no leader.

        Such errors name the topic and the partition; there are at most as many as these topics have partitions.
        """
        batches = self._footer("errors").iter_batches(columns=["dataset", "api", "error", "message", "topic", "partition", "group_id"])
        kinds = pa.array(["groups", "transactions"])
        of_lists = (one.filter(pc.and_(pc.is_in(one["dataset"], kinds), pc.is_null(one["group_id"]))) for one in batches)
        rows = (row for batch in of_lists for row in batch.to_pylist() if row["topic"] is not None)
        found: dict[str, str] = {}
        for row in rows:
            found.setdefault(row["dataset"], f"{row['error']} ({row['api']}, {row['topic']}-{row['partition']}): {row['message']}")
        return found

    def contradicted(self, dataset: str) -> str | None:
        """Why a dataset is not to be relied on as a whole: the first thing that is contradicted in it; None where nothing is."""
        return self.snapshot.contradicted.get(dataset) if isinstance(self.snapshot, ConsistentSnapshot) else None

    @cached_property
    def _broad_errors(self) -> list[dict[str, Any]]:
        """The errors that name no topic and no group, read batch by batch, so that a long dataset does not have to fit in memory."""
        batches = self._footer("errors").iter_batches(columns=["dataset", "api", "broker_id", "error", "message", "topic", "group_id"])
        # pyarrow.dataset would filter by itself, but importing it imports pandas, which takes a second.
        broad = (one.filter(pc.and_(pc.is_null(one.column("topic")), pc.is_null(one.column("group_id")))) for one in batches)
        return [row for batch in broad for row in batch.to_pylist()]

    @property
    def topic_scope(self) -> list[str]:
        """Globs of the topics that were asked for, and those that every scope covers; empty means all."""
        asked = _patterns(self.snapshot.manifest, "topics")
        return [*asked, *sorted(ALWAYS_COVERED)] if asked else []

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


def files_read(snapshot: Snapshot, history: History, window_days: int) -> Iterator[Path]:
    """The Parquet files that judging a snapshot may read: its own, the earlier snapshots' and the lag history of so many days."""
    root, cluster = snapshot.root, str(snapshot.manifest["cluster"])
    first = day_of(snapshot.taken_ms - window_days * DAY_MS)
    days = [folder for folder in days_in(root, cluster) if date.fromisoformat(folder.name) >= first]
    samples = [
        root.snapshot_dir(cluster, name, OFFSETS) for name in root.sealed_ids(cluster, OFFSETS) if (day_of_id(name) or first) >= first
    ]
    for folder in dict.fromkeys([*(one.path for one in (snapshot, *history.all)), *days, *samples]):
        yield from sorted(folder.glob("*.parquet"))


def shortened(make: Callable[Concatenate[Evidence, P], DataFrame]) -> Callable[Concatenate[Evidence, P], DataFrame]:
    """Decorates a builder of a table that several queries read: of a small cluster it is computed once (Tables.shorten).

    Its further arguments tell its tables apart by their text, if they are texts; all others are the same in one application.
    """

    @functools.wraps(make)
    def build(evidence: Evidence, /, *args: P.args, **kwargs: P.kwargs) -> DataFrame:
        name = ":".join([make.__module__, make.__qualname__, *(one for one in args if isinstance(one, str))])
        return evidence.memo(name, lambda: evidence.tables.shorten(make(evidence, *args, **kwargs)))

    return build


def _patterns(manifest: Mapping[str, Any], kind: str) -> list[str]:
    scope = manifest.get("scope") or {}
    found = scope.get(kind) or []
    return [found] if isinstance(found, str) else [str(pattern) for pattern in found]
