"""The cover and the summary of the PDF."""

from kafka_audit import __version__, safe_text
from kafka_audit.audit.outcome import FAILED, INCOMPLETE, PASSED
from kafka_audit.report import words
from kafka_audit.report.comparison import Change, ChangedFinding, Comparison
from kafka_audit.report.front import Worst, worst_failures
from kafka_audit.report.model import Report
from kafka_audit.report.pdf.letters import Wide, cut, name
from kafka_audit.report.results import ControlResult

_KINDS = {PASSED: "pass", FAILED: "fail", INCOMPLETE: "gap"}
_EXIT_CODES = {
    0: "the policy is met",
    1: "the audit could not be completed",
    2: "the policy, the controls or an argument is not valid",
    3: "the gate failed",
    4: "too little could be assessed for a verdict",
    5: "stored evidence is missing, changed or not what its manifest says",
}
_DEMANDS = {
    "fail_on": "fails at severity",
    "min_coverage": "minimum coverage",
    "max_age_seconds": "age of the snapshot in seconds, at most",
}
_REASONS = 6
_REASONS_MISSING = 15
_CHANGES = 20
_TREND = 40
_SENTENCE = 500
_CHANGE_ORDER = (Change.NEW, Change.WORSE, Change.INCOMPARABLE, Change.RESOLVED, Change.UNCHANGED)


def kind_of(verdict: str) -> str:
    """The kind of mark for a verdict: only PASSED is ``pass``."""
    return _KINDS.get(verdict, "void")


def content(report: Report) -> dict[str, object]:
    """What the cover and the summary print."""
    verdict, code = report.outcome.verdict, report.outcome.exit_code
    return {
        "cluster": report.cluster or "an unnamed cluster",
        "verdict": {
            "word": verdict,
            "kind": kind_of(verdict),
            "code": str(code),
            "meaning": _EXIT_CODES.get(code, "see the reasons"),
            "summary": words.summary(report),
            "hints": words.hints(report),
            "reasons": [Wide(cut(reason, _SENTENCE)) for reason in report.outcome.reasons[:_REASONS]],
            "more": max(0, len(report.outcome.reasons) - _REASONS),
        },
        "audit": report.audit_id,
        "generated": safe_text.utc(report.generated_at),
        "tool": f"kafka-audit {__version__}",
        "facts": _facts(report),
        "hashes": [
            {"what": "Snapshot's manifest", "sha256": report.collection.manifest_sha256},
            {"what": "Policy", "sha256": report.policy.sha256},
            {"what": "Catalogue of controls", "sha256": report.catalogue_sha256},
            {"what": "Rules of the controls", "sha256": report.rule_set_sha256},
        ],
        "folder": f"audits/{report.cluster}/{report.audit_id}",
        "evidence": f"evidence/{report.cluster}/{report.collection.snapshot_id}",
        "previous": _previous(report.comparison),
        "loss": words.loss(report.lag.loss),
        "loss_unknown": words.loss_not_known(report.lag),
        "no_loss": words.no_loss(report.lag),
        "worst": [_worst(one) for one in worst_failures(report)],
        "missing": list(report.missing),
        "not_written": [Wide(str(one)) for one in report.not_written],
        "severities": _severities(report),
        "coverage": _coverage(report),
        "overview": [_overview(result) for result in report.failing],
        "reasons": _reasons(report),
        "more_reasons": max(0, len(report.reasons) - _REASONS_MISSING),
        "changes": _changes(report.comparison),
        "trend": _trend(report),
    }


def _facts(report: Report) -> list[dict[str, object]]:
    made = report.collection
    asked = {**dict(report.params), **{key: value for gate in report.gates for key, value in gate.parameter_texts}}
    demands = "; ".join(f"{label} {asked[key]}" for key, label in _DEMANDS.items() if asked.get(key) is not None)
    scope = "; ".join(f"{what} {', '.join(patterns) or 'all'}" for what, patterns in made.scope)
    answered = sum(bool(broker.answered) for broker in made.brokers)
    taken = f"{safe_text.utc(made.started_at)} to {safe_text.utc(made.finished_at)}"
    facts = (
        ("Cluster id", made.cluster_id or None, True),
        ("Evidence taken", taken, False),
        ("Audit started", safe_text.utc(report.started_at), False),
        ("Brokers that answered", f"{answered} of {len(made.brokers)}" if made.brokers else "not known", False),
        ("Scope", scope or "not recorded", False),
        ("Policy demands", demands or "see the gates", False),
        ("Audit", report.audit_id, True),
        ("Snapshot", made.snapshot_id, True),
        ("Made by", f"kafka-audit {__version__}, {safe_text.utc(report.generated_at)}", False),
    )
    return [{"what": what, "value": name(value), "code": code} for what, value, code in facts]


