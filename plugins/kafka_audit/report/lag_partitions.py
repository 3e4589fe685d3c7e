"""Reads the partitions of groups: lost records, time to further loss, lag and status."""

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.report.rows import arrow_types, batches, columns_of, first_rows

DAY_MS = 24 * 3600 * 1000

_LISTED = 10
_LOST = (("lost", "descending"), ("group_id", "ascending"), ("topic", "ascending"), ("partition", "ascending"))
_NEXT = (("time_to_loss_ms", "ascending"), *_LOST)


@dataclass(frozen=True, kw_only=True)
class GroupPartition:
    """A partition that a group reads. Counts are records, rates are records per second; None: not known, never 0."""

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
    only_markers_unread: bool | None = None
    status: str | None = None
    status_reason: str | None = None
    status_window_ms: int | None = None
    detected_within_ms: int | None = None
    burrow: str | None = None
    margin: int | None = None
    recreated: bool | None = None
    truncated: int | None = None
    produced_per_s: float | None = None
    consumed_per_s: float | None = None
    expired_per_s: float | None = None
    time_to_loss_ms: int | None = None
    time_to_loss_by: str | None = None
    catch_up_ms: int | None = None
    expires_in_ms: int | None = None
    lag_ms: int | None = None
    lag_ms_is_bound: bool | None = None
    lag_ms_least: int | None = None
    lag_ms_most: int | None = None
    lag_ms_method: str | None = None
    behind_sla: bool | None = None


_REQUIRED = [one.name for one in fields(GroupPartition) if one.default is MISSING]
_OPTIONAL = {name: kind for name, kind in arrow_types(GroupPartition).items() if name not in _REQUIRED}


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Loss over all group partitions: what has been lost, and what will be lost next at the rates of the history.

    ``next_known`` is False if the audit has no times to loss; then nothing is known about what will be lost next.
    """

    next_known: bool = False
    partitions: int = 0
    groups: int = 0
    records: int = 0
    within_a_day: int = 0
    happened: tuple[GroupPartition, ...] = ()
    next: tuple[GroupPartition, ...] = ()


def partition_batches(path: Path) -> Iterator[pa.Table]:
    """Batches of group_partitions.parquet with the columns of GroupPartition; those that an earlier release lacks are NULL."""
    return batches(path, _REQUIRED, optional=_OPTIONAL)


def absent_columns(path: Path) -> tuple[str, ...]:
    """The columns of GroupPartition that an audit of an earlier release does not have."""
    return tuple(sorted(set(_OPTIONAL) - columns_of(path)))


def as_partitions(table: pa.Table | None) -> tuple[GroupPartition, ...]:
    """The rows of a table that has the columns of GroupPartition."""
    return tuple(GroupPartition(**row) for row in table.to_pylist()) if table is not None else ()


def positive(table: pa.Table, column: str) -> pa.ChunkedArray:
    """A boolean array: true where the column is known and above 0."""
    return pc.fill_null(pc.greater(table[column], 0), False)


class LossReader:
    """Collects the loss over batches of group partitions; memory grows only with the number of groups that lost records."""

    def __init__(self) -> None:
        self._happened: pa.Table | None = None
        self._next: pa.Table | None = None
        self._groups: set[str] = set()
        self._partitions = self._records = self._within_a_day = 0

    def read(self, table: pa.Table) -> None:
        """Add one batch."""
        lost = table.filter(positive(table, "lost"))
        self._partitions += lost.num_rows
        self._records += pc.sum(lost["lost"]).as_py() or 0
        self._groups.update(pc.unique(lost["group_id"]).to_pylist())
        self._happened = first_rows(self._happened, lost, _LOST, _LISTED)
        losing = table.filter(pc.is_valid(table["time_to_loss_ms"]))
        self._within_a_day += pc.sum(pc.less_equal(losing["time_to_loss_ms"], DAY_MS)).as_py() or 0
        self._next = first_rows(self._next, losing, _NEXT, _LISTED)

    def loss(self, next_known: bool) -> Loss:
        """The loss over all batches."""
        return Loss(
            next_known=next_known,
            partitions=self._partitions,
            groups=len(self._groups),
            records=self._records,
            within_a_day=self._within_a_day,
            happened=as_partitions(self._happened),
            next=as_partitions(self._next),
        )
