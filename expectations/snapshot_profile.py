"""Boil a snapshot down to two small tables: one row per dataset, and one row about the snapshot as a whole.

Counts are None where they could not be made (a missing file, a column of another type), so that a rule reading them fails.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from expectations.snapshot_contract import DATASETS, schema_of, schema_problem
from expectations.tables import Kind, Table, Value
from kafka_audit.errors import IntegrityError
from kafka_audit.evidence import Snapshot

_ERROR_ITEM = ("broker_id", "topic", "partition", "group_id")
_MANIFEST_ROUNDING = timedelta(seconds=1)

_DATASET_COLUMNS: dict[str, Kind] = {
    "dataset": "text",
    "importance": "text",
    "presence": "text",
    "schema_problem": "text",
    "rows": "count",
    "null_keys": "count",
    "duplicate_keys": "count",
    "reads_outside_snapshot": "count",
    "whole_errors": "count",
    "item_errors": "count",
}
_SNAPSHOT_COLUMNS: dict[str, Kind] = {
    "snapshot_id": "text",
    "age_seconds": "number",
    "duration_seconds": "number",
    "cluster_identity": "text",
    "brokers_alive": "count",
    "brokers_answered": "count",
    "brokers_silent": "count",
    "partitions_without_topic": "count",
    "topics_with_partitions_missing": "count",
    "commits_without_group": "count",
    "members_without_group": "count",
    "errors_of_unknown_dataset": "count",
    "hidden_topics": "count",
    "partitions_without_offsets": "count",
    "topics_without_configs": "count",
    "brokers_without_configs": "count",
}


@dataclass(frozen=True, kw_only=True)
class SnapshotProfile:
    """Tables ``datasets`` and ``snapshot``; see the column lists of this module."""

    datasets: Table
    snapshot: Table

    @property
    def readable(self) -> int:
        """Datasets that are present, well typed and did not fail as a whole."""
        good = {"presence": "present", "schema_problem": "ok", "whole_errors": 0}
        return sum(all(row[name] == value for name, value in good.items()) for row in self.datasets.rows)


def profile_snapshot(snapshot: Snapshot, *, now: datetime) -> SnapshotProfile:
    """Count what the evidence suite judges; ``now`` is an aware datetime. IntegrityError when a file is not readable Parquet."""
    files = _Files(snapshot=snapshot)
    started, finished = (_time(snapshot.manifest.get(name)) for name in ("started_at", "finished_at"))
    window = (started, finished) if started and finished else None
    datasets = [_dataset_row(files, name, window) for name in DATASETS]
    state: dict[str, Value] = {
        "snapshot_id": snapshot.snapshot_id,
        "age_seconds": (now - finished).total_seconds() if finished else None,
        "duration_seconds": (finished - started).total_seconds() if started and finished else None,
        "cluster_identity": _cluster_identity(files),
        **_brokers(files),
        **_populations(files),
        **_gaps(files),
    }
    return SnapshotProfile(
        datasets=Table(name="datasets", key="dataset", columns=_DATASET_COLUMNS, rows=datasets),
        snapshot=Table(name="snapshot", key="snapshot_id", columns=_SNAPSHOT_COLUMNS, rows=[state]),
    )


@dataclass(kw_only=True)
class _Files:
    """The snapshot's Parquet files, read column by column."""

    snapshot: Snapshot
    _schemas: dict[str, pa.Schema | None] = field(default_factory=dict)

    def schema(self, dataset: str) -> pa.Schema | None:
        """The file's schema; None when there is no file."""
        if dataset not in self._schemas:
            path = self.snapshot.dataset(dataset)
            try:
                self._schemas[dataset] = pq.read_schema(path) if path.is_file() else None
            except (pa.ArrowException, OSError) as problem:
                raise _unreadable(self.snapshot, dataset, problem) from problem
        return self._schemas[dataset]

    def read(self, dataset: str, columns: Sequence[str]) -> pa.Table | None:
        """The named columns; None when the file is missing or one of the columns is not there with its expected type."""
        found = self.schema(dataset)
        if found is None:
            return None
        expected = pa.schema([schema_of(dataset).field(name) for name in columns])
        if schema_problem(found, expected) != "ok":
            return None
        try:
            return pq.read_table(self.snapshot.dataset(dataset), columns=list(columns))
        except (pa.ArrowException, OSError) as problem:
            raise _unreadable(self.snapshot, dataset, problem) from problem

    def rows(self, dataset: str) -> int | None:
        """Number of rows; None when there is no file."""
        if self.schema(dataset) is None:
            return None
        return int(pq.read_metadata(self.snapshot.dataset(dataset)).num_rows)


def _unreadable(snapshot: Snapshot, dataset: str, problem: Exception) -> IntegrityError:
    return IntegrityError(f"{snapshot.dataset(dataset)} is not readable Parquet ({problem}): restore it from a copy or take a new snapshot")


def _time(value: object) -> datetime | None:
    """An aware time from the manifest's ISO text; None for anything else, because a time without a zone is not a time."""
    try:
        when = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        return None
    return when if when.tzinfo else None


