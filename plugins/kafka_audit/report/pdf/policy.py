"""Waivers, attestations, tiers and gates in the PDF: who accepted or attested what, what the policy demands, and what the gates said."""

from kafka_audit import safe_text
from kafka_audit.audit.gate_result import GateResult, RuleResult
from kafka_audit.findings import Verdict
from kafka_audit.report import words
from kafka_audit.report.model import Report
from kafka_audit.report.pdf.letters import cut, name
from kafka_audit.report.tally import AttestationUse, WaiverUse

_SENTENCE = 500
_LISTED = 60
_RULES = 80
_VERDICTS = {Verdict.PASS: "pass", Verdict.FAIL: "fail", Verdict.ERROR: "error"}
_WAIVERS = {"used": "waived", "unused": "none"}
_ABOUT = {
    "evidence": ("Evidence gate", "Is the evidence complete, recent and of the right types?"),
    "findings": ("Findings gate", "Do the findings meet the policy?"),
}


def content(report: Report) -> dict[str, object]:
    """What is printed about the policy and the gates."""
    waivers, policy = report.waivers, report.policy
    return {
        "waivers": [_waiver(one) for one in waivers.listed[:_LISTED]],
        "waivers_more": max(0, len(waivers.listed) - _LISTED),
        "unfounded": [
            f"{words.counted(count, 'finding names', 'findings name')} waiver {cut(waiver, 200)}, which covers nothing: no waiver with "
            "this id is in force in the policy."
            for waiver, count in waivers.unfounded[:_LISTED]
        ],
        "attestations": [_attestation(one) for one in report.attestations[:_LISTED]],
        "attestations_more": max(0, len(report.attestations) - _LISTED),
        "still_open": report.counts.still_open,
        "tiers": [
            {
                "tier": name(tier_name),
                "owner": name(tier.owner) if tier.owner else None,
                "replicas": safe_text.grouped(tier.replication_factor),
                "in_sync": safe_text.grouped(tier.min_insync_replicas),
                "retention": "unlimited" if tier.retention_ms == -1 else words.duration(tier.retention_ms),
                "default": tier_name == policy.default_tier,
                "topics": cut(", ".join(words.patterns_of(policy.topics, tier_name, policy.default_tier)), _SENTENCE),
                "groups": cut(", ".join(words.patterns_of(policy.groups, tier_name, policy.default_tier)), _SENTENCE),
            }
            for tier_name, tier in policy.tiers.items()
        ],
        "slas": [cut(f"{sla.name} ({sla.pattern}): {', '.join(words.demands(sla))}", _SENTENCE) for sla in policy.slas[:_LISTED]],
        "loosened": [
            {
                "code": one.code,
                "tier": name(one.tier),
                "what": cut(one.loosened, _SENTENCE),
                "passed": safe_text.grouped(one.passed),
                "failed": safe_text.grouped(one.failed),
            }
            for one in report.loosened[:_LISTED]
        ],
        "loosened_more": max(0, len(report.loosened) - _LISTED),
        "assessed": report.counts.assessed > 0,
        "gates": [_gate(one) for one in report.gates],
    }


def _waiver(one: WaiverUse) -> dict[str, object]:
    return {
        "id": name(one.id),
        "kind": _WAIVERS.get(one.status, "gap"),
        "status": one.status,
        "control": name(one.control),
        "resource": name(one.resource),
        "why": cut(one.justification, _SENTENCE),
        "owner": name(one.owner),
        "approved": cut(f"approved by {one.approver} on {one.approved_on}, ticket {one.ticket}", _SENTENCE),
        "until": safe_text.utc(one.expires),
        "covered": safe_text.grouped(one.covered),
    }


def _attestation(one: AttestationUse) -> dict[str, object]:
    return {
        "id": name(one.id),
        "control": f"{one.control} {one.outcome}",
        "kind": "pass" if one.status == "counts" else "gap",
        "status": one.status,
        "statement": cut(one.statement, _SENTENCE),
        "by": name(one.attested_by),
        "on": f"on {one.attested_on}",
        "until": safe_text.utc(one.expires),
        "file": name(one.file),
        "sha256": one.sha256,
    }


def _gate(gate: GateResult) -> dict[str, object]:
    """One gate with the rules that did not pass; those that passed are counted."""
    title, asks = _ABOUT.get(gate.gate, (gate.gate, ""))
    suite, coverage = gate.suite, gate.coverage
    others = [one for one in gate.results if one.status is not Verdict.PASS]
    about = [f"suite {suite.name}, {words.counted(suite.expectations, 'expectation')}, sha256 {suite.sha256}"] if suite else []
    if coverage:
        ratio = safe_text.percent(coverage.assessed, coverage.applicable)
        about.append(f"coverage {coverage.assessed:,} of {coverage.applicable:,} ({ratio})")
    about.append(f"exit code {gate.exit_code}")
    return {
        "title": title,
        "asks": asks,
        "ran": gate.ran,
        "kind": _VERDICTS.get(gate.verdict, "gap") if gate.verdict else "gap",
        "verdict": gate.verdict.value if gate.verdict else "did not run",
        "reasons": [cut(reason, _SENTENCE) for reason in gate.reasons[:10]],
        "about": "; ".join(about),
        "rules": [_rule(one) for one in others[:_RULES]],
        "more": max(0, len(others) - _RULES),
        "passed": len(gate.results) - len(others),
    }


def _rule(rule: RuleResult) -> dict[str, object]:
    return {
        "id": name(rule.rule_id),
        "severity": rule.severity,
        "kind": _VERDICTS.get(rule.status, "gap"),
        "status": rule.status.value,
        "checks": cut(rule.description, 300),
        "observed": cut(rule.observed, 200) or None,
        "expected": cut(rule.expected, 200) or None,
        "detail": cut(rule.detail, 300) if rule.detail else None,
    }
