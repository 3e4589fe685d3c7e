"""A snapshot as it is judged: without the answers that contradict each other (kafka_audit.collect.contradictions)."""

import os
import shutil
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_audit.collect.clocks import clocks_apart_ms
from kafka_audit.collect.contradictions import by_one_clock, consistent, looked_at
from kafka_audit.collect.datasets import DATASETS, ERRORS, QUORUM
from kafka_audit.store.durable_files import FOLDER_MODE, write_failed
from kafka_audit.store.layout import Snapshot
from kafka_audit.store.unfinished import hidden_name, hold_new
from kafka_audit.times import parse_time


@dataclass(frozen=True, kw_only=True)
class ConsistentSnapshot(Snapshot):
    """A sealed snapshot of which ``judged`` holds some datasets in another form; the seal is that of the original.

    ``contradicted``: dataset -> the first thing that is contradicted in it.
    """

    judged: Path
    contradicted: Mapping[str, str]

    def dataset(self, name: str) -> Path:
        """Path of one dataset's Parquet file."""
        own = self.judged / f"{name}.parquet"
        return own if own.is_file() else super().dataset(name)


def without_contradictions(snapshot: Snapshot, scratch: Path | None = None) -> Snapshot:
    """The same snapshot, or one whose contradicted values are null, with errors that say why.

    Reads the columns that can contradict each other, of one dataset after the other. What differs is written into a hidden folder below
    ``scratch``, or this machine's folder for temporary files, under the snapshot's name, and removed when the snapshot is no longer used.
    """
    window, errors = _window(snapshot), []
    changed: dict[str, pa.Table] = {}
    skew = _skew(snapshot)
    for name in DATASETS:
        if name == ERRORS.name:
            continue
        looked = _read(snapshot, name, looked_at(name))
        if looked is None or (skew is None and consistent(name, looked, window)[0] is looked):
            continue
        rows = _read(snapshot, name, DATASETS[name].schema.names)
        if rows is None:
            continue
        found, about = consistent(name, rows, window)
        if skew is not None:
            found, more = by_one_clock(name, found, skew)
            about = more + about  # the first reason is the one that is shown
        if found is not rows:
            changed[name] = found
            errors += about
    if not changed:
        return snapshot
    told = _read(snapshot, ERRORS.name, ERRORS.schema.names)
    new = pa.Table.from_pylist(errors, schema=ERRORS.schema)
    first = {error["dataset"]: _named(error) for error in reversed(errors)}
    changed[ERRORS.name] = new if told is None else pa.concat_tables([told, new])
    return _written(snapshot, changed, first, scratch or Path(tempfile.gettempdir()))


def _named(error: Mapping[str, Any]) -> str:
    place = "-".join(str(error[name]) for name in ("topic", "partition") if error[name] is not None)
    return f"{error['error']}: {place}: {error['message']}" if place else f"{error['error']}: {error['message']}"


def _written(snapshot: Snapshot, changed: dict[str, pa.Table], contradicted: dict[str, str], scratch: Path) -> Snapshot:
    folder = hidden_name(scratch / snapshot.snapshot_id)
    try:
        held = hold_new(folder, FOLDER_MODE)
        judged = folder / snapshot.snapshot_id
        judged.mkdir(mode=FOLDER_MODE)
        for name, rows in changed.items():
            pq.write_table(rows, judged / f"{name}.parquet")
    except OSError as problem:
        raise write_failed(folder, problem) from problem
    view = ConsistentSnapshot(path=snapshot.path, manifest=snapshot.manifest, judged=judged, contradicted=contradicted)
    weakref.finalize(view, _remove, folder, held)
    return view


def _remove(folder: Path, held: int) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    os.close(held)


def _read(snapshot: Snapshot, name: str, columns: Sequence[str]) -> pa.Table | None:
    """Those of the columns that the file has; None where it is missing or no such Parquet file, which others report."""
    path, schema = snapshot.dataset(name), DATASETS[name].schema
    try:
        with closing(pq.ParquetFile(path)) as file:
            there = [field for field in schema if field.name in columns and field.name in file.schema_arrow.names]
            return file.read(columns=[field.name for field in there]).cast(pa.schema(there)).combine_chunks()
    except (OSError, pa.ArrowException, ValueError):
        return None


def _skew(snapshot: Snapshot) -> int | None:
    """How far the clocks are apart, if that is too far; else None."""
    quorum = _read(snapshot, QUORUM.name, QUORUM.schema.names)
    return clocks_apart_ms(quorum) if quorum is not None and quorum.column_names == QUORUM.schema.names else None


def _window(snapshot: Snapshot) -> tuple[datetime, datetime] | None:
    """When it began and ended; None where the manifest does not say."""
    try:
        first, last = (parse_time(snapshot.manifest[name]) for name in ("started_at", "finished_at"))
    except (KeyError, ValueError):
        return None
    return (first, last) if first.tzinfo and last.tzinfo else None
