"""The overview of one audit, ``index/overview.json``: all that is shown of it among other audits. Its size does not grow with the cluster.

It is read from files that others may have written, so every field has a type and a limit, and a file that breaks one is not used.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from kafka_audit.audit.outcome import INDEX
from kafka_audit.audit.published import SCOPE
from kafka_audit.index.figures import LONG, Count, Milliseconds, SeverityWord, VerdictWord
from kafka_audit.report.comparison import Change, ChangedFinding, TrendPoint
from kafka_audit.report.fleet.states import STATES

OVERVIEW = f"{INDEX}/overview.json"
GROUPS = f"{INDEX}/groups.parquet"
FAILURES = f"{INDEX}/failures.parquet"

SCHEMA_VERSION: Literal[1] = 1
LISTED = 50
"""The largest number of losses, and of changes of each kind, in an overview."""
REMEMBERED = 100
"""The largest number of audits whose standing of each control is remembered, this one included."""
WAIVERS = 500
REASONS = 20

LETTERS: Mapping[str, str] = {state.id: "p" if state.letter == "P*" else state.letter for state in STATES}
"""How a control stood in an audit, as one letter: those of the fleet report; a pass in part is ``p``."""
UNKNOWN_LETTER = LETTERS["unknown"]


def _plausible(points: tuple[TrendPoint, ...]) -> tuple[TrendPoint, ...]:
    """The points; ValueError if a figure is none that an audit can have: nothing could be drawn of it."""
    for one in points:
        shares = ((one.coverage, 1), (one.availability_percent, 100))
        if any(share is not None and not 0 <= share <= most for share, most in shares):
            raise ValueError("a share is not between 0 and all")
        if any(not 0 <= count <= LONG for count in (one.failed_by_severity or {}).values()):
            raise ValueError("a number of results cannot be one")
    return points


CONTROLS = 2_000
"""The largest number of controls of an overview: the page of controls by clusters has a row for each."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True, allow_inf_nan=False)


class Failed(_Part):
    """Failures of one severity: controls, results, and how many of the results are waived."""

    controls: Count
    results: Count
    waived: Count


class Statuses(_Part):
    """The number of results in each status, over all controls."""

    passed: Count
    failed: Count
    errored: Count
    not_assessed: Count
    not_applicable: Count


class LossTotals(_Part):
    """Loss over all group partitions of which it is known. ``records``: None where it is 0 only because not everything is known."""

    records: Count | None
    partitions: Count
    groups: Count
    within_a_day: Count | None
    """Partitions that lose unread records within a day, at the rates seen; None as for ``records``."""
    unknown: Count = 0
    """Partitions of which it is not known whether records were lost."""
    rates_unknown: Count = 0
    """Partitions with unread records whose rates are not known, so that no loss can be foreseen there."""


class Loss(_Part):
    """A group partition that lost records, or will; ``time_to_loss_ms`` is None where no loss is foreseen."""

    group_id: str
    topic: str
    partition: Count
    status: str | None
    lag: Count | None
    lost: Count | None
    time_to_loss_ms: Milliseconds | None
    time_to_loss_by: str | None


class Budget(_Part):
    """The SLA whose error budget is used up most: minutes of its window. ``target_met`` is what CON-14 says; None: not known."""

    group_id: str
    sla: str
    target_percent: float
    window_days: Count | None
    availability_percent: float | None
    allowed_minutes: float
    used_minutes: float
    left_minutes: float
    target_met: bool | None

    @property
    def used_share(self) -> float | None:
        """The used part of the budget, above 1 if it is overspent; None if nothing is allowed."""
        return self.used_minutes / self.allowed_minutes if self.allowed_minutes else None


class Burn(_Part):
    """An error budget that is used up too fast: its rate is at least ``threshold`` over a long and a short window that end with the audit.

    ``burn`` is the rate over the long window (1: all of the budget by the end of the SLA's window); None: it burned in an earlier audit,
    and whether it does now is not known. Only windows of which at least 90 % is known count (kafka_audit.policy.burn_rates).
    """

    group_id: str
    sla: str
    target_percent: float
    window_hours: Annotated[float, Field(gt=0)]
    short_window_hours: Annotated[float, Field(gt=0)]
    burn: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None
    threshold: Annotated[float, Field(gt=0)]


class GroupCounts(_Part):
    """How many groups the audit saw, by the worst status of their partitions and by state."""

    total: Count
    by_status: Annotated[dict[str, Count], Field(max_length=100)]
    by_state: dict[str, Count]


class Changes(_Part):
    """The comparison with the previous audit: counts by change, and the first of each change. ``compared_with`` is None: no comparison."""

    compared_with: str | None
    compared_with_at: str
    counts: dict[str, Count]
    listed: Annotated[tuple[ChangedFinding, ...], Field(max_length=len(Change) * LISTED)]
    notes: Annotated[tuple[str, ...], Field(max_length=REASONS)]


