"""What an audit says about its cluster to other DAGs: small enough for an Airflow asset event, and how a reader decides by it.

Nothing here needs the audit folder once the verdict is published, so a reader needs no right to read evidence.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from kafka_audit.audit.cluster_file import CLUSTER_PATTERN
from kafka_audit.audit.outcome import ERROR, FAILED, INCOMPLETE, PASSED, Outcome
from kafka_audit.audit.request import DAG_ID, AuditPlan, AuditRequest
from kafka_audit.errors import AuditError
from kafka_audit.findings import Severity
from kafka_audit.safe_text import visible
from kafka_audit.store.durable_files import read_json

PUBLISH_TASK = "publish"
"""The task of the audit DAG whose events count; Airflow itself records the task that an event comes from."""

AT_LEAST: Mapping[str, tuple[str, ...]] = {
    "passed": (PASSED,),
    "incomplete": (PASSED, INCOMPLETE),
    "judged": (PASSED, INCOMPLETE, FAILED),
}
"""The verdicts that each level lets through. No level lets VOID or ERROR through: these judge nothing.

``passed``: the policy is met, and enough was assessed to say so. ``incomplete``: nothing that blocks was found, but perhaps not
everything was assessed. ``judged``: the cluster was audited on fit evidence, whatever the audit found.
"""

SCOPE = ("topics", "groups")
"""The parameters that narrow an audit to a part of the cluster."""

READ_EVENTS = 20
"""The number of newest events that a reader looks at."""
CLOCKS_APART = timedelta(minutes=5)
"""How far evidence may lie in the future: clocks of two machines differ."""

_MOST_REASONS = 5
_LONGEST_REASON = 300


class PublishedVerdict(BaseModel):
    """How one audit ended, as its asset event says it; the names of the fields are those of the event's extra.

    ``evidence_at``: when the cluster was read; None if no snapshot exists. ``coverage``: assessed / applicable, None if not known.
    ``failed_by_severity``: number of failing results; None if there is no report. ``sequence`` and ``manifest_sha256``: the audit's seal,
    None if it is not sealed. ``unlike_default``: parameters by which this run judged less than a run with the installation's defaults, or
    by another policy: such an audit says nothing about the whole cluster.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    kind: Literal["kafka-audit-verdict"] = "kafka-audit-verdict"
    cluster: Annotated[str, Field(pattern=CLUSTER_PATTERN)]
    audit_id: Annotated[str, Field(pattern=r"^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{16}$")]
    verdict: Literal["PASSED", "FAILED", "INCOMPLETE", "VOID", "ERROR"]
    exit_code: Annotated[int, Field(ge=0, le=255)]
    started_at: AwareDatetime
    evidence_at: AwareDatetime | None
    coverage: Annotated[float, Field(ge=0, le=1)] | None
    failed_by_severity: dict[str, int] | None
    reasons: tuple[str, ...]
    sequence: int | None
    manifest_sha256: str | None
    unlike_default: tuple[str, ...]

    @model_validator(mode="after")
    def _only_a_pass_ends_with_0(self) -> "PublishedVerdict":
        if (self.verdict == PASSED) != (self.exit_code == 0):
            raise ValueError(f"verdict {self.verdict} and exit code {self.exit_code} contradict each other")
        return self


@dataclass(frozen=True, kw_only=True)
class Event:
    """One event of an audit's asset: what it says, and the task that Airflow recorded as its source (None: a person or another program)."""

    extra: Mapping[str, Any] | None
    dag_id: str | None
    task_id: str | None
    run_id: str | None


@dataclass(frozen=True, kw_only=True)
class Newest:
    """The newest audit that counts, the DAG and run that made it, and why newer events do not count."""

    verdict: PublishedVerdict | None
    dag_id: str = ""
    run_id: str = ""
    passed_over: tuple[str, ...] = ()


def publish(plan: AuditPlan, outcome: Outcome, seal: Mapping[str, Any]) -> PublishedVerdict:
    """What the audit of ``plan`` says; figures come from its report and are None where there is none.

    ``seal``: the fields of :class:`~kafka_audit.store.chain_state.Seal`; empty if the audit is not sealed.
    """
    report = _report_of(plan)
    coverage, totals = report.get("coverage"), report.get("totals")
    failed = totals.get("failed_by_severity") if isinstance(totals, dict) else None
    return PublishedVerdict(
        cluster=plan.cluster,
        audit_id=plan.audit_id,
        verdict=outcome.verdict,  # type: ignore[arg-type]  # pydantic checks it
        exit_code=outcome.exit_code,
        started_at=plan.audit.run()["started_at"],
        evidence_at=_evidence_at(plan),
        coverage=coverage.get("ratio") if isinstance(coverage, dict) else None,
        failed_by_severity={name: at["results"] for name, at in failed.items()} if isinstance(failed, dict) else None,
        reasons=tuple(_short(reason) for reason in outcome.reasons[:_MOST_REASONS]),
        sequence=seal.get("sequence"),
        manifest_sha256=seal.get("manifest_sha256"),
        unlike_default=unlike_default(plan),
    )


