"""Reads the worst groups and partitions of an audit: lag, lost records, time to loss, and compliance with SLAs."""

from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.catalogue.rows.groups import STATUSES
from kafka_audit.report.lag_groups import GroupLag, GroupReader, read_group_slas
from kafka_audit.report.lag_history import read_histories
from kafka_audit.report.lag_partitions import COLUMNS, GroupPartition, Loss, LossReader, as_partitions, positive
from kafka_audit.report.rows import batches, exists, first_rows

SHOWN = 50
"""The largest numbers of partitions and of groups that are listed."""

_WORST = (
    *(("lost", "descending"), ("beyond_end", "descending"), ("time_to_loss_ms", "ascending"), ("lag", "descending")),
    *(("group_id", "ascending"), ("topic", "ascending"), ("partition", "ascending")),
)
_BAD = pa.array(STATUSES[: STATUSES.index("ORPHAN") + 1])


@dataclass(frozen=True, kw_only=True)
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
    listed = per_group.worst_first(read_group_slas(slas))
    histories = read_histories(series, [one.group_id for one in listed[:SHOWN]])
    return LagTables(
        ran=True,
        partitions=as_partitions(worst),
        partition_count=partition_count,
        behind_count=behind,
        unknown_count=sum(one.unknown for one in listed),
        without_commit_count=sum(one.without_commit for one in listed),
        groups=tuple(replace(one, history=histories.get(one.group_id)) for one in listed[:SHOWN]),
        group_count=len(listed),
        loss=loss.loss(),
    )


def _is_listed(table: pa.Table) -> pa.ChunkedArray:
    listed = pc.is_in(table["status"], value_set=_BAD)
    for column in ("lost", "lag", "beyond_end"):
        listed = pc.or_(listed, positive(table, column))
    return listed
