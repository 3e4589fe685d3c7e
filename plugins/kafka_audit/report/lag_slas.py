"""Reads each group's lag SLAs: the limits, and how much of the window the group was within them."""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

from kafka_audit.report.rows import batches

_LEAST_KNOWN = 0.5


@dataclass(frozen=True, kw_only=True)
class GroupSla:
    """One SLA of a group, over the partitions that it covers: limits, lag in records, and window. None: not known or not demanded.

    ``availability_percent``: the share of the judged minutes that were within the limits; quiet minutes and minutes that were not
    assessed are not judged.
    """

    resource: str
    group_id: str
    sla: str
    max_lag_records: int | None
    max_lag_ms: int | None
    max_no_progress_ms: int | None
    breach_samples: int | None
    breach_of: int | None
    target_percent: float | None
    window_days: int | None
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

    @property
    def target_met(self) -> bool | None:
        """Whether the target is met: False if known minutes overspend the budget; None without a target or with less than half known."""
        minutes = (self.minutes_in, self.minutes_out, self.minutes_not_assessed)
        if self.target_percent is None or None in minutes:
            return None
        if self.budget_left_minutes is not None and self.budget_left_minutes < 0:
            return False
        inside, outside, unknown = (minute or 0 for minute in minutes)
        if self.availability_percent is None or inside + outside < _LEAST_KNOWN * (inside + outside + unknown):
            return None
        return self.availability_percent >= self.target_percent


_OF_POLICY = (
    *("sla", "max_lag_records", "max_lag_ms", "max_no_progress_ms", "breach_samples", "breach_of"),
    *("target_percent", "window_days"),
)
_COLUMNS = ("policy", *(one.name for one in fields(GroupSla) if one.name not in _OF_POLICY))


def read_group_slas(path: Path) -> dict[str, tuple[GroupSla, ...]]:
    """Read the SLAs of each group, sorted by name, from ``group_slas.parquet``; a group that no SLA covers is absent.

    IntegrityError if the file is broken.
    """
    found: dict[str, list[GroupSla]] = {}
    for table in batches(path, _COLUMNS, pc.field("policy", "sla").is_valid()):
        for row in table.to_pylist():
            policy: dict[str, Any] = row.pop("policy")
            sla = GroupSla(**row, **{name: policy[name] for name in _OF_POLICY})
            found.setdefault(sla.group_id, []).append(sla)
    return {group_id: tuple(sorted(slas, key=lambda one: one.sla)) for group_id, slas in found.items()}
