"""What changed since the previous sealed audit of the same cluster, and how the audits that are kept developed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from pydantic import Field


class Change(StrEnum):
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
    and the time of the previous audit is empty. ``previous_audit_id`` is None if earlier audits are sealed and none can be compared with.
    ``previous_verdict`` is UNKNOWN if it cannot be read.
    """

    previous_audit_id: str | None
    previous_started_at: str
    previous_verdict: str
    counts: Mapping[str, int]
    listed: tuple[ChangedFinding, ...] = ()
    notes: tuple[str, ...] = ()
    changes: Annotated[Mapping[tuple[str, str], Change], Field(exclude=True)] = field(default_factory=dict)
    """(control_id, resource) of the findings that the report lists, with their change; in JSON each of them has its own."""

    not_shown_old: int = 0
    possible: bool = True

    @property
    def compared_with(self) -> str | None:
        """The audit that this one was compared with; None if nothing could be compared."""
        return self.previous_audit_id if self.possible else None

    def change_of(self, control_id: str, resource: str) -> Change | None:
        """How a listed failure compares with the previous audit; None if that is not known."""
        return self.changes.get((control_id, resource))


@dataclass(frozen=True, kw_only=True)
class TrendPoint:
    """One sealed audit of the cluster: failures by severity, coverage (0 to 1, None if nothing applied), lost records, and availability.

    ``started_at``: ISO time. All figures are None if the audit was void, and the first two if a part of it was not judged: fewer failures
    would look like better ones. ``lost_records``: over the partitions of which it is known; None if there is none.
    ``availability_percent``: the lowest that was measured; None if none was. ``asked``: hashes of what was covered and asked, by name;
    ``differs``: the names of what differs from the point before.
    """

    audit_id: str
    started_at: str
    verdict: str
    failed_by_severity: Mapping[str, int] | None
    coverage: float | None
    lost_records: int | None
    availability_percent: float | None
    asked: Mapping[str, str] = field(default_factory=dict)
    differs: tuple[str, ...] = ()

    @property
    def failed(self) -> int | None:
        """The failing results of all severities."""
        return None if self.failed_by_severity is None else sum(self.failed_by_severity.values())
