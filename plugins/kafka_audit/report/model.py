"""Reads one audit's folder and its snapshot into a Report, from which every output format is written."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field, SkipValidation, ValidationError, computed_field
from pydantic.dataclasses import dataclass

from kafka_audit.audit.formats import NotWritten
from kafka_audit.audit.gate_result import GateResult, read_gate
from kafka_audit.audit.outcome import VOID, Outcome, judge
from kafka_audit.catalogue.rows import LAG, SETTINGS
from kafka_audit.errors import IntegrityError
from kafka_audit.findings import EvidenceClass, Severity, Status
from kafka_audit.policy import Policy
from kafka_audit.policy.waivers import began, in_force
from kafka_audit.report import words
from kafka_audit.report.changes import read_comparison
from kafka_audit.report.commit_history import CommitHistory, read_commit_history
from kafka_audit.report.comparison import Change, Comparison, TrendPoint
from kafka_audit.report.control_results import FindingReader, control_results, read_summary
from kafka_audit.report.frameworks import FrameworkResult, assess
from kafka_audit.report.frozen import EXACT, IN_JSON_ELSEWHERE, KnownText
from kafka_audit.report.lag import LagTables, read_lag
from kafka_audit.report.results import AtSeverity, ControlResult, Counts, Finding, ListedFinding, total, worst_first
from kafka_audit.report.rows import exists
from kafka_audit.report.snapshot_view import Collection, HashedFile, UsedHistory, audit_files, read_collection, read_used_history
from kafka_audit.report.tally import (
    AssessedShare,
    AttestationUse,
    Kind,
    Loosened,
    ResultsByTier,
    WaiverTable,
    attestation_table,
    by_tier,
    loosened_results,
    read_tally,
    waiver_table,
)
from kafka_audit.report.totals import FailedAt, Moment, Reasons, Tool, Totals
from kafka_audit.report.trend import asked_in, read_trend
from kafka_audit.store.layout import Audit, Snapshot

if TYPE_CHECKING:
    from kafka_audit.catalogue.load import Catalogue

LIMIT = 200
"""The largest number of findings that are listed per control and status; counts include all findings."""

_PARTS = ((SETTINGS, "topics, partitions, brokers and the cluster"), (LAG, "consumer groups"))

SCHEMA_VERSION: Literal[1] = 1
"""The version of the form of ``report.json``, which ``report.schema.json`` defines."""


@dataclass(frozen=True, kw_only=True, config=EXACT)
class Report:
    """The content of a report, from which every format is written; ``report.json`` is its own JSON.

    ``comparison`` is None if no earlier audit of the cluster is sealed. ``trend``: the sealed audits that are kept, oldest first, this
    one last. ``reasons``: why results are missing; ``set_aside``: why results do not apply. ``missing``: steps without results.
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    kind: Literal["report"] = "report"
    tool: Tool = Tool()
    audit_id: str
    cluster: str
    started_at: KnownText
    generated_at: Moment
    params: Annotated[tuple[tuple[str, Any], ...], SkipValidation, IN_JSON_ELSEWHERE]
    outcome: Annotated[Outcome, IN_JSON_ELSEWHERE]
    gates: tuple[GateResult, GateResult]
    catalogue_sha256: str
    rule_set_sha256: str
    """The hash of the rules of all controls; ``catalogue_sha256`` also covers their texts and examples."""
    policy: Annotated[Policy, SkipValidation, IN_JSON_ELSEWHERE]
    collection: Collection
    results: Annotated[tuple[ControlResult, ...], Field(serialization_alias="controls")]
    reasons: Annotated[Reasons, Field(serialization_alias="unassessed")]
    set_aside: Reasons
    tiers: ResultsByTier
    loosened: tuple[Loosened, ...]
    waivers: WaiverTable
    attestations: tuple[AttestationUse, ...]
    frameworks: tuple[FrameworkResult, ...]
    history: tuple[UsedHistory, ...]
    lag: LagTables
    commit_history: CommitHistory
    missing: tuple[str, ...]
    audit_files: tuple[HashedFile, ...]
    limit: Annotated[int, Field(serialization_alias="findings_per_control_and_status")]
    """The largest number of findings that were read per control and status; counts include all findings."""
    comparison: Comparison | None = None
    trend: tuple[TrendPoint, ...] = ()
    not_written: tuple[NotWritten, ...] = ()
    """The formats that were asked for when the audit was sealed, and could not be written, each with the reason."""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def verdict(self) -> str:
        """PASSED, FAILED, INCOMPLETE or VOID."""
        return self.outcome.verdict

    @computed_field  # type: ignore[prop-decorator]
    @property
    def exit_code(self) -> int:
        """What the audit's command ends with."""
        return self.outcome.exit_code

    @computed_field(alias="reasons")  # type: ignore[prop-decorator]
    @property
    def reasons_for_verdict(self) -> tuple[str, ...]:
        """Why the verdict is what it is, in sentences."""
        return self.outcome.reasons

    @computed_field  # type: ignore[prop-decorator]
    @property
    def summary(self) -> str:
        """One sentence with the verdict and the reason for it."""
        return words.summary(self)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def policy_sha256(self) -> str:
        """The sha256 over the policy's files."""
        return self.policy.sha256

    @computed_field  # type: ignore[prop-decorator]
    @property
    def coverage(self) -> AssessedShare:
        """How much of what applies was assessed, over all controls."""
        return self.counts.coverage

    @computed_field  # type: ignore[prop-decorator]
    @property
    def totals(self) -> Totals:
        """The counts over all controls."""
        severities = {
            one.name: FailedAt(controls=len(one.failing), results=one.failed, waived=one.waived, assessed=one.assessed)
            for one in self.by_severity()
        }
        return Totals(
            **asdict(self.counts),
            controls=len(self.results),
            controls_run=sum(result.ran for result in self.results),
            controls_failing=len(self.failing),
            failed_by_severity=severities,
        )

    @computed_field  # type: ignore[prop-decorator]
    @property
    def truncated(self) -> bool:
        """Whether there are findings that the report does not list; the Parquet files have all."""
        return any(result.truncated for result in self.results)

    @computed_field  # type: ignore[prop-decorator]
    @property
    def findings(self) -> tuple[ListedFinding, ...]:
        """The findings that are listed, by control: failures first, worst first, then errors and what was not assessed."""
        return tuple(ListedFinding.of(one, self.waivers, self._change(one)) for result in self.results for one in result.listed)

    def _change(self, finding: Finding) -> Change | None:
        if self.comparison is None or finding.status != Status.FAIL.value:
            return None
        return self.comparison.change_of(finding.control_id, finding.resource)

    @property
    def counts(self) -> Counts:
        """The counts of all controls together."""
        return total(result.counted for result in self.results)

    @property
    def failing(self) -> tuple[ControlResult, ...]:
        """Controls with at least one failure, worst severity first."""
        return worst_first([result for result in self.results if result.counted.failed])

    @property
    def broken(self) -> tuple[ControlResult, ...]:
        """Controls that raised on at least one resource, worst severity first."""
        return worst_first([result for result in self.results if result.counted.errored])

    @property
    def judged_nothing(self) -> tuple[ControlResult, ...]:
        """Controls without a pass or a failure, which say nothing about this cluster."""
        return tuple(result for result in self.results if not result.counted.assessed)

    def by_severity(self) -> list[AtSeverity]:
        """The results by the severity that their tier sets, worst first."""
        return [self._at(severity.value) for severity in Severity]

    def _at(self, severity: str) -> AtSeverity:
        found = [(result, result.by_severity[severity]) for result in self.results if severity in result.by_severity]
        return AtSeverity(
            name=severity,
            controls=len(found),
            judged=sum(results.assessed > 0 for _, results in found),
            assessed=sum(results.assessed for _, results in found),
            failing=tuple(result for result in self.failing if severity in result.failing_severities),
            failed=sum(results.failed for _, results in found),
            waived=sum(results.waived for _, results in found),
        )


