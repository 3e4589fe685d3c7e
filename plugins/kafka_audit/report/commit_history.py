"""Reads what the commit history says about groups: how complete it is, and the most notable groups."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.errors import IntegrityError
from kafka_audit.report.rows import batches, exists, first_rows, rows_of
from kafka_audit.store.behaviour_tables import RECORD
from kafka_audit.store.durable_files import read_json

SHOWN = 50
"""The largest number of groups that are listed."""

_NOTABLE = ("gone", "rewinds", "gaps_over_session", "rebalances", "commits")
_ORDER = (*((name, "descending") for name in _NOTABLE), ("group_id", "ascending"))
_GONE = ("expired", "deleted", "topic_deleted", "removed_unknown")
_TOTALS = ("expected", "rows", "lost", "skipped")
_GAP = ("partition", "start", "lost")

GroupBehaviour = Mapping[str, Any]
"""What one group did in the window: the columns of group_behaviour.parquet; None: not known, never 0.

interval_low_ms, interval_ms and interval_high_ms are the percentiles 5, 50 and 95 of the time between commits. expired, deleted,
topic_deleted and removed_unknown count the partitions whose committed offset is gone, by the reason. Before incomplete_until records
are missing, before lost_until possibly the newest commits too; an open transaction hides records after held_back_since.
"""
COLUMNS = (
    *("group_id", "group_type", "removed", "member_count", "static_members", "assignor", "session_timeout_ms", "rebalance_timeout_ms"),
    *("generations", "rebalances", "longest_rebalance_ms", "partitions", "commits", "unchanged", "rewinds", "jumps", "recreations"),
    *("transactional", "auto_commit", "auto_commit_interval_ms", "auto_commit_confidence", "auto_commit_reason", "interval_low_ms"),
    *("interval_ms", "interval_high_ms", "longest_gap_ms", "gaps_over_session", "largest_rewind", "last_rewind", "last_removed"),
    *("removed_reason", "expired", "deleted", "topic_deleted", "removed_unknown", "incomplete_until", "lost_until", "held_back_since"),
)


@dataclass(frozen=True, kw_only=True)
class CommitHistory:
    """The commit history that an audit used. ``reason``: why it used none. ``changed_since``: how it differs from an earlier run's.

    ``recorded`` is False if verify left no record. ``hours``: how much of the window up to ``end`` was read. ``totals`` counts offsets
    of the offsets topic: expected = rows + lost (deleted before they could be read) + skipped (transaction markers, records of aborted
    transactions, compacted records). ``gaps``: ``lost`` offsets of one partition of it from ``start`` on. ``auto_commit``:
    (verdict on auto-commit, number of groups).
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
    totals: Mapping[str, int] | None = None
    gaps: tuple[Mapping[str, int], ...] = ()
    gap_count: int = 0
    groups: tuple[GroupBehaviour, ...] = ()
    group_count: int = 0
    auto_commit: tuple[tuple[str, int], ...] = ()


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
        return _used(record, rows_of(worst.select(list(COLUMNS)) if worst is not None else None), count, words)
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(f"{path}: is not the record of a commit history ({problem!r}): run the step that writes it again") from problem


def _used(record: Mapping[str, Any], groups: tuple[GroupBehaviour, ...], count: int, words: Counter[str]) -> CommitHistory:
    return CommitHistory(
        recorded=True,
        changed_since=_text(record.get("changed_since")),
        **{name: _text(record[name]) for name in ("folder", "manifest_sha256", "start", "end", "observed_from")},
        hours=float(record["hours"]),
        totals=_numbers(record["totals"], _TOTALS),
        gaps=tuple(_numbers(gap, _GAP) for gap in record["gaps"]),
        gap_count=int(record["gap_count"]),
        groups=groups,
        group_count=count,
        auto_commit=tuple(sorted(words.items())),
    )


def _numbers(record: Mapping[str, Any], names: Sequence[str]) -> dict[str, int]:
    return {name: int(record[name]) for name in names}


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _gone(rows: pa.Table) -> pa.ChunkedArray:
    total = pc.fill_null(rows[_GONE[0]], 0)
    for name in _GONE[1:]:
        total = pc.add(total, pc.fill_null(rows[name], 0))
    return total