def _previous(comparison: Comparison | None) -> dict[str, object] | None:
    if comparison is None or comparison.compared_with is None:
        return None
    started = safe_text.utc(comparison.previous_started_at)
    return {"audit": name(comparison.compared_with), "started": started, "verdict": comparison.previous_verdict}


def _worst(one: Worst) -> dict[str, object]:
    first = next(iter(one.failures), None)
    return {
        "code": one.result.code,
        "severity": one.severity,
        "title": one.result.title,
        "resource": name(first.resource) if first else None,
        "observed": Wide(cut(first.observed, 240)) if first and first.observed else None,
        "more": max(0, one.failed - 1),
    }


def _severities(report: Report) -> list[dict[str, object]]:
    return [
        {
            "severity": one.name,
            "controls": str(one.controls),
            "judged": str(one.judged),
            "failing": str(len(one.failing)) if one.assessed else None,
            "results": safe_text.grouped(one.failed if one.assessed else None),
            "waived": safe_text.grouped(one.waived if one.assessed else None),
            "assessed": safe_text.grouped(one.assessed),
        }
        for one in report.by_severity()
    ]


def _coverage(report: Report) -> dict[str, object]:
    counts = report.counts
    void = kind_of(report.outcome.verdict) == "void"
    parts = (
        ("none" if void else "pass", "passed", counts.passed),
        ("fail", "failed", counts.failed),
        ("error", "raised an error", counts.errored),
        ("gap", "not assessed", counts.not_assessed - counts.still_open),
    )
    return {
        "sentence": words.coverage(report),
        "percent": safe_text.percent(counts.assessed, counts.applicable) if counts.applicable else None,
        "assessed": safe_text.grouped(counts.assessed),
        "applicable": safe_text.grouped(counts.applicable),
        "not_applicable": safe_text.grouped(counts.not_applicable),
        "waived": counts.waived,
        "parts": [{"kind": kind, "label": label, "count": count, "shown": safe_text.grouped(count)} for kind, label, count in parts],
    }


def _overview(result: ControlResult) -> dict[str, object]:
    counts = result.counted
    return {
        "code": result.code,
        "title": result.title,
        "severity": result.worst,
        "failed": safe_text.grouped(counts.failed),
        "waived": safe_text.grouped(counts.waived),
        "assessed": safe_text.grouped(counts.assessed),
        "coverage": safe_text.percent(counts.assessed, counts.applicable),
    }


def _reasons(report: Report) -> list[dict[str, object]]:
    return [
        {
            "status": reason.status.replace("_", " "),
            "kind": "error" if reason.status == "error" else "gap",
            "count": safe_text.grouped(reason.count),
            "reason": cut(reason.reason, _SENTENCE),
            "codes": ", ".join(reason.codes),
            "resources": [name(resource) for resource in reason.resources],
        }
        for reason in report.reasons[:_REASONS_MISSING]
    ]


def _changes(comparison: Comparison | None) -> dict[str, object] | None:
    if comparison is None:
        return None
    listed = sorted(
        (one for one in comparison.listed if one.change is not Change.UNCHANGED), key=lambda one: _CHANGE_ORDER.index(one.change)
    )
    return {
        "possible": comparison.possible,
        "counts": [{"change": one.value, "count": safe_text.grouped(comparison.counts.get(one.value, 0))} for one in _CHANGE_ORDER],
        "notes": [cut(note, _SENTENCE) for note in comparison.notes],
        "listed": [_changed(one) for one in listed[:_CHANGES]],
        "more": max(0, sum(comparison.counts.get(one.value, 0) for one in _CHANGE_ORDER[:-1]) - min(len(listed), _CHANGES)),
    }


def _changed(one: ChangedFinding) -> dict[str, object]:
    return {
        "change": one.change.value,
        "code": one.code,
        "severity": one.severity or one.severity_before,
        "resource": name(one.resource),
        "before": cut(one.observed_before, 160) if one.observed_before else None,
        "now": cut(one.observed, 160) if one.observed else None,
        "why": cut(one.why, _SENTENCE) if one.why else None,
    }


def _trend(report: Report) -> list[dict[str, object]]:
    """One entry per audit that is kept, oldest first; the newest 40. ``failed``: numbers by severity, for the chart."""
    return [
        {
            "started": safe_text.utc(point.started_at)[:16],
            "verdict": point.verdict,
            "kind": kind_of(point.verdict),
            "failed": dict(point.failed_by_severity or {}),
            "alt": f"{safe_text.utc(point.started_at)[:16]} {'not known' if point.failed is None else f'{point.failed:,}'}",
            "total": point.failed,
            "differs": ", ".join(point.differs),
            "coverage": None if point.coverage is None else safe_text.percent(int(point.coverage * 1_000_000), 1_000_000),
            "lost": safe_text.grouped(point.lost_records),
            "availability": words.percentage(point.availability_percent),
        }
        for point in report.trend[-_TREND:]
    ]
