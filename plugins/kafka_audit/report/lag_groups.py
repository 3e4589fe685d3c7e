"""Adds up groups over all their partitions (lag, lost records, statuses), and reads their lag SLAs."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pydantic.dataclasses import dataclass

from kafka_audit.catalogue.rows.groups import STATUSES
from kafka_audit.findings import Status
from kafka_audit.report.frozen import EXACT, IntByName
from kafka_audit.report.lag_history import LagHistory
from kafka_audit.report.rows import batches, exists, loses, positive

_LEAST_KNOWN = 0.95
"""The share of the minutes that must be known, where no control judged the SLA: the default of CON-14."""
_JUDGES_TARGETS = "lag_sla_availability_kept"
_WITH_NULLS = pc.ScalarAggregateOptions(skip_nulls=False)
_AGGREGATES: list[Any] = [
    ([], "count_all"),
    *((name, "sum") for name in ("without", "unknown", "unbounded", "lag", "lost", "beyond_end")),
    *((name, "max") for name in ("group_type", "state", "lag")),
    *((name, "first", _WITH_NULLS) for name in ("lag_ms", "lag_ms_method")),
    ("time_to_loss_ms", "min"),
]

_OF_POLICY = ("sla", "max_lag_records", "max_lag_ms", "max_no_progress_ms", "breach_samples", "breach_of", "target_percent", "window_days")
_COLUMNS = (
    *("policy", "resource", "group_id", "partition_count", "lag_known", "unknown_partitions", "behind_partitions", "quiet"),
    *("availability_percent", "minutes_in", "minutes_out", "minutes_not_assessed", "minutes_quiet"),
    *("budget_allowed_minutes", "budget_used_minutes", "budget_left_minutes"),
)


@dataclass(frozen=True, kw_only=True, config=EXACT)
class GroupSla:
    """One SLA of a group, over the partitions that it covers: limits, lag in records, and window. None: not known or not demanded.

    availability_percent is the share of the judged minutes that were within the limits; quiet minutes and minutes that were not assessed
    are not judged. target_met is what CON-14 says of the SLA; None without a target, and if it is not assessed. Where that control has no
    result it is False if known minutes overspend the budget, and None with less than 95 % known.
    """

    resource: str
    group_id: str
    partition_count: int | None
    lag_known: int | None
    unknown_partitions: int | None
    behind_partitions: int | None
    quiet: bool | None
    availability_percent: float | None
    minutes_in: int | None
    minutes_out: int | None
    minutes_not_assessed: int | None
    minutes_quiet: int | None
    budget_allowed_minutes: float | None
    budget_used_minutes: float | None
    budget_left_minutes: float | None
    sla: str
    max_lag_records: int | None
    max_lag_ms: int | None
    max_no_progress_ms: int | None
    breach_samples: int | None
    breach_of: int | None
    target_percent: float | None
    window_days: int | None
    target_met: bool | None


@dataclass(frozen=True, kw_only=True, config=EXACT)
class GroupLag:
    """One group over all its partitions. Sums include the partitions whose offsets are known; ``unknown`` counts the others with a commit.

    ``lag_ms``: the largest known lag in milliseconds, found by ``lag_ms_method``; if ``lag_ms_is_bound``, the true lag may be larger.
    ``time_to_loss_ms``: the smallest of its partitions. ``statuses``: the number of partitions with each status, worst first.
    """

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
    lag_ms: int | None = None
    lag_ms_method: str | None = None
    lag_ms_is_bound: bool = False
    time_to_loss_ms: int | None = None
    statuses: IntByName = ()
    slas: tuple[GroupSla, ...] = ()
    history: LagHistory | None = None

    @property
    def known(self) -> int:
        """Partitions with a commit whose lag could be computed."""
        return self.partitions - self.without_commit - self.unknown

    @property
    def limit_records(self) -> int | None:
        """The SLA limit to compare ``lag`` with, in records; None unless a single SLA covers every partition in the sum."""
        sla = self.slas[0] if len(self.slas) == 1 else None
        return sla.max_lag_records if sla is not None and (sla.partition_count or 0) >= self.known else None


class GroupReader:
    """Adds up batches of group partitions by group; groups of the snapshot without partitions are included."""

    def __init__(self, groups: Path) -> None:
        rows = (row for table in batches(groups, ("group_id", "group_type", "state")) for row in table.to_pylist())
        self._groups = {row["group_id"]: _group(row) for row in rows}
        self._statuses: dict[str, Counter[str]] = {}

    def read(self, table: pa.Table) -> None:
        """Add one batch; a partition without a status counts as not assessed."""
        for row in _per_group(table):
            words = {"group_id": row["group_id"], "group_type": row["group_type_max"], "state": row["state_max"]}
            self._groups[row["group_id"]] = _added(self._groups.get(row["group_id"]) or _group(words), row)
        counts = table.group_by(["group_id", "status"]).aggregate([([], "count_all")])
        for row in counts.to_pylist():
            self._statuses.setdefault(row["group_id"], Counter())[row["status"] or "NOT_ASSESSED"] += row["count_all"]

    def worst_first(self, slas: Mapping[str, tuple[GroupSla, ...]]) -> list[GroupLag]:
        """All groups with their statuses and SLAs, worst first."""
        made = [
            replace(group, statuses=_ordered(self._statuses.get(group_id)), slas=slas.get(group_id, ()))
            for group_id, group in self._groups.items()
        ]
        return sorted(made, key=_badness)


def _group(row: Mapping[str, Any]) -> GroupLag:
    return GroupLag(group_id=str(row["group_id"]), group_type=row["group_type"] or "unknown", state=row["state"] or "not known")


def _per_group(table: pa.Table) -> list[dict[str, Any]]:
    """One dict per group of the table: its text columns, number of rows, counts, sums and extremes."""
    # has_commit is NULL if the commit could not be read: the lag is then unknown, and the partition is not "without a commit".
    without = pc.equal(pc.fill_null(table["has_commit"], True), False)
    unknown = pc.and_(pc.is_null(table["lag"]), pc.invert(without))
    no_time = pc.and_(pc.is_null(table["lag_ms"]), pc.or_(unknown, positive(table, "lag")))
    unbounded = pc.or_(no_time, pc.fill_null(table["lag_ms_is_bound"], False))
    for name, flag in (("without", without), ("unknown", unknown), ("unbounded", unbounded)):
        table = table.append_column(name, pc.cast(flag, pa.int64()))
    foreseen = pc.if_else(loses(table), table["time_to_loss_ms"], None)
    table = table.set_column(table.column_names.index("time_to_loss_ms"), "time_to_loss_ms", foreseen)
    longest_first = table.sort_by([("lag_ms", "descending")])
    rows: list[dict[str, Any]] = longest_first.group_by("group_id", use_threads=False).aggregate(_AGGREGATES).to_pylist()
    return rows


def _added(group: GroupLag, row: Mapping[str, Any]) -> GroupLag:
    longer = row["lag_ms_first"] is not None and (group.lag_ms is None or row["lag_ms_first"] > group.lag_ms)
    times = [time for time in (group.time_to_loss_ms, row["time_to_loss_ms_min"]) if time is not None]
    return replace(
        group,
        partitions=group.partitions + row["count_all"],
        without_commit=group.without_commit + row["without_sum"],
        unknown=group.unknown + row["unknown_sum"],
        lag=group.lag + (row["lag_sum"] or 0),
        lag_max=max(group.lag_max, row["lag_max"] or 0),
        lost=group.lost + (row["lost_sum"] or 0),
        beyond_end=group.beyond_end + (row["beyond_end_sum"] or 0),
        lag_ms=row["lag_ms_first"] if longer else group.lag_ms,
        lag_ms_method=row["lag_ms_method_first"] if longer else group.lag_ms_method,
        lag_ms_is_bound=group.lag_ms_is_bound or row["unbounded_sum"] > 0,
        time_to_loss_ms=min(times, default=None),
    )


def _rank(status: str) -> int:
    """The position of a status in the order, 0 for the worst; an unknown word comes last."""
    return STATUSES.index(status) if status in STATUSES else len(STATUSES)


def _ordered(counts: Counter[str] | None) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda one: (_rank(one[0]), one[0]))) if counts else ()


def _badness(group: GroupLag) -> tuple[float | str, ...]:
    """The key that sorts groups worst first: loss, commits beyond the log end, time to loss, status, broken SLAs, lag."""
    soonest = inf if group.time_to_loss_ms is None else group.time_to_loss_ms
    status = min((_rank(status) for status, _ in group.statuses), default=len(STATUSES))
    broken = sum(sla.target_met is False for sla in group.slas)
    return (-group.lost, -group.beyond_end, soonest, status, -broken, -group.lag, group.group_id)


def read_group_slas(path: Path, findings: Path) -> dict[str, tuple[GroupSla, ...]]:
    """Read the SLAs of each group, sorted by name, from ``group_slas.parquet``; a group that no SLA covers is absent.

    ``findings``: the findings of the same part, which say whether a target was met. IntegrityError if a file is broken.
    """
    judged = _statuses_of_targets(findings)
    found: dict[str, list[GroupSla]] = {}
    for table in batches(path, _COLUMNS, pc.field("policy", "sla").is_valid()):
        for row in table.to_pylist():
            policy = row.pop("policy")
            sla = row | {name: policy[name] for name in _OF_POLICY}
            found.setdefault(row["group_id"], []).append(GroupSla(**sla, target_met=_target_met(sla, judged.get(row["resource"]))))
    return {group_id: tuple(sorted(slas, key=lambda one: one.sla)) for group_id, slas in found.items()}


def _statuses_of_targets(findings: Path) -> dict[str, str]:
    """The status of each resource of the control that judges targets."""
    if not exists(findings):
        return {}
    of_control = pc.field("control_id") == _JUDGES_TARGETS
    return {
        row["resource"]: row["status"]
        for table in batches(findings, ("control_id", "resource", "status"), of_control)
        for row in table.to_pylist()
    }


def _target_met(sla: Mapping[str, Any], status: str | None) -> bool | None:
    if status is not None and sla["target_percent"] is not None:
        return {Status.PASS.value: True, Status.FAIL.value: False}.get(status)
    minutes = (sla["minutes_in"], sla["minutes_out"], sla["minutes_not_assessed"])
    if sla["target_percent"] is None or None in minutes:
        return None
    if sla["budget_left_minutes"] is not None and sla["budget_left_minutes"] < 0:
        return False
    if sla["availability_percent"] is None or sum(minutes[:2]) < _LEAST_KNOWN * sum(minutes):
        return None
    return bool(sla["availability_percent"] >= sla["target_percent"])