def _dataset_row(files: _Files, name: str, window: tuple[datetime, datetime] | None) -> dict[str, Value]:
    dataset, found, expected = DATASETS[name], files.schema(name), schema_of(name)
    keys = files.read(name, dataset.key)
    whole, items = _errors_of(files, name)
    return {
        "dataset": name,
        "importance": "core" if dataset.core else "other",
        "presence": "missing" if found is None else "present",
        "schema_problem": None if found is None else schema_problem(found, expected),
        "rows": files.rows(name),
        "null_keys": None if keys is None else _null_rows(keys, [column for column in dataset.key if column not in dataset.nullable]),
        "duplicate_keys": None if keys is None else _duplicates(keys),
        "reads_outside_snapshot": _reads_outside(files, name, window) if "read_at" in expected.names else (0 if found else None),
        "whole_errors": whole,
        "item_errors": items,
    }


def _null_rows(table: pa.Table, columns: Iterable[str]) -> int:
    bad = None
    for column in columns:
        null = pc.is_null(table[column])
        bad = null if bad is None else pc.or_(bad, null)
    return 0 if bad is None else int(pc.sum(bad).as_py() or 0)


def _duplicates(table: pa.Table) -> int:
    """Rows beyond the first of each key; 0 for a dataset without a key."""
    return int(table.num_rows - table.group_by(table.column_names).aggregate([]).num_rows) if table.column_names else 0


def _reads_outside(files: _Files, name: str, window: tuple[datetime, datetime] | None) -> int | None:
    """Rows read before the snapshot began or after it ended (rounded to a second): evidence of another time."""
    table = files.read(name, ["read_at"])
    if table is None or window is None:
        return None
    kind = table["read_at"].type
    first, last = (pa.scalar(when, kind) for when in (window[0] - _MANIFEST_ROUNDING, window[1] + _MANIFEST_ROUNDING))
    outside = pc.or_(pc.less(table["read_at"], first), pc.greater(table["read_at"], last))
    return int(pc.sum(pc.fill_null(outside, True)).as_py() or 0)


def _errors_of(files: _Files, name: str) -> tuple[int | None, int | None]:
    """(failures of the whole dataset, failures of single items). A dataset without a row that every alive broker failed has failed whole."""
    table = files.read("errors", ["dataset", *_ERROR_ITEM])
    if table is None:
        return None, None
    rows = table.filter(pc.equal(table["dataset"], name)).to_pylist()
    whole = sum(all(row[column] is None for column in _ERROR_ITEM) for row in rows)
    failed = {row["broker_id"] for row in rows if all(row[column] is None for column in _ERROR_ITEM[1:])} - {None}
    alive = _alive(files)
    if alive and files.rows(name) == 0 and failed >= alive:
        whole += 1
    return whole, len(rows) - whole if whole <= len(rows) else 0


def _alive(files: _Files) -> set[int] | None:
    table = files.read("brokers", ["broker_id", "alive"])
    return None if table is None else {row["broker_id"] for row in table.to_pylist() if row["alive"]}


def _brokers(files: _Files) -> dict[str, Value]:
    table = files.read("brokers", ["alive", "answered"])
    rows = None if table is None else table.to_pylist()
    return {
        "brokers_alive": None if rows is None else sum(row["alive"] is True for row in rows),
        "brokers_answered": None if rows is None else sum(row["answered"] is True for row in rows),
        "brokers_silent": None if rows is None else sum(row["alive"] is True and row["answered"] is not True for row in rows),
    }


def _cluster_identity(files: _Files) -> str | None:
    """``known`` when the dataset ``cluster`` has one row and the manifest names the same cluster id."""
    table = files.read("cluster", ["cluster_id"])
    if table is None:
        return None
    ids = table["cluster_id"].to_pylist()
    named = files.snapshot.manifest.get("cluster_id")
    if len(ids) != 1 or not ids[0]:
        return f"{len(ids)} rows with ids {ids}"
    return "known" if named == ids[0] else f"the manifest says {named}, the cluster said {ids[0]}"


def _absent(left: pa.Table | None, right: pa.Table | None, keys: Sequence[str]) -> pa.Table | None:
    """Rows of ``left`` whose key is not in ``right``."""
    if left is None or right is None:
        return None
    return left.join(right.select(list(keys)).group_by(list(keys)).aggregate([]), keys=list(keys), join_type="left anti")


def _count(table: pa.Table | None) -> int | None:
    return None if table is None else int(table.num_rows)


def _populations(files: _Files) -> dict[str, Value]:
    topics = files.read("topics", ["topic", "partition_count", "error"])
    partitions = files.read("partitions", ["topic"])
    groups = files.read("groups", ["group_id"])
    errors = files.read("errors", ["dataset", "error"])
    short = None
    if topics is not None and partitions is not None:
        counts = {row["topic"]: row["n"] for row in partitions.append_column("n", pa.array([1] * partitions.num_rows, pa.int64()))
                  .group_by(["topic"]).aggregate([("n", "sum")]).rename_columns(["topic", "n"]).to_pylist()}
        short = sum(
            row["partition_count"] is not None and row["error"] is None and row["partition_count"] != counts.get(row["topic"], 0)
            for row in topics.to_pylist()
        )
    return {
        "partitions_without_topic": _count(_absent(partitions, topics, ["topic"])),
        "topics_with_partitions_missing": short,
        "commits_without_group": _count(_absent(files.read("committed_offsets", ["group_id"]), groups, ["group_id"])),
        "members_without_group": _count(_absent(files.read("members", ["group_id"]), groups, ["group_id"])),
        "errors_of_unknown_dataset": None if errors is None else sum(name not in DATASETS for name in errors["dataset"].to_pylist()),
        "hidden_topics": None if errors is None else errors["error"].to_pylist().count("TOPIC_HIDDEN"),
    }
