"""Reads what the commit history says about groups: how complete it is, and the most notable groups."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic.dataclasses import dataclass

from kafka_audit.errors import IntegrityError
from kafka_audit.report.frozen import EXACT, IntByName
from kafka_audit.report.rows import batches, exists, first_rows, rows_of
from kafka_audit.store.behaviour_tables import RECORD
from kafka_audit.store.durable_files import read_json

SHOWN = 50
"""The largest number of groups that are listed."""

_NOTABLE = ("gone", "rewinds", "gaps_over_session", "rebalances", "commits")
_ORDER = (*((name, "descending") for name in _NOTABLE), ("group_id", "ascending"))
_GONE = ("expired", "deleted", "topic_deleted", "removed_unknown")


@dataclass(frozen=True, kw_only=True, config=EXACT)
class GroupBehaviour:
    """What one group did in the window: the columns of group_behaviour.parquet; None: not known, never 0.

    interval_low_ms, interval_ms and interval_high_ms are the percentiles 5, 50 and 95 of the time between commits. expired, deleted,
    topic_deleted and removed_unknown count the partitions whose committed offset is gone, by the reason. Before incomplete_until records
    are missing, before lost_until possibly the newest commits too; an open transaction hides records after held_back_since.
    """

    group_id: str
    group_type: str | None
    removed: bool | None
    member_count: int | None
    static_members: int | None
    assignor: str | None
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    generations: int | None
    rebalances: int | None
    longest_rebalance_ms: int | None
    partitions: int | None
    commits: int | None
    unchanged: int | None
    rewinds: int | None
    jumps: int | None
    recreations: int | None
    transactional: int | None
    auto_commit: str | None
    auto_commit_interval_ms: int | None
    auto_commit_confidence: str | None
    auto_commit_reason: str | None
    interval_low_ms: int | None
    interval_ms: int | None
    interval_high_ms: int | None
    longest_gap_ms: int | None
    gaps_over_session: int | None
    largest_rewind: int | None
    last_rewind: str | None
    last_removed: str | None
    removed_reason: str | None
    expired: int | None
    deleted: int | None
    topic_deleted: int | None
    removed_unknown: int | None
    incomplete_until: str | None
    lost_until: str | None
    held_back_since: str | None


COLUMNS = tuple(one.name for one in fields(GroupBehaviour))


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Offsets:
    """Offsets of the offsets topic: expected = rows + lost (deleted before they could be read) + skipped.

    Skipped are transaction markers, records of aborted transactions and compacted records.
    """

    expected: int
    rows: int
    lost: int
    skipped: int


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Gap:
    """``lost`` offsets of one partition of the offsets topic from ``start`` on."""

    partition: int
    start: int
    lost: int


@dataclass(frozen=True, kw_only=True, config=EXACT)
class CommitHistory:
    """The commit history that an audit used. ``reason``: why it used none. ``changed_since``: how it differs from an earlier run's.

    ``recorded`` is False if verify left no record. ``hours``: how much of the window up to ``end`` was read.
    ``auto_commit``: (verdict on auto-commit, number of groups).
    """

    recorded: bool
    reason: str | None = None
    changed_since: str | None = None
    folder: str | None = None
    manifest_sha256: str | None = None
    start: str | None = None
    end: str | None = None
    observed_from: str | None = None
    hours: float | None = None
    totals: Offsets | None = None
    gaps: tuple[Gap, ...] = ()
    gap_count: int = 0
    groups: tuple[GroupBehaviour, ...] = ()
    group_count: int = 0
    auto_commit: IntByName = ()


def read_commit_history(folder: Path) -> CommitHistory:
    """Read it from the audit's ``lag/`` folder; IntegrityError if a file is broken."""
    path, table = folder / RECORD, folder / "group_behaviour.parquet"
    if not path.is_file():
        return CommitHistory(recorded=False)
    record = read_json(path)
    if record.get("folder") is None:
        return CommitHistory(recorded=True, reason=_text(record.get("reason")), changed_since=_text(record.get("changed_since")))
    if not exists(table):
        raise IntegrityError(f"{path} names a commit history, but {table.name} is missing beside it: run verify again")
    worst: pa.Table | None = None
    count, words = 0, Counter[str]()
    for rows in batches(table, COLUMNS):
        count += rows.num_rows
        words.update(word or "unknown" for word in rows["auto_commit"].to_pylist())
        worst = first_rows(worst, rows.append_column("gone", _gone(rows)), _ORDER, SHOWN)
    try:
        rows = rows_of(worst.select(list(COLUMNS)) if worst is not None else None)
        return _used(record, tuple(GroupBehaviour(**row) for row in rows), count, words)
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(f"{path}: is not the record of a commit history ({problem!r}): run the step that writes it again") from problem


def _used(record: Mapping[str, Any], groups: tuple[GroupBehaviour, ...], count: int, words: Counter[str]) -> CommitHistory:
    return CommitHistory(
        recorded=True,
        changed_since=_text(record.get("changed_since")),
        **{name: _text(record[name]) for name in ("folder", "manifest_sha256", "start", "end", "observed_from")},
        hours=float(record["hours"]),
        totals=Offsets(**_numbers(record["totals"], Offsets)),
        gaps=tuple(Gap(**_numbers(gap, Gap)) for gap in record["gaps"]),
        gap_count=int(record["gap_count"]),
        groups=groups,
        group_count=count,
        auto_commit=tuple(sorted(words.items())),
    )


def _numbers(record: Mapping[str, Any], of: type) -> dict[str, int]:
    return {one.name: int(record[one.name]) for one in fields(of)}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _gone(rows: pa.Table) -> pa.ChunkedArray:
    total = pc.fill_null(rows[_GONE[0]], 0)
    for name in _GONE[1:]:
        total = pc.add(total, pc.fill_null(rows[name], 0))
    return total
