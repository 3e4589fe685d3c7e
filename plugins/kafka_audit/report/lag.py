"""How far groups are behind and what they lost: the worst partitions and groups of one audit."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.report.rows import batches, exists, first_rows

SHOWN = 50
"""How many partitions and how many groups are listed."""

_PARTITION = (
    *("group_id", "topic", "partition", "group_type", "state", "topic_exists", "has_commit"),
    *("committed", "log_start", "log_end", "lag", "lost", "beyond_end", "compacted"),
)
_WORST = (
    *(("lost", "descending"), ("beyond_end", "descending"), ("lag", "descending")),
    *(("group_id", "ascending"), ("topic", "ascending"), ("partition", "ascending")),
)


@dataclass(frozen=True, kw_only=True)
class GroupPartition:
    """A partition that a group reads. Offsets and counts are records; None is not known, never 0."""

    group_id: str
    topic: str
    partition: int
    group_type: str | None
    state: str | None
    topic_exists: bool | None
    has_commit: bool | None
    committed: int | None
    log_start: int | None
    log_end: int | None
    lag: int | None
    lost: int | None
    beyond_end: int | None
    compacted: bool | None


@dataclass(frozen=True, kw_only=True)
class GroupLag:
    """One group over all its partitions. Sums are over those whose offsets are known; ``unknown`` counts the others with a commit."""

    group_id: str
    group_type: str
    state: str
    partitions: int = 0
    without_commit: int = 0
    unknown: int = 0
    lag: int = 0
    lag_max: int = 0
    lost: int = 0
    beyond_end: int = 0

    @property
    def known(self) -> int:
        """Partitions with a commit whose lag could be computed."""
        return self.partitions - self.without_commit - self.unknown


@dataclass(frozen=True, kw_only=True)
class LagTables:
    """The worst partitions and groups, and how many there are in all; ``ran`` is False when verify_lag left nothing."""

    ran: bool
    partitions: tuple[GroupPartition, ...] = ()
    partition_count: int = 0
    behind_count: int = 0
    unknown_count: int = 0
    without_commit_count: int = 0
    groups: tuple[GroupLag, ...] = ()
    group_count: int = 0


def _per_group(table: pa.Table) -> list[dict[str, Any]]:
    """One dict per group of the table: its words, row count, counts and sums."""
    # NULL has_commit means the commit could not be read: its lag is unknown, the group is not "without a commit".
    without = pc.equal(pc.fill_null(table["has_commit"], True), False)
    unknown = pc.and_(pc.is_null(table["lag"]), pc.invert(without))
    counted = table.append_column("without", pc.cast(without, pa.int64())).append_column("unknown", pc.cast(unknown, pa.int64()))
    sums = [(name, "sum") for name in ("without", "unknown", "lag", "lost", "beyond_end")]
    words = [("group_type", "max"), ("state", "max")]
    grouped = counted.group_by("group_id").aggregate([([], "count_all"), ("lag", "max"), *sums, *words])
    rows: list[dict[str, Any]] = grouped.to_pylist()
    return rows


def _added(group: GroupLag, row: Mapping[str, Any]) -> GroupLag:
    return replace(
        group,
        partitions=group.partitions + row["count_all"],
        without_commit=group.without_commit + row["without_sum"],
        unknown=group.unknown + row["unknown_sum"],
        lag=group.lag + (row["lag_sum"] or 0),
        lag_max=max(group.lag_max, row["lag_max"] or 0),
        lost=group.lost + (row["lost_sum"] or 0),
        beyond_end=group.beyond_end + (row["beyond_end_sum"] or 0),
    )


def read_lag(group_partitions: Path, groups: Path) -> LagTables:
    """The lag tables from ``group_partitions.parquet`` of the audit and the snapshot's ``groups`` dataset.

    Listed are partitions with lost or unread records or a commit beyond the end; IntegrityError when a file is broken.
    """
    if not exists(group_partitions):
        return LagTables(ran=False)
    found: dict[str, GroupLag] = {}
    for table in batches(groups, ("group_id", "group_type", "state")):
        for row in table.to_pylist():
            found[row["group_id"]] = _group(row)
    worst: pa.Table | None = None
    partition_count = behind = 0
    for table in batches(group_partitions, _PARTITION):
        partition_count += table.num_rows
        noteworthy = [pc.fill_null(pc.greater(table[column], 0), False) for column in ("lost", "lag", "beyond_end")]
        rows = table.filter(pc.or_(pc.or_(noteworthy[0], noteworthy[1]), noteworthy[2]))
        behind += rows.num_rows
        worst = first_rows(worst, rows, _WORST, SHOWN)
        for row in _per_group(table):
            words = {"group_id": row["group_id"], "group_type": row["group_type_max"], "state": row["state_max"]}
            found[row["group_id"]] = _added(found.get(row["group_id"]) or _group(words), row)
    listed = sorted(found.values(), key=lambda one: (-one.lost, -one.beyond_end, -one.lag, one.group_id))
    return LagTables(
        ran=True,
        partitions=tuple(GroupPartition(**row) for row in worst.to_pylist()) if worst is not None else (),
        partition_count=partition_count,
        behind_count=behind,
        unknown_count=sum(one.unknown for one in listed),
        without_commit_count=sum(one.without_commit for one in listed),
        groups=tuple(listed[:SHOWN]),
        group_count=len(listed),
    )


def _group(row: Mapping[str, Any]) -> GroupLag:
    return GroupLag(group_id=str(row["group_id"]), group_type=row["group_type"] or "unknown", state=row["state"] or "not known")
