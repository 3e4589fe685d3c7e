"""What the lag history shows of one group: rolled-up days, and the snapshots of other days. It outlives the group."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_audit.cli.timeline import Entry
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.lag.position import Position, position_of
from kafka_audit.store.lag_days import GROUP_PARTITIONS, days_in, read_days
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from kafka_audit.store.samples import day_of
from kafka_audit.store.sealed import OFFSETS, SNAPSHOT

_PLACE = ("topic", "partition")
_ROW = (*_PLACE, "taken_ms", "committed", "log_start", "log_end")
_Row = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class _Found:
    """Rows of ``_ROW`` of the group, when the newest sample of all was taken, and what could not be used."""

    rows: list[_Row]
    newest_ms: int
    problems: list[str]


def lag_timeline(root: EvidenceRoot, cluster: str, group: str) -> tuple[list[Entry], list[str]]:
    """Of each partition that the group has committed the first and last sample and the one with the most unread, by time; and problems.

    The problems are of days and snapshots that were left out. ConfigurationError when no sample shows a commit of the group.
    """
    found = _found(root, cluster, group)
    if not found.rows:
        raise ConfigurationError(
            f"no snapshot and no rolled-up day of cluster {cluster} below {root.path} shows a commit of the group {group!r}"
        )
    places: dict[tuple[str, int], dict[int, _Row]] = {}
    for row in found.rows:
        places.setdefault((row["topic"], row["partition"]), {}).setdefault(row["taken_ms"], row)
    entries = [entry for _, samples in sorted(places.items()) for entry in _of_partition([samples[at] for at in sorted(samples)])]
    last_ms = max(row["taken_ms"] for row in found.rows)
    if last_ms < found.newest_ms:
        entries.append(_entry(found.newest_ms, "the newest sample of the cluster shows no commit of the group"))
    return sorted(entries, key=lambda entry: entry.at), found.problems


def _of_partition(samples: Sequence[_Row]) -> Iterator[Entry]:
    worst = max(samples, key=lambda row: position.lag if (position := _position(row)) else -1)
    first, last = samples[0], samples[-1]
    yield _told(first, f"first of {len(samples)} samples")
    if worst is not first and worst is not last:
        yield _told(worst, "sample with the most unread")
    if last is not first:
        yield _told(last, "last sample")


def _told(row: _Row, which: str) -> Entry:
    position = _position(row)
    if position is None:
        stands = "the log could not be read"
    else:
        lost = f", up to {position.lost} deleted unread" if position.lost else ""
        beyond = f", {position.beyond_end} beyond the end" if position.beyond_end else ""
        stands = f"log {row['log_start']} to {row['log_end']}, {position.lag} unread{lost}{beyond}"
    return _entry(row["taken_ms"], f"{row['topic']}-{row['partition']}: {which}: committed {row['committed']}, {stands}")


def _position(row: _Row) -> Position | None:
    if row["log_start"] is None or row["log_end"] is None:
        return None
    return position_of(row["committed"], row["log_start"], row["log_end"])


def _entry(at_ms: int, what: str) -> Entry:
    return Entry(at=datetime.fromtimestamp(at_ms / 1000, timezone.utc), log_offset=0, what=what)


def _found(root: EvidenceRoot, cluster: str, group: str) -> _Found:
    rows: list[_Row] = []
    folders = days_in(root, cluster)
    span = [datetime.fromisoformat(folder.name).date() for folder in (folders[:1] + folders[-1:])]
    days, problems = read_days(root, cluster, span[0], span[-1]) if span else ([], [])
    times = [source["taken_ms"] for day in days for source in day.sources]
    for day in days:
        rows += _rows_of(day.path / GROUP_PARTITIONS, _ROW, "group_id", group)
    rolled_up = {day.day for day in days}
    for kind in (OFFSETS, SNAPSHOT):
        for snapshot_id in root.sealed_ids(cluster, kind):
            try:
                one = root.snapshot(cluster, snapshot_id, kind)
                if kind == SNAPSHOT or day_of(one.taken_ms) not in rolled_up:
                    rows += _of_snapshot(one, group)
                    times.append(one.taken_ms)
            except IntegrityError as problem:
                problems.append(str(problem))
    return _Found(rows=[row for row in rows if row["committed"] is not None], newest_ms=max(times, default=0), problems=problems)


def _of_snapshot(one: Snapshot, group: str) -> list[_Row]:
    """Rows of ``_ROW`` of a snapshot. One that shows the group is verified."""
    commits = _rows_of(one.dataset("committed_offsets"), (*_PLACE, "committed"), "group_id", group)
    if commits and (broken := one.problems()):
        raise IntegrityError("; ".join(broken[:3]))
    logs = {
        (row["topic"], row["partition"]): row
        for topic in sorted({row["topic"] for row in commits})
        for row in _rows_of(one.dataset("offsets"), (*_PLACE, "log_start", "log_end"), "topic", topic)
    }
    unknown = {"log_start": None, "log_end": None}
    return [{**unknown, **logs.get((row["topic"], row["partition"]), {}), **row, "taken_ms": one.taken_ms} for row in commits]


def _rows_of(file: Path, columns: Sequence[str], key: str, value: str) -> list[_Row]:
    """The rows of a Parquet file whose ``key`` is ``value``; IntegrityError when it cannot be read."""
    found: list[_Row] = []
    try:
        parts = pq.ParquetFile(file)
        for index in range(parts.num_row_groups):
            mine = pc.equal(parts.read_row_group(index, columns=[key])[key], value)
            if pc.any(mine).as_py():
                found += parts.read_row_group(index, columns=list(columns)).filter(mine).to_pylist()
    except (OSError, KeyError, pa.ArrowException) as problem:
        raise IntegrityError(f"{file}: cannot be read ({problem}): restore it from a copy") from problem
    return found
