"""Reads the worst groups and partitions of an audit: lag, lost records, time to loss, and compliance with SLAs."""

from dataclasses import field, fields, replace
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.compute as pc
from pydantic import SkipValidation, computed_field
from pydantic.dataclasses import dataclass

from kafka_audit.catalogue.rows.groups import STATUSES
from kafka_audit.report import words
from kafka_audit.report.frozen import EXACT, IN_JSON_ELSEWHERE
from kafka_audit.report.lag_groups import GroupLag, GroupReader, read_group_slas
from kafka_audit.report.lag_history import read_histories
from kafka_audit.report.rows import batches, exists, first_rows, loses, positive, rows_of

SHOWN = 50
"""The largest numbers of partitions and of groups that are listed."""

DAY_MS = 24 * 3600 * 1000

_LISTED = 10
_PLACE = (("group_id", "ascending"), ("topic", "ascending"), ("partition", "ascending"))
_LOST = (("lost", "descending"), *_PLACE)
_NEXT = (("time_to_loss_ms", "ascending"), *_LOST)
_WORST = (("lost", "descending"), ("beyond_end", "descending"), ("time_to_loss_ms", "ascending"), ("lag", "descending"), *_PLACE)
_BAD = pa.array(STATUSES[: STATUSES.index("ORPHAN") + 1])


@dataclass(frozen=True, kw_only=True, config=EXACT)
class GroupPartition:
    """A partition that a group reads: the columns of group_partitions.parquet that are shown.

    Counts are records, rates are records per second; None: not known, never 0.
    """

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


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Loss:
    """Loss over all group partitions: what has been lost, and what will be lost next at the rates of the history.

    ``known``: the partitions of which it is known whether records were lost. ``rates_unknown``: those with unread records whose rates are
    not known, so that no loss can be foreseen.
    """

    known: int = 0
    rates_unknown: int = 0
    partitions: int = 0
    groups: int = 0
    records: int = 0
    within_a_day: int = 0
    happened: tuple[GroupPartition, ...] = ()
    next: tuple[GroupPartition, ...] = ()

    @computed_field  # type: ignore[prop-decorator]
    @property
    def sentence(self) -> str:
        """What was lost and what will be lost within a day; empty if there is no known loss."""
        return words.loss(self)


@dataclass(frozen=True, kw_only=True, config=EXACT)
class LagTables:
    """The worst partitions and groups, and how many there are in total; ``ran`` is False if the verification left no results on lag."""

    ran: bool
    partitions: tuple[GroupPartition, ...] = ()
    partition_count: int = 0
    behind_count: int = 0
    unknown_count: int = 0
    without_commit_count: int = 0
    groups: tuple[GroupLag, ...] = ()
    group_count: int = 0
    loss: Loss = field(default_factory=Loss)
    every_group: Annotated[tuple[GroupLag, ...], SkipValidation, IN_JSON_ELSEWHERE] = ()
    """All groups, worst first, without their histories: the audit's index lists them."""


def read_lag(folder: Path, groups: Path) -> LagTables:
    """Read the lag tables from the audit's ``lag/`` folder and the snapshot's ``groups`` dataset.

    Lists partitions with lost or unread records, a commit beyond the log end, or a status that signals trouble.
    IntegrityError if a file is broken.
    """
    path, slas, series = (folder / f"{name}.parquet" for name in ("group_partitions", "group_slas", "lag_series"))
    if not exists(path):
        return LagTables(ran=False)
    per_group, loss = GroupReader(groups), LossReader()
    worst: pa.Table | None = None
    partition_count = behind = 0
    for table in batches(path, COLUMNS):
        partition_count += table.num_rows
        rows = table.filter(_is_listed(table))
        behind += rows.num_rows
        worst = first_rows(worst, rows, _WORST, SHOWN)
        loss.read(table)
        per_group.read(table)
    listed = per_group.worst_first(read_group_slas(slas, folder / "findings.parquet"))
    histories = read_histories(series, [one.group_id for one in listed[:SHOWN]])
    return LagTables(
        ran=True,
        partitions=_partitions(worst),
        partition_count=partition_count,
        behind_count=behind,
        unknown_count=sum(one.unknown for one in listed),
        without_commit_count=sum(one.without_commit for one in listed),
        groups=tuple(replace(one, history=histories.get(one.group_id)) for one in listed[:SHOWN]),
        group_count=len(listed),
        loss=loss.loss(),
        every_group=tuple(listed),
    )


def _partitions(table: pa.Table | None) -> tuple[GroupPartition, ...]:
    return tuple(GroupPartition(**row) for row in rows_of(table))


def _is_listed(table: pa.Table) -> pa.ChunkedArray:
    listed = pc.is_in(table["status"], value_set=_BAD)
    for column in ("lost", "lag", "beyond_end"):
        listed = pc.or_(listed, positive(table, column))
    return listed


class LossReader:
    """Collects the loss over batches of group partitions; memory grows only with the number of groups that lost records.

    ``listed``: the largest number of partitions that are listed as having lost records, and as losing some next.
    """

    def __init__(self, listed: int = _LISTED) -> None:
        self._listed = listed
        self._happened: pa.Table | None = None
        self._next: pa.Table | None = None
        self._groups: set[str] = set()
        self._partitions = self._records = self._within_a_day = self._known = self._rates_unknown = 0

    def read(self, table: pa.Table) -> None:
        lost = table.filter(positive(table, "lost"))
        self._partitions += lost.num_rows
        self._records += pc.sum(lost["lost"]).as_py() or 0
        self._groups.update(pc.unique(lost["group_id"]).to_pylist())
        self._happened = first_rows(self._happened, lost, _LOST, self._listed)
        self._known += table.num_rows - table["lost"].null_count
        no_rates = pc.and_(pc.is_null(table["consumed_per_s"]), pc.is_null(table["time_to_loss_ms"]))
        self._rates_unknown += pc.sum(pc.and_(no_rates, positive(table, "lag"))).as_py() or 0
        losing = table.filter(loses(table))
        self._within_a_day += pc.sum(pc.less_equal(losing["time_to_loss_ms"], DAY_MS)).as_py() or 0
        self._next = first_rows(self._next, losing, _NEXT, self._listed)

    def loss(self) -> Loss:
        return Loss(
            known=self._known,
            rates_unknown=self._rates_unknown,
            partitions=self._partitions,
            groups=len(self._groups),
            records=self._records,
            within_a_day=self._within_a_day,
            happened=_partitions(self._happened),
            next=_partitions(self._next),
        )
