"""Finds a cluster's newest sealed audit and its newest snapshot with offsets, and checks the files that are read of them."""

from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_audit.collect.clocks import clocks_apart_ms
from kafka_audit.collect.contradictions import by_one_clock, consistent
from kafka_audit.collect.datasets import DATASETS, ERRORS, QUORUM
from kafka_audit.errors import IntegrityError
from kafka_audit.lag.standings import READ
from kafka_audit.store.chain_state import read_state
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from kafka_audit.store.manifest import MANIFEST, file_problems
from kafka_audit.store.sealed import AUDIT, OFFSETS, SNAPSHOT, Sealed, placed, shown
from kafka_audit.times import parse_time

READ_OF_AUDITS = ("run.json", "report/report.json", "failures/", "lag/group_partitions.parquet/", "lag/group_slas.parquet/")
"""The files of an audit that metrics are made of."""


def newest_audit(root: EvidenceRoot, cluster: str) -> Path | None:
    """The folder of the newest sealed audit; None if none was sealed.

    IntegrityError if one that was sealed later is gone, or if a file is missing, was added, or is read here and was changed. ``kafka-audit
    verify`` checks all of an audit; metrics are read every minute.
    """
    newest, state = root.newest_sealed(cluster, AUDIT), read_state(root.audits(cluster))
    if state and state.head and not (root.audit(cluster, state.head.audit_id).path / MANIFEST).is_file():
        raise IntegrityError(f"audit {state.head.audit_id}, which was sealed last, is gone or has no manifest")
    if newest is None:
        return None
    folder, place = placed(root.audit(cluster, newest).path)
    _check(Sealed.open(folder, place), READ_OF_AUDITS)
    return folder


def newest_offsets(root: EvidenceRoot, cluster: str) -> Snapshot | None:
    """The newest sealed snapshot, whole or of offsets only; None if there is none. IntegrityError if it is not as it was sealed."""
    newest = [root.snapshot(cluster, one, kind) for kind in (SNAPSHOT, OFFSETS) if (one := root.newest_sealed(cluster, kind))]
    if not newest:
        return None
    found = max(newest, key=lambda one: (one.taken_ms, one.snapshot_id))
    placed(found.path)
    _check(found, tuple(f"{name}.parquet" for name in (*READ, QUORUM.name)))
    return found


def _check(sealed: Sealed, read: tuple[str, ...]) -> None:
    if problems := file_problems(sealed.path, sealed.manifest, hashed=read):
        raise IntegrityError(f"{sealed.path} does not match its manifest: {shown(problems)}")


def consistent_tables(snapshot: Snapshot) -> dict[str, pa.Table]:
    """The datasets that lag is computed from, without values that contradict each other, as audits judge them (collect.contradictions)."""
    window = tuple(parse_time(snapshot.manifest[name]) for name in ("started_at", "finished_at"))
    skew = clocks_apart_ms(_read(snapshot, QUORUM.name)) if snapshot.kind == SNAPSHOT else None
    found: dict[str, pa.Table] = {}
    errors: list[dict[str, object]] = []
    for name in READ:
        rows = _read(snapshot, name)
        if name != ERRORS.name:
            rows, about = consistent(name, rows, (window[0], window[1]))
            rows, more = by_one_clock(name, rows, skew) if skew is not None else (rows, [])
            errors += [*about, *more]
        found[name] = rows
    new = pa.Table.from_pylist(errors, schema=ERRORS.schema)
    return {**found, ERRORS.name: pa.concat_tables([found[ERRORS.name], new])}


def _read(snapshot: Snapshot, name: str) -> pa.Table:
    path, schema = snapshot.dataset(name), DATASETS[name].schema
    try:
        with closing(pq.ParquetFile(path)) as file:
            return file.read(columns=schema.names).select(schema.names).cast(schema).combine_chunks()
    except (OSError, pa.ArrowException, ValueError, KeyError) as problem:
        raise IntegrityError(f"{path}: cannot be read as the dataset {name} ({problem})") from problem
