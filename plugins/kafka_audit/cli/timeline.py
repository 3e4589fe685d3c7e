"""The timeline of one group from the decoded commit history: an entry for each change, not for each commit."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kafka_audit.errors import ConfigurationError
from kafka_audit.store.commit_batches import REPAIR_OF_DECODED, batches_in, read_as_parquet, verify_batch
from kafka_audit.store.mirrors import where

_COMMIT_COLUMNS = ["log_offset", "append_time", "group_id", "topic", "partition", "tombstone", "committed", "metadata", "topic_id"]
_RECORDS = {
    "group_metadata": ("generation", "generation"),
    "consumer_group_metadata": ("group epoch", "epoch"),
    "share_group_metadata": ("group epoch", "epoch"),
    "streams_group_metadata": ("group epoch", "epoch"),
}
_MEMBERS = ("consumer_group_member_metadata", "share_group_member_metadata", "streams_group_member_metadata")
_GROUP_COLUMNS = ["log_offset", "append_time", "group_id", "record_name", "tombstone", "member_id", *_RECORDS, *_MEMBERS]
_COLUMNS = {"offset_commits": _COMMIT_COLUMNS, "group_records": _GROUP_COLUMNS}


@dataclass(frozen=True, kw_only=True)
class Entry:
    """One change, at the time at which the broker appended its record."""

    at: datetime
    log_offset: int
    what: str


@dataclass(frozen=True, kw_only=True)
class _Position:
    """The group's newest commit on one partition, and how many commits of it were read."""

    at: datetime
    committed: int
    topic_id: str | None
    commits: int


def timeline(history: Path, group: str, *, quiet: timedelta) -> list[Entry]:
    """The entries of a group in the order of the log; a pause in its commits counts from ``quiet`` on.

    ConfigurationError when nothing is decoded yet, or no record is of this group. IntegrityError (exit 5) when a batch lacks files of its
    manifest or has others, and when a batch with rows of this group was changed.
    """
    batches = [history / "decoded" / name for name in batches_in(history / "decoded")]
    if not batches:
        raise ConfigurationError(f"{where(history)} holds no decoded commits: let read_commits (DAG kafka_commit_history) run first")
    found = [_of_group(batch, group) for batch in batches]
    entries = [*_commit_entries(_in_order(found, "offset_commits"), quiet), *_group_entries(_in_order(found, "group_records"))]
    if not entries:
        raise ConfigurationError(f"nothing of the group {group!r} was read into {where(history)}")
    return sorted(entries, key=lambda entry: entry.log_offset)


def _of_group(batch: Path, group: str) -> dict[str, pa.Table]:
    """The rows of one group in a batch, by table. A batch with such rows is verified."""
    names = verify_batch(batch, REPAIR_OF_DECODED, names_only=True)
    parts = {
        table: [rows for name in names if name.startswith(f"{table}.parquet/") for rows in _rows_in(batch / name, columns, group)]
        for table, columns in _COLUMNS.items()
    }
    if any(parts.values()):
        verify_batch(batch, REPAIR_OF_DECODED)
    return {table: pa.concat_tables(rows).sort_by("log_offset") for table, rows in parts.items() if rows}


def _in_order(batches: list[dict[str, pa.Table]], table: str) -> Iterator[dict[str, Any]]:
    """Rows in the order of the log: all records of a group lie in one partition, and batches follow one another there."""
    found = [batch[table] for batch in batches if table in batch]
    for rows in sorted(found, key=lambda rows: rows["log_offset"][0].as_py()):
        for chunk in rows.to_batches(max_chunksize=10_000):
            yield from chunk.to_pylist()


def _rows_in(part: Path, columns: list[str], group: str) -> Iterator[pa.Table]:
    with read_as_parquet(part, REPAIR_OF_DECODED):
        file = pq.ParquetFile(part)
        for index in range(file.num_row_groups):
            mine = pc.equal(file.read_row_group(index, columns=["group_id"])["group_id"], group)
            if pc.any(mine).as_py():
                yield file.read_row_group(index, columns=columns).filter(mine)