class WaiverLine(_Part):
    """One waiver of the policy, as the audit found it; ``status``: used, unused, expired or not yet approved; times are ISO text."""

    id: str
    control: str
    resource: str
    owner: str
    approver: str
    ticket: str
    justification: str
    approved_on: str
    expires: str
    status: str
    covered: Count


class SilentBroker(_Part):
    """A broker that is not alive or did not answer."""

    broker_id: int
    host: str | None
    port: int | None
    rack: str | None
    alive: bool | None


class FailsSince(_Part):
    """The first audit of those, up to this one, in which the control failed whenever it was assessed.

    ``earlier``: that is as far as is known, and it may have failed before.
    """

    audit_id: str
    started_at: str
    earlier: bool


class ControlLine(_Part):
    """One control of the audit's catalogue: how it stands, its counts (None: it did not run), and how it stood in the remembered audits.

    ``severity`` is the catalogue's, ``worst`` that of its worst failure. ``history``: a letter of LETTERS for each audit in ``past``;
    an audit of a part of the cluster shows only what fails.
    """

    control_id: str
    code: str
    title: str
    subject: str
    severity: SeverityWord
    evidence_class: str
    standing: str
    statuses: Statuses | None
    waived: Count
    worst: SeverityWord | None
    fails_since: FailsSince | None
    history: Annotated[str, Field(max_length=REMEMBERED)]


class PastAudit(_Part):
    """One of the audits whose standings are remembered."""

    audit_id: str
    started_at: str
    verdict: VerdictWord


class Overview(_Part):
    """All that is shown of an audit among others. Figures are None where they are not known, as all are of a void audit; never 0.

    ``past``: the remembered audits, oldest first, this one last. ``trend``: as in the report. ``sample``: made up, for trying the pages.
    ``judged_less``: the parameters by which the run judged less than one with the defaults (kafka_audit.audit.published.judged_less).
    ``targets_missed``: None where it is 0 only because not every target was judged.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    kind: Literal["overview"] = "overview"
    sample: bool = False
    judged_less: tuple[str, ...] = ()
    audit_id: str
    cluster: str
    cluster_id: str | None
    dag_id: str
    run_id: str
    snapshot_id: str
    started_at: str
    evidence_at: str | None
    generated_at: str
    verdict: VerdictWord
    exit_code: Count
    summary: str
    reasons: Annotated[tuple[str, ...], Field(max_length=REASONS)]
    reason_count: Count
    assessed: Count | None
    applicable: Count | None
    failed: dict[SeverityWord, Failed] | None
    statuses: Statuses | None
    loss: LossTotals | None
    budget: Budget | None
    burns: Annotated[tuple[Burn, ...], Field(max_length=LISTED)] = ()
    """Error budgets that are used up too fast, worst first; those of a void audit are the ones before, not known any more."""
    targets: Count | None
    targets_missed: Count | None
    trend: Annotated[tuple[TrendPoint, ...], Field(max_length=REMEMBERED), AfterValidator(_plausible)]
    changes: Changes | None
    groups: GroupCounts | None
    next_losses: Annotated[tuple[Loss, ...], Field(max_length=LISTED)]
    happened_losses: Annotated[tuple[Loss, ...], Field(max_length=LISTED)]
    waivers: Annotated[tuple[WaiverLine, ...], Field(max_length=WAIVERS)]
    waiver_count: Count
    brokers: Count | None
    silent_brokers: Annotated[tuple[SilentBroker, ...], Field(max_length=LISTED)]
    collection_errors: Count
    controls: Annotated[tuple[ControlLine, ...], Field(max_length=CONTROLS)]
    past: Annotated[tuple[PastAudit, ...], Field(max_length=REMEMBERED)]
    not_written: tuple[str, ...]

    @model_validator(mode="after")
    def _missed_targets_are_targets(self) -> "Overview":
        if self.targets_missed is not None and self.targets_missed > (self.targets or 0):
            raise ValueError("there are more missed targets than targets")
        return self

    @property
    def coverage(self) -> float | None:
        """Assessed results divided by those that apply; None: not known, or nothing applies."""
        return self.assessed / self.applicable if self.assessed is not None and self.applicable else None

    @property
    def narrowed(self) -> bool:
        """Whether the audit looked at a part of the topics or groups only."""
        return any(name in SCOPE for name in self.judged_less)

    def failures(self, severity: str) -> Failed | None:
        """The failures of a severity; None if they are not known."""
        if self.failed is None:
            return None
        return self.failed.get(severity, Failed(controls=0, results=0, waived=0))
