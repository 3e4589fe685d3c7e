"""The report as data, read from one audit's folder and its snapshot: every output format is written from this."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kafka_audit.evidence import Audit, Snapshot
from kafka_audit.findings import Severity
from kafka_audit.report.collection import Collection, FileHash, audit_files, read_collection
from kafka_audit.report.gates import Gate, Outcome, judge, read_gate
from kafka_audit.report.lag import LagTables, read_lag
from kafka_audit.report.results import ControlResult, Counts, FindingReader, Reason, control_results, read_summary, total, worst_first
from kafka_audit.report.rows import exists

if TYPE_CHECKING:
    from kafka_audit.catalogue import Catalogue
    from kafka_audit.policy import Policy

LIMIT = 200
"""How many findings of one control and status are listed; counts are always of all."""

_STEPS = (("settings", "verify_settings", "topics, partitions, brokers and the cluster"), ("lag", "verify_lag", "consumer groups"))


@dataclass(frozen=True, kw_only=True)
class Judged:
    """What the audit was judged against: hashes of catalogue and policy, and the policy's demands in words."""

    catalogue_sha256: str
    policy_sha256: str
    default_tier: str
    tiers: tuple[tuple[str, int, int, int], ...]
    topic_rules: tuple[tuple[str, str], ...]
    slas: tuple[tuple[str, str, int], ...]
    declared_topics: tuple[str, ...]
    declared_groups: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Report:
    """Everything a report says. ``limit`` is how many findings per control and status were read at most."""

    audit_id: str
    cluster: str
    started_at: str
    generated_at: datetime
    params: tuple[tuple[str, Any], ...]
    outcome: Outcome
    gates: tuple[Gate, Gate]
    judged: Judged
    collection: Collection
    results: tuple[ControlResult, ...]
    reasons: tuple[Reason, ...]
    lag: LagTables
    missing: tuple[str, ...]
    audit_files: tuple[FileHash, ...]
    limit: int

    @property
    def counts(self) -> Counts:
        """All controls' counts together."""
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
        """Controls without a single pass or failure: they say nothing of this cluster."""
        return tuple(result for result in self.results if not result.counted.assessed)

    def by_severity(self) -> list[tuple[str, list[ControlResult], int]]:
        """For each severity, worst first: its name, its failing controls and their failures."""
        failing = self.failing
        rows = [(one.value, [result for result in failing if result.severity == one.value]) for one in Severity]
        return [(name, results, sum(result.counted.failed for result in results)) for name, results in rows]


def _judged(catalogue: "Catalogue", policy: "Policy") -> Judged:
    return Judged(
        catalogue_sha256=catalogue.sha256,
        policy_sha256=policy.sha256,
        default_tier=policy.default_tier,
        tiers=tuple(
            (name, tier.replication_factor, tier.min_insync_replicas, tier.retention_ms) for name, tier in sorted(policy.tiers.items())
        ),
        topic_rules=tuple((rule.pattern, rule.tier) for rule in policy.topics),
        slas=tuple((sla.pattern, sla.name, sla.max_lag_records) for sla in policy.slas),
        declared_topics=tuple(policy.declared_topics),
        declared_groups=tuple(policy.declared_groups),
    )


def read_report(
    audit: Audit, snapshot: Snapshot, catalogue: "Catalogue", policy: "Policy", *, generated_at: datetime, limit: int = LIMIT
) -> Report:
    """Read the report of one audit.

    Results of a step that did not run are left out and named in ``missing``; then the verdict is never PASSED.
    Files that are there but broken raise IntegrityError (exit 5).
    """
    run = audit.run()
    findings = FindingReader(limit)
    summaries: dict[str, dict[str, Any]] = {}
    missing: list[str] = []
    for folder, job, about in _STEPS:
        step = audit.path / folder
        summary, found = step / "summary.parquet", step / "findings.parquet"
        if exists(summary) and exists(found):
            summaries.update(read_summary(summary))
            findings.read(found)
        else:
            missing.append(f"{job} left no results: nothing was judged about {about}.")
    evidence_gate, findings_gate = (read_gate(audit.gate, name, snapshot) for name in ("evidence", "findings"))
    params: Mapping[str, Any] = run["params"] if isinstance(run.get("params"), Mapping) else {}
    return Report(
        audit_id=str(run.get("audit_id", audit.path.name)),
        cluster=str(run.get("cluster") or snapshot.manifest.get("cluster") or ""),
        started_at=str(run.get("started_at") or ""),
        generated_at=generated_at,
        params=tuple(sorted(params.items())),
        outcome=judge(evidence_gate, findings_gate, missing),
        gates=(evidence_gate, findings_gate),
        judged=_judged(catalogue, policy),
        collection=read_collection(snapshot),
        results=control_results(catalogue, summaries, findings),
        reasons=findings.reasons(),
        lag=read_lag(audit.lag / "group_partitions.parquet", snapshot.dataset("groups")),
        missing=tuple(missing),
        audit_files=audit_files(audit.path),
        limit=limit,
    )