def _commit_entries(rows: Iterator[dict[str, Any]], quiet: timedelta) -> Iterator[Entry]:
    places: dict[tuple[str, int], _Position] = {}
    at = 0
    for row in rows:
        place, at = (row["topic"], row["partition"]), row["log_offset"]
        before = places.pop(place, None)
        for what in _changes(before, row, quiet):
            yield _entry(row, f"{place[0]}-{place[1]}: {what}")
        if not row["tombstone"]:
            topic_id = row["topic_id"] or (before.topic_id if before else None)
            commits = before.commits + 1 if before else 1
            places[place] = _Position(at=row["append_time"], committed=row["committed"], topic_id=topic_id, commits=commits)
    for (topic, partition), last in sorted(places.items()):
        yield Entry(
            at=last.at, log_offset=at + 1, what=f"{topic}-{partition}: stands at {last.committed} since then, {last.commits} commits read"
        )


def _changes(before: _Position | None, row: dict[str, Any], quiet: timedelta) -> Iterator[str]:
    """What a commit or a tombstone changes on its partition."""
    committed = row["committed"]
    if row["tombstone"]:
        removed = "removed (expired or deleted)"
        yield f"offset {before.committed} {removed}, after {before.commits} commits" if before else f"offset {removed}"
    elif before is None:
        yield f"first commit, {committed}"
    else:
        pause = row["append_time"] - before.at
        if before.topic_id and row["topic_id"] and before.topic_id != row["topic_id"]:
            yield f"{committed} on another topic of the same name (it was {before.committed} on the old one)"
        elif committed < before.committed:
            yield f"went back from {before.committed} to {committed}, {before.committed - committed} records"
        if pause >= quiet:
            yield f"committed {committed} after a pause of {_span(pause)}, {committed - before.committed} records on"


def _group_entries(rows: Iterator[dict[str, Any]]) -> Iterator[Entry]:
    number: int | None = None
    for row in rows:
        name = row["record_name"]
        value = row.get(name)
        if name in _RECORDS:
            if row["tombstone"]:
                yield _entry(row, "group removed, or converted to another protocol")
                number = None
            elif value and value[_RECORDS[name][1]] != number:
                number = value[_RECORDS[name][1]]
                yield _entry(row, f"{_RECORDS[name][0]} {number}{_classic(value) if name == 'group_metadata' else ''}")
        elif name in _MEMBERS:
            yield _entry(
                row,
                f"member {row['member_id']} left" if row["tombstone"] else f"member {row['member_id']} joined or changed{_member(value)}",
            )


def _entry(row: dict[str, Any], what: str) -> Entry:
    return Entry(at=row["append_time"], log_offset=row["log_offset"], what=what)


def _classic(value: dict[str, Any]) -> str:
    members = value["members"] or []
    if not members:
        return ", no members"
    static = sum(1 for member in members if member["instance_id"])
    sessions = sorted({member["session_timeout_ms"] for member in members})
    return f", {len(members)} members ({static} static), assignor {value['protocol']}, session timeout {'/'.join(map(str, sessions))} ms"


def _member(value: dict[str, Any] | None) -> str:
    about = value or {}
    static = f", static as {about['instance_id']}" if about.get("instance_id") else ""
    return f" (client {about.get('client_id')}{static})"


def _span(time: timedelta) -> str:
    seconds = int(time.total_seconds())
    hours, rest = divmod(seconds, 3600)
    return f"{hours} h {rest // 60} min" if hours else f"{rest // 60} min {rest % 60} s"


def text(entry: Entry) -> str:
    """One line: the time in UTC and what happened. Names are not escaped: escape them before printing."""
    return f"{entry.at.astimezone(timezone.utc):%Y-%m-%d %H:%M:%S.%f}"[:-3] + f"Z  {entry.what}"