def broken(problem: AuditError) -> Outcome:
    """The outcome of an audit whose own files cannot be read or were changed."""
    return Outcome(verdict=ERROR, exit_code=problem.exit_code, reasons=(str(problem),))


def unlike_default(request: AuditRequest) -> tuple[str, ...]:
    """The parameters by which a run judges less than one with the defaults, or by other rules."""
    own = AuditRequest()
    other_rules = [name for name in ("policy_dir", "controls_dirs") if getattr(request, name) != getattr(own, name)]
    return (*judged_less(request.model_dump()), *other_rules)


def judged_less(params: Mapping[str, Any]) -> tuple[str, ...]:
    """The parameters, of those in a run.json, by which a run judges less than one with the defaults; whatever rules it judges by.

    A word that is no severity, or a number that is none, counts as judging less.
    """
    own = {name: field.default for name, field in AuditRequest.model_fields.items()}
    asked = {**own, **params}
    differs = {name: asked[name] != own[name] for name in SCOPE}
    try:
        differs["fail_on"] = not Severity(own["fail_on"]).at_least(Severity(asked["fail_on"]))
    except ValueError:
        differs["fail_on"] = True
    differs["fail_on_new"] = bool(asked["fail_on_new"])
    for name, looser in (("min_coverage", -1), ("max_age_seconds", 1)):
        known = isinstance(asked[name], int | float)
        differs[name] = not known or looser * (asked[name] - own[name]) > 0
    return tuple(name for name, is_so in differs.items() if is_so)


def newest_audit(events: Sequence[Event], cluster: str) -> Newest:
    """The audit that began last among ``events`` (newest event first) and that judged the whole cluster by the installation's rules.

    Not the newest event: clearing an old run publishes its old verdict once more. Events of anything but the audit DAG's own task do not
    count, whatever they say: whoever may create asset events can write any text into them.
    """
    found: list[tuple[PublishedVerdict, Event]] = []
    over: list[str] = []
    for event in events:
        said = _read(event, cluster)
        if isinstance(said, str):
            over.append(said)
        elif said.unlike_default:
            others = ", ".join(map(_short, said.unlike_default))
            over.append(f"audit {said.audit_id} ({said.verdict}) was run with other parameters: {others}")
        else:
            found.append((said, event))
    if not found:
        return Newest(verdict=None, passed_over=tuple(over))
    # max keeps the first of equals: of an audit whose run was cleared, the newest event counts.
    verdict, event = max(found, key=lambda one: one[0].started_at)
    return Newest(verdict=verdict, dag_id=str(event.dag_id), run_id=str(event.run_id), passed_over=tuple(over))


def why_stopped(newest: Newest, *, at_least: str, max_age: timedelta, now: datetime) -> str | None:
    """Why a reader that asks for ``at_least`` must not go on, in one sentence; None if it may."""
    found = newest.verdict
    if found is None:
        nothing = f"none of the {READ_EVENTS} newest events tells of an audit that counts"
        return nothing if newest.passed_over else "no audit has been published"
    if found.verdict not in AT_LEAST[at_least]:
        return f"it ended {found.verdict} (exit code {found.exit_code})"
    if found.evidence_at is None:
        return "it does not say when the cluster was read"
    age = now - found.evidence_at
    if age < -CLOCKS_APART:
        return f"its evidence is of {found.evidence_at.isoformat()}, which is in the future"
    if age > max_age:
        return f"its evidence is of {found.evidence_at.isoformat()}, which is {age} ago, longer than {max_age}"
    return None


def _read(event: Event, cluster: str) -> PublishedVerdict | str:
    """The verdict that the event carries, or why it counts as none."""
    if event.task_id is None or event.dag_id is None:
        return "an event was created by hand or by another program, not by a run of the audit"
    if event.dag_id not in (DAG_ID, f"{DAG_ID}__{cluster}") or event.task_id != PUBLISH_TASK:
        return f"an event is of the task {_short(event.task_id)} of the DAG {_short(event.dag_id)}, which is not an audit of {cluster}"
    try:
        said = PublishedVerdict.model_validate(event.extra or {})
    except ValidationError as problem:
        wrong = sorted({".".join(map(str, one["loc"])) or "the whole" for one in problem.errors(include_url=False)})
        return f"an event of run {_short(str(event.run_id))} is not a verdict ({', '.join(map(_short, wrong[:_MOST_REASONS]))})"
    if said.cluster != cluster:
        return f"an event is about the cluster {said.cluster}"
    return said


def _report_of(plan: AuditPlan) -> Mapping[str, Any]:
    file = plan.audit.report / "report.json"
    try:
        return read_json(file) if file.is_file() else {}
    except AuditError:
        return {}  # the outcome says so


def _evidence_at(plan: AuditPlan) -> datetime | None:
    try:
        found = plan.snapshot
        return datetime.fromisoformat(str(found.manifest["started_at"])) if found else None
    except (AuditError, KeyError, ValueError):
        return None  # a verdict without it lets nobody through


def _short(text: str) -> str:
    """The text in one line without invisible characters, cut at 300 characters."""
    shown = visible(re.sub(r"\s+", " ", text))
    return shown if len(shown) <= _LONGEST_REASON else f"{shown[:_LONGEST_REASON]}..."
