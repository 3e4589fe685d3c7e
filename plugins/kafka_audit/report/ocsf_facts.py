"""What OCSF events say beyond ids: the reasons of a result in sentences, and facts that OCSF has no attribute for."""

from typing import Any

from kafka_audit.report import words
from kafka_audit.report.comparison import Change
from kafka_audit.report.control_status import counts_of, judgement, left_out
from kafka_audit.report.inert_text import line
from kafka_audit.report.model import Report
from kafka_audit.report.results import Finding
from kafka_audit.report.tally import WaiverUse


def details_of(finding: Finding, waiver: WaiverUse | None) -> list[str]:
    """Why a result is what it is, in sentences; last the waiver, which changes the finding's state and not its verdict."""
    said = [judgement(finding)]
    if finding.loosened:
        said.append(f"Judged by a requirement that tier {finding.tier} loosened: {finding.loosened}.")
    if waiver:
        said.append(f"Waived: {words.waiver_sentence(waiver)}; {waiver.justification}")
    return said


def facts_of_finding(finding: Finding, change: Change | None) -> dict[str, str]:
    """What is known of a finding and has no attribute in OCSF; ``change``: how it compares with the previous audit."""
    names = ("status", "reason", "observed", "expected", "evidence_class", "tier", "loosened", "catalogue_severity")
    facts = {**{name: getattr(finding, name) for name in names}, "change": change.value if change else None}
    facts["sha256_of_rule"] = finding.rule_sha256
    return {name: line(value) for name, value in facts.items() if value is not None}


def facts_of_report(report: Report) -> dict[str, Any]:
    """What the verdict stands on: counts, coverage, and the hashes of snapshot, catalogue, rules and policy."""
    made = report.collection
    return {
        "audit_id": line(report.audit_id),
        "exit_code": report.outcome.exit_code,
        "cluster_alias": line(report.cluster),
        "cluster_id": line(made.cluster_id),
        "counts": counts_of(report.counts),
        "controls": {
            "known": len(report.results),
            "run": sum(one.counts is not None for one in report.results),
            "failing": len(report.failing),
        },
        "not_listed": sum(one.count for one in left_out(report)),
        "sha256_of_snapshot_manifest": line(made.manifest_sha256),
        "sha256_of_catalogue": line(report.catalogue_sha256),
        "sha256_of_rule_set": line(report.rule_set_sha256),
        "sha256_of_policy": line(report.policy.sha256),
        "compared_with_audit": _compared_with(report),
        **({"changes": dict(report.comparison.counts)} if report.comparison and report.comparison.possible else {}),
    }


def _compared_with(report: Report) -> str:
    if report.comparison is None:
        return "no earlier sealed audit"
    return line(report.comparison.compared_with, f"none: {' '.join(report.comparison.notes[:1])}")
