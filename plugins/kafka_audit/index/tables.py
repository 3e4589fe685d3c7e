"""The tables of an index: one row for each group, and the first failures of each control with the audit since which each fails."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.findings import Status
from kafka_audit.index.build import worst_status
from kafka_audit.index.figures import LONG
from kafka_audit.report.lag_groups import GroupLag, GroupSla
from kafka_audit.report.rows import batches, first_rows
from kafka_audit.report.tally import SEVERITIES

FAILURES_OF_A_CONTROL = 1_000
"""The largest number of failures of one control that are listed, the worst first; findings.parquet has all."""

GROUP_ROW = pa.schema(
    [
        ("group_id", pa.string()),
        ("place", pa.int32()),
        ("group_type", pa.string()),
        ("state", pa.string()),
        ("status", pa.string()),
        ("partitions", pa.int64()),
        ("partitions_in_trouble", pa.int64()),
        ("unknown", pa.int64()),
        ("lag", pa.int64()),
        ("lag_max", pa.int64()),
        ("lag_ms", pa.int64()),
        ("lag_ms_is_bound", pa.bool_()),
        ("lost", pa.int64()),
        ("beyond_end", pa.int64()),
        ("time_to_loss_ms", pa.int64()),
        ("expires_in_ms", pa.int64()),
        ("rewinds", pa.int64()),
        ("slas", pa.string()),
        ("targets_missed", pa.int32()),
        ("targets", pa.int32()),
        ("availability_percent", pa.float64()),
        ("budget_used_share", pa.float64()),
    ]
)
"""One group, all partitions together, in the order of ``group_id``; ``place`` is its position with the worst first, from 1.

``status`` is the worst of its partitions. ``lag``, ``lag_max``, ``lost`` and ``beyond_end`` are records over the partitions of which they
are known, NULL if they are known of none; ``unknown`` counts partitions with a commit whose lag is not known. Times are milliseconds:
``expires_in_ms`` and ``time_to_loss_ms`` the smallest of its partitions. ``availability_percent`` is the lowest, and ``budget_used_share``
the largest, of its SLAs (above 1: overspent). ``rewinds`` counts those of the snapshots that the audit compared.
"""

FAILURE_ROW = pa.schema(
    [
        ("control_id", pa.string()),
        ("place", pa.int32()),
        ("resource", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("broker_id", pa.int32()),
        ("group_id", pa.string()),
        ("severity", pa.string()),
        ("tier", pa.string()),
        ("observed", pa.string()),
        ("expected", pa.string()),
        ("waiver", pa.string()),
        ("since_audit_id", pa.string()),
        ("since_at", pa.string()),
    ]
)
"""One failure, in the order of ``control_id`` and ``place``, which is its position among those of its control: worst first, from 1.

``since_audit_id``: the first of the audits, without a gap up to this one but for void ones, whose index lists the failure.
"""

_FOUND = tuple(name for name in FAILURE_ROW.names if name not in ("place", "since_audit_id", "since_at"))
_SORT = "rank"
_NO_TROUBLE = frozenset({"OK", "INSUFFICIENT_HISTORY", "NOT_ASSESSED"})


def group_rows(groups: Sequence[GroupLag], more: Mapping[str, Mapping[str, Any]]) -> pa.Table:
    """The rows of GROUP_ROW; ``more``: what Partitions says of each group."""
    rows = [_group_row(place, group, more.get(group.group_id, {})) for place, group in enumerate(groups, 1)]
    return pa.Table.from_pylist(rows, GROUP_ROW).sort_by("group_id")


def _group_row(place: int, group: GroupLag, more: Mapping[str, Any]) -> dict[str, Any]:
    used = [share for sla in group.slas if (share := _used_share(sla)) is not None]
    measured = [sla.availability_percent for sla in group.slas if sla.availability_percent is not None]
    asked = [sla.target_met for sla in group.slas if sla.target_percent is not None]
    return {
        **{name: getattr(group, name) for name in ("group_id", "group_type", "state", "partitions", "unknown")},
        **{name: getattr(group, name) for name in ("lag_ms", "lag_ms_is_bound", "time_to_loss_ms")},
        "place": place,
        "status": worst_status(group),
        "partitions_in_trouble": sum(number for status, number in group.statuses if status not in _NO_TROUBLE),
        "lag": _long(group.lag) if more.get("lag_known") else None,
        "lag_max": group.lag_max if more.get("lag_known") else None,
        "lost": _long(group.lost) if more.get("lost_known") else None,
        "beyond_end": _long(group.beyond_end) if more.get("beyond_end_known") else None,
        "expires_in_ms": more.get("expires_in_ms"),
        "rewinds": more.get("rewinds"),
        "slas": ", ".join(sla.sla for sla in group.slas) or None,
        "targets": len(asked),
        "targets_missed": asked.count(False),
        "availability_percent": min(measured, default=None),
        "budget_used_share": max(used, default=None),
    }


def _long(total: int) -> int | None:
    """A sum of records; not known if no column can hold it, or if it has gone round to a negative number."""
    return total if 0 <= total <= LONG else None


def _used_share(sla: GroupSla) -> float | None:
    if sla.budget_used_minutes is None or not sla.budget_allowed_minutes:
        return None
    return sla.budget_used_minutes / sla.budget_allowed_minutes


def failure_rows(findings: Sequence[Path], audit_id: str, started_at: str, before: pa.Table | None) -> pa.Table:
    """The rows of FAILURE_ROW, from the audit's findings; ``before``: those of the newest one before it that was not void."""
    kept: dict[str, pa.Table] = {}
    for path in findings:
        for table in batches(path, ("status", *_FOUND), pc.field("status") == Status.FAIL.value):
            ranks = pc.index_in(table["severity"], value_set=pa.array(SEVERITIES))
            ranked = table.select(list(_FOUND)).append_column(_SORT, ranks)
            for control_id in pc.unique(ranked["control_id"]).to_pylist():
                rows = ranked.filter(pc.equal(ranked["control_id"], control_id))
                order = [(_SORT, "ascending"), ("resource", "ascending")]
                kept[control_id] = first_rows(kept.get(control_id), rows, order, FAILURES_OF_A_CONTROL)
    listed = [_placed(kept[control_id]) for control_id in sorted(kept)]
    found = pa.concat_tables(listed) if listed else FAILURE_ROW.empty_table().drop_columns(["since_audit_id", "since_at"])
    since = _since(before)
    keys = zip(found["control_id"].to_pylist(), found["resource"].to_pylist(), strict=True)
    ages = [since.get(key, (audit_id, started_at)) for key in keys]
    found = found.append_column("since_audit_id", pa.array([one[0] for one in ages], pa.string()))
    return found.append_column("since_at", pa.array([one[1] for one in ages], pa.string())).select(FAILURE_ROW.names).cast(FAILURE_ROW)


def _placed(rows: pa.Table) -> pa.Table:
    return rows.drop_columns([_SORT]).append_column("place", pa.array(range(1, rows.num_rows + 1), pa.int32()))


def _since(before: pa.Table | None) -> dict[tuple[str, str], tuple[str, str]]:
    if before is None:
        return {}
    columns = (before[name].to_pylist() for name in ("control_id", "resource", "since_audit_id", "since_at"))
    return {(control_id, resource): (audit_id, at) for control_id, resource, audit_id, at in zip(*columns, strict=True)}