def read_report(
    audit: Audit, snapshot: Snapshot, catalogue: "Catalogue", policy: Policy, *, generated_at: datetime, limit: int = LIMIT
) -> Report:
    """Read the report of one audit.

    Results of a step that did not run are left out and named in ``missing``; then the verdict is never PASSED.
    Files that are there but broken raise IntegrityError (exit 5).
    """
    try:
        return _read(audit, snapshot, catalogue, policy, generated_at=generated_at, limit=limit)
    except ValidationError as problem:
        raise IntegrityError(
            f"{audit.path} or {snapshot.path} holds what no report can say ({str(problem)[:300]}): run the step that writes it again"
        ) from problem


def _read(audit: Audit, snapshot: Snapshot, catalogue: "Catalogue", policy: Policy, *, generated_at: datetime, limit: int) -> Report:
    run = audit.run()
    at = began(run)
    findings = FindingReader(limit)
    held = {waiver.id for waiver in in_force(policy.waivers, at)}
    tally: Counter[Kind] = Counter()
    unfounded: Counter[str] = Counter()
    summaries: dict[str, dict[str, Any]] = {}
    missing: list[str] = []
    for part, about in _PARTS:
        summary, found = (audit.path / part / f"{name}.parquet" for name in ("summary", "findings"))
        if exists(summary) and exists(found):
            summaries.update(read_summary(summary))
            findings.read(found)
            kinds, not_in_force = read_tally(found, held)
            tally.update(kinds)
            unfounded.update(not_in_force)
        else:
            missing.append(f"verify left no {part} results: nothing was judged about {about}.")
    evidence_gate, findings_gate = (read_gate(audit.gate, name, snapshot) for name in ("evidence", "findings"))
    params: Mapping[str, Any] = run["params"] if isinstance(run.get("params"), Mapping) else {}
    outcome = judge(evidence_gate, findings_gate, missing)
    results = control_results(catalogue, summaries, findings, tally)
    trend = read_trend(audit, snapshot, outcome.verdict, asked_in(snapshot, catalogue, policy))
    return Report(
        audit_id=str(run.get("audit_id", audit.path.name)),
        cluster=str(run.get("cluster") or snapshot.manifest.get("cluster") or ""),
        started_at=str(run.get("started_at") or ""),
        generated_at=generated_at,
        params=tuple(sorted(params.items())),
        outcome=outcome,
        gates=(evidence_gate, findings_gate),
        catalogue_sha256=catalogue.sha256,
        rule_set_sha256=catalogue.rule_set_sha256,
        policy=policy,
        collection=read_collection(snapshot),
        results=results,
        reasons=findings.reasons(),
        set_aside=findings.set_aside(),
        tiers=tuple(by_tier(tally, policy.tiers, {one.control_id for one in results if one.evidence_class == EvidenceClass.MANUAL.value})),
        loosened=loosened_results(tally),
        waivers=waiver_table(policy.waivers, tally, unfounded, at),
        attestations=attestation_table(policy.attestations, datetime.fromtimestamp(snapshot.taken_ms / 1000, timezone.utc)),
        frameworks=assess(policy.frameworks, results, void=outcome.verdict == VOID),
        history=read_used_history(audit),
        lag=read_lag(audit.lag, snapshot.dataset("groups")),
        commit_history=read_commit_history(audit.lag),
        missing=tuple(missing),
        audit_files=audit_files(audit.path),
        limit=limit,
        comparison=read_comparison(
            *(audit, snapshot, catalogue, policy),
            wanted=_failing_keys(results),
            notes=trend.gaps,
            let_through=findings_gate.let_through,
        ),
        trend=trend.points,
    )


def _failing_keys(results: Sequence[ControlResult]) -> set[tuple[str, str]]:
    """(control_id, resource) of the failures that are listed."""
    return {(finding.control_id, finding.resource) for result in results for finding in result.failures}
