"""What changed since the previous sealed audit of the same cluster, and how the audits that are kept developed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from pydantic import Field


class Change(str, Enum):
    """How a failure compares with the previous audit. INCOMPARABLE: one of the two audits could not see, or judged by other rules."""

    NEW = "new"
    WORSE = "worse"
    UNCHANGED = "unchanged"
    RESOLVED = "resolved"
    INCOMPARABLE = "incomparable"


@dataclass(frozen=True, kw_only=True)
class ChangedFinding:
    """One control on one resource that fails in at least one of the two audits; ``before`` is of the previous audit.

    None: not known, or the control did not fail there. ``why``: what makes it incomparable, or worse.
    """

    change: Change
    control_id: str
    code: str
    title: str
    subject: str
    resource: str
    severity: str | None
    severity_before: str | None
    observed: str | None
    observed_before: str | None
    why: str | None = None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The previous sealed audit and what changed since.

    ``counts`` counts all results by change; ``listed`` are the first of each change, worst severity first. ``notes`` say what differs
    between the two audits (policy, catalogue, scope), in sentences. ``not_shown_old``: the failures of this audit that are new, worse or
    incomparable. ``possible``: False if the previous audit is gone or was changed, so that nothing was compared; then there are no counts,
    and the time of the previous audit is empty. ``previous_verdict`` is UNKNOWN if it cannot be read.
    """

    previous_audit_id: str
    previous_started_at: str
    previous_verdict: str
    counts: Mapping[str, int]
    listed: tuple[ChangedFinding, ...] = ()
    notes: tuple[str, ...] = ()
    changes: Annotated[Mapping[tuple[str, str], Change], Field(exclude=True)] = field(default_factory=dict)
    """(control_id, resource) of the findings that the report lists, with their change; in JSON each of them has its own."""

    not_shown_old: int = 0
    possible: bool = True

    def change_of(self, control_id: str, resource: str) -> Change | None:
        """How a listed failure compares with the previous audit; None if that is not known."""
        return self.changes.get((control_id, resource))


@dataclass(frozen=True, kw_only=True)
class TrendPoint:
    """One sealed audit of the cluster: failures by severity, coverage (0 to 1, None if nothing applied), lost records, and availability.

    ``started_at``: ISO time. ``availability_percent``: the lowest of all groups with an SLA; None if none was measured. ``lost_records``:
    None if lag was not read.
    """

    audit_id: str
    started_at: str
    verdict: str
    failed_by_severity: Mapping[str, int]
    coverage: float | None
    lost_records: int | None
    availability_percent: float | None
