"""Reads the partitions of groups: lost records, time to further loss, lag and status."""

from dataclasses import dataclass, fields

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.report.rows import first_rows

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
    only_markers_unread: bool | None
    status: str | None
    status_reason: str | None
    status_window_ms: int | None
    detected_within_ms: int | None
    burrow: str | None
    margin: int | None
    recreated: bool | None
    truncated: int | None
    produced_per_s: float | None
    consumed_per_s: float | None
    expired_per_s: float | None
    time_to_loss_ms: int | None
    time_to_loss_by: str | None
    catch_up_ms: int | None
    expires_in_ms: int | None
    lag_ms: int | None
    lag_ms_is_bound: bool | None
    lag_ms_least: int | None
    lag_ms_most: int | None
    lag_ms_method: str | None
    behind_sla: bool | None


COLUMNS = tuple(one.name for one in fields(GroupPartition))


@dataclass(frozen=True, kw_only=True)
class Loss:
    """Loss over all group partitions: what has been lost, and what will be lost next at the rates of the history."""

    partitions: int = 0
    groups: int = 0
    records: int = 0
    within_a_day: int = 0
    happened: tuple[GroupPartition, ...] = ()
    next: tuple[GroupPartition, ...] = ()


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

    def loss(self) -> Loss:
        """The loss over all batches."""
        return Loss(
            partitions=self._partitions,
            groups=len(self._groups),
            records=self._records,
            within_a_day=self._within_a_day,
            happened=as_partitions(self._happened),
            next=as_partitions(self._next),
        )
