"""Boil a snapshot down to two small tables: one row per dataset, and one row about the snapshot as a whole.

Counts are None where they could not be made (a missing file, a column of another type), so that a rule reading them fails.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute as pc

from expectations.snapshot_files import SnapshotFiles, evidence_gaps, populations, schema_problem
from expectations.suites import Table, Value, kinds
from kafka_audit.collect.datasets import DATASETS
from kafka_audit.store.layout import Snapshot
from kafka_audit.times import parse_time

_ERROR_ITEM = ("broker_id", "topic", "partition", "group_id")
_MANIFEST_ROUNDING = timedelta(seconds=1)

_TEXTS = ("dataset", "importance", "presence", "schema_problem", "snapshot_id", "cluster_identity")
_NUMBERS = ("age_seconds", "duration_seconds")
_EVIDENCE_BY_ERROR = frozenset({"SECURITY_DISABLED"})
"""Errors that answer the question: a cluster without an authorizer has no ACLs, and nothing was left unread."""


@dataclass(frozen=True, kw_only=True)
class SnapshotProfile:
    """Tables ``datasets`` (a row per dataset) and ``snapshot`` (one row): texts, seconds, and counts, which are whole numbers."""

    datasets: Table
    snapshot: Table

    @property
    def readable(self) -> int:
        """Datasets that are present, well typed and did not fail as a whole."""
        good = {"presence": "present", "schema_problem": "ok", "whole_errors": 0}
        return sum(all(row[name] == value for name, value in good.items()) for row in self.datasets.rows)


def profile_snapshot(snapshot: Snapshot, *, now: datetime, hidden: Collection[str] = ()) -> SnapshotProfile:
    """Count what the evidence suite judges; ``now`` is an aware datetime. IntegrityError when a file is not readable Parquet.

    ``hidden``: datasets whose importance is ``hidden``.
    """
    files = SnapshotFiles(snapshot=snapshot)
    started, finished = (_time(snapshot.manifest.get(name)) for name in ("started_at", "finished_at"))
    window = (started, finished) if started and finished else None
    datasets = [_dataset_row(files, name, window) | ({"importance": "hidden"} if name in hidden else {}) for name in DATASETS]
    state: dict[str, Value] = {
        "snapshot_id": snapshot.snapshot_id,
        "age_seconds": (now - finished).total_seconds() if finished else None,
        "duration_seconds": (finished - started).total_seconds() if started and finished else None,
        "cluster_identity": _cluster_identity(files),
        **_brokers(files),
        **populations(files),
        **evidence_gaps(files),
    }
    return SnapshotProfile(
        datasets=Table(name="datasets", key="dataset", columns=kinds(datasets[0], texts=_TEXTS), rows=datasets),
        snapshot=Table(name="snapshot", key="snapshot_id", columns=kinds(state, texts=_TEXTS, numbers=_NUMBERS), rows=[state], single=True),
    )


def _time(value: object) -> datetime | None:
    """An aware time from the manifest's ISO text; None for anything else, because a time without a zone is not a time."""
    try:
        when = parse_time(value)
    except ValueError:
        return None
    return when if when.tzinfo else None


def _dataset_row(files: SnapshotFiles, name: str, window: tuple[datetime, datetime] | None) -> dict[str, Value]:
    dataset, found, expected = DATASETS[name], files.schema(name), DATASETS[name].schema
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


def _null_rows(table: pa.Table, columns: list[str]) -> int:
    return int(table.num_rows - table.select(columns).drop_null().num_rows)


def _duplicates(table: pa.Table) -> int:
    """Rows beyond the first of each key; 0 for a dataset without a key."""
    return int(table.num_rows - table.group_by(table.column_names).aggregate([]).num_rows) if table.column_names else 0


def _reads_outside(files: SnapshotFiles, name: str, window: tuple[datetime, datetime] | None) -> int | None:
    """Rows read before the snapshot began or after it ended (rounded to a second): evidence of another time."""
    table = files.read(name, ["read_at"])
    if table is None or window is None:
        return None
    kind = table["read_at"].type
    first, last = (pa.scalar(when, kind) for when in (window[0] - _MANIFEST_ROUNDING, window[1] + _MANIFEST_ROUNDING))
    outside = pc.or_(pc.less(table["read_at"], first), pc.greater(table["read_at"], last))
    return int(pc.sum(pc.fill_null(outside, True)).as_py() or 0)


def _errors_of(files: SnapshotFiles, name: str) -> tuple[int | None, int | None]:
    """(failures of the whole dataset, failures of single items); an empty dataset that every alive broker failed has failed whole."""
    table = files.read("errors", ["dataset", "error", *_ERROR_ITEM])
    if table is None:
        return None, None
    rows = [row for row in table.filter(pc.equal(table["dataset"], name)).to_pylist() if row["error"] not in _EVIDENCE_BY_ERROR]
    of_broker_or_all = [row["broker_id"] for row in rows if all(row[column] is None for column in _ERROR_ITEM[1:])]
    whole = of_broker_or_all.count(None)
    alive = _alive(files)
    every_broker_failed = bool(alive) and files.rows(name) == 0 and set(of_broker_or_all) >= alive
    return whole + every_broker_failed, len(rows) - whole


def _alive(files: SnapshotFiles) -> set[int]:
    """Ids of the alive brokers; empty when they are not known, which rules of their own report."""
    table = files.read("brokers", ["broker_id", "alive"])
    return set() if table is None else {row["broker_id"] for row in table.to_pylist() if row["alive"]}


def _brokers(files: SnapshotFiles) -> dict[str, Value]:
    table = files.read("brokers", ["alive", "answered"])
    rows = None if table is None else table.to_pylist()
    return {
        "brokers_alive": None if rows is None else sum(row["alive"] is True for row in rows),
        "brokers_answered": None if rows is None else sum(row["answered"] is True for row in rows),
        "brokers_silent": None if rows is None else sum(row["alive"] is True and row["answered"] is not True for row in rows),
    }


def _cluster_identity(files: SnapshotFiles) -> str | None:
    """``known`` when the dataset ``cluster`` has one row and the manifest names the same cluster id."""
    table = files.read("cluster", ["cluster_id"])
    if table is None:
        return None
    ids = table["cluster_id"].to_pylist()
    named = files.snapshot.manifest.get("cluster_id")
    if len(ids) != 1 or not ids[0]:
        return f"{len(ids)} rows with ids {ids}"
    return "known" if named == ids[0] else f"the manifest says {named}, the cluster said {ids[0]}"
