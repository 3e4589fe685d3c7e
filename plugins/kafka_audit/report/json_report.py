"""Writes the report as JSON for programs; ``report.schema.json`` defines its form, ``SCHEMA_VERSION`` is its version."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kafka_audit import __version__
from kafka_audit.audit.gate_result import GateResult
from kafka_audit.report import words
from kafka_audit.report.frameworks import FrameworkResult, Support
from kafka_audit.report.lag import LagTables
from kafka_audit.report.model import Report
from kafka_audit.report.results import ControlResult, Counts, Finding, Reason
from kafka_audit.report.snapshot_view import Collection
from kafka_audit.report.tally import WaiverTable

SCHEMA_VERSION = 1
_OF_WAIVER = ("id", "owner", "approver", "ticket", "expires")

REASONS_SHOWN = 500
"""The largest number of reasons for missing results that are listed, those with the most results first."""


def _coverage(counts: Counts) -> dict[str, Any]:
    """The assessed and applicable results and their ratio, which is null if nothing applies, never 1."""
    ratio = round(counts.assessed / counts.applicable, 6) if counts.applicable else None
    return {"assessed": counts.assessed, "applicable": counts.applicable, "ratio": ratio}


def _totals(report: Report) -> dict[str, Any]:
    severities = {one.name: {"controls": len(one.failing), "results": one.failed, "waived": one.waived} for one in report.by_severity()}
    return {
        **asdict(report.counts),
        "controls": len(report.results),
        "controls_run": sum(result.counts is not None for result in report.results),
        "controls_failing": len(report.failing),
        "failed_by_severity": severities,
    }


def _control(result: ControlResult) -> dict[str, Any]:
    return {
        **{name: getattr(result, name) for name in ("control_id", "code", "title", "subject", "severity", "evidence_class")},
        "worst_failure": result.worst if result.counted.failed else None,
        "failed_by_severity": {name: results.failed for name, results in result.failing_severities.items()},
        "ran": result.counts is not None,
        "counts": asdict(result.counts) if result.counts is not None else None,
        "coverage": _coverage(result.counted),
        "truncated": _truncated(result),
    }


def _truncated(result: ControlResult) -> bool:
    counts = result.counted
    listed = ((result.failures, counts.failed), (result.errors, counts.errored), (result.not_assessed, counts.not_assessed))
    return any(len(findings) < count for findings, count in listed)


def _finding(finding: Finding, waivers: WaiverTable) -> dict[str, Any]:
    """One finding with the waiver that covers it, if any; its evidence as JSON if it can be parsed, else as text."""
    waiver = waivers.find(finding.waiver)
    value = asdict(finding)
    value["waiver"] = {name: waiver[name] for name in _OF_WAIVER} if waiver else None
    value["remediation"] = finding.values
    if finding.evidence:
        try:
            value["evidence"] = json.loads(finding.evidence)
        except ValueError:
            value["evidence"] = finding.evidence
    return value


def _gate(gate: GateResult) -> dict[str, Any]:
    return {
        "gate": gate.gate,
        "ran": gate.ran,
        "verdict": gate.verdict.value if gate.verdict else None,
        "exit_code": gate.exit_code,
        "reasons": list(gate.reasons),
        "coverage": gate.coverage.model_dump(exclude={"ratio"}) if gate.coverage else {"assessed": None, "applicable": None},
        "suite": gate.suite.model_dump() if gate.suite else {"name": "", "sha256": "", "expectations": None},
        "parameters": dict(gate.parameter_texts),
        "results": [rule.model_dump(mode="json") for rule in gate.results],
    }


def _framework(framework: FrameworkResult) -> dict[str, Any]:
    counts = {support.value: framework.counts[support.value] for support in Support if support is not Support.NOT_APPLICABLE}
    return {**asdict(framework), "counts": counts}


def _waivers(table: WaiverTable) -> dict[str, Any]:
    unfounded = [{"id": waiver_id, "findings": number} for waiver_id, number in table.unfounded]
    return {"listed": list(table.listed), "unfounded": unfounded}


def _lag(lag: LagTables) -> dict[str, Any]:
    groups = [{**asdict(group), "statuses": dict(group.statuses)} for group in lag.groups]
    return {**asdict(lag), "groups": groups, "loss": {**asdict(lag.loss), "sentence": words.loss(lag.loss)}}


def _cluster(report: Report) -> dict[str, Any]:
    made = report.collection
    return {
        "alias": report.cluster,
        "cluster_id": made.cluster_id or None,
        "controller_id": made.controller_id,
        "brokers": list(made.brokers),
        "features": dict(made.features),
    }


def _snapshot(made: Collection) -> dict[str, Any]:
    return {
        "snapshot_id": made.snapshot_id,
        "manifest_sha256": made.manifest_sha256,
        "started_at": made.started_at or None,
        "finished_at": made.finished_at or None,
        "scope": {what: list(patterns) for what, patterns in made.scope},
        "versions": dict(made.versions),
        "files": list(made.files),
    }


def _reasons(reasons: Sequence[Reason]) -> dict[str, Any]:
    return {"kinds": len(reasons), "listed": [asdict(reason) for reason in reasons[:REASONS_SHOWN]]}


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain JSON values, valid against ``report.schema.json``."""
    findings = [one for result in report.results for one in (*result.failures, *result.errors, *result.not_assessed)]
    made = report.collection
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "report",
        "tool": {"name": "kafka-audit", "version": __version__},
        "audit_id": report.audit_id,
        "started_at": report.started_at or None,
        "generated_at": report.generated_at.isoformat(),
        "verdict": report.outcome.verdict,
        "exit_code": report.outcome.exit_code,
        "summary": words.summary(report),
        "reasons": list(report.outcome.reasons),
        "coverage": _coverage(report.counts),
        "totals": _totals(report),
        "truncated": any(_truncated(result) for result in report.results),
        "findings_per_control_and_status": report.limit,
        "controls": [_control(result) for result in report.results],
        "findings": [_finding(finding, report.waivers) for finding in findings],
        "unassessed": _reasons(report.reasons),
        "set_aside": _reasons(report.set_aside),
        "tiers": [{"tier": tier, **asdict(results)} for tier, results in report.tiers],
        "loosened": list(report.loosened),
        "waivers": _waivers(report.waivers),
        "attestations": list(report.attestations),
        "frameworks": [_framework(framework) for framework in report.frameworks],
        "history": [asdict(one) for one in report.history],
        "lag": _lag(report.lag),
        "commit_history": {**asdict(report.commit_history), "auto_commit": dict(report.commit_history.auto_commit)},
        "gates": [_gate(gate) for gate in report.gates],
        "cluster": _cluster(report),
        "snapshot": _snapshot(made),
        "hashes": {
            "snapshot_manifest": made.manifest_sha256,
            "catalogue": report.catalogue_sha256,
            "policy": report.policy.sha256,
        },
        "audit_files": list(report.audit_files),
        "capabilities": list(made.capabilities),
        "errors": {"count": made.problem_count, "kinds": made.problem_kinds, "listed": list(made.problems)},
    }


def render(report: Report) -> str:
    """Render the JSON text in ASCII: control and bidi characters in names are ``\\u`` escapes, so the file can be printed safely."""
    return json.dumps(as_json(report), indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"
