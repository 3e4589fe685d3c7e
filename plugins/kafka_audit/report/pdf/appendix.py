"""The appendix of the PDF: scope, permissions, what could not be read, all controls with their counts, and the hashes of all files."""

from collections.abc import Sequence

from kafka_audit import safe_text
from kafka_audit.report import words
from kafka_audit.report.model import Report
from kafka_audit.report.pdf.letters import cut, name
from kafka_audit.report.results import ControlResult, Reason
from kafka_audit.report.snapshot_view import Broker, Capability, HashedFile, Problem, UsedHistory

_BROKERS = 60
_PROBLEMS = 40
_HISTORY = 70
_FILES = 150
_LEFT_OUT = 20
_REASONS = 20
_DETAIL = 200


def content(report: Report) -> dict[str, object]:
    """What the appendix prints."""
    made, counts = report.collection, report.counts
    return {
        "scope": [{"what": what, "patterns": cut(", ".join(patterns) or "all", 1000)} for what, patterns in made.scope],
        "versions": [f"{what} {version}" for what, version in made.versions],
        "features": [f"{feature} {level}" for feature, level in made.features if level is not None],
        "brokers": [_broker(one) for one in made.brokers[:_BROKERS]],
        "brokers_more": max(0, len(made.brokers) - _BROKERS),
        "capabilities": [_capability(one) for one in made.capabilities],
        "problems": [_problem(one) for one in made.problems[:_PROBLEMS]],
        "problem_count": words.counted(made.problem_count, "item"),
        "problems_more": max(0, made.problem_kinds - min(len(made.problems), _PROBLEMS)),
        "set_aside": [_reason(one) for one in report.set_aside[:_REASONS]],
        "set_aside_more": max(0, len(report.set_aside) - _REASONS),
        "controls": [_control(one) for one in report.results],
        "all": {
            "what": f"All {words.counted(len(report.results), 'control')}",
            "numbers": _numbers(counts),
            "coverage": safe_text.percent(counts.assessed, counts.applicable),
        },
        "history": [_history(one) for one in report.history],
        "files": [
            {"of": f"Files of the snapshot {made.snapshot_id}", **_files(made.files)},
            {"of": f"Files of the audit {report.audit_id}", **_files(report.audit_files)},
        ],
    }


def _yes(value: object, yes: str, no: str) -> dict[str, str]:
    """A flag as a mark: what is not known is neither yes nor no."""
    return {"kind": "gap", "word": "not known"} if value is None else {"kind": "pass" if value else "fail", "word": yes if value else no}


def _broker(one: Broker) -> dict[str, object]:
    return {
        "id": str(one.broker_id),
        "address": name(f"{one.host}:{one.port}" if one.host else None),
        "rack": name(one.rack),
        "alive": _yes(one.alive, "yes", "no"),
        "answered": _yes(one.answered, "yes", "no"),
        "controller": "not known" if one.is_controller is None else "controller" if one.is_controller else "",
    }


def _capability(one: Capability) -> dict[str, object]:
    known = one.max_version is not None
    return {
        "api": name(one.api),
        "versions": f"{one.min_version}\N{EN DASH}{one.max_version}" if known else None,
        "supported": _yes(one.supported, "yes", "no"),
        "allowed": _yes(one.allowed, "yes", "denied"),
        "detail": cut(one.detail, _DETAIL) if one.detail else "",
    }


def _problem(one: Problem) -> dict[str, object]:
    return {
        "count": safe_text.grouped(one.count),
        "dataset": name(one.dataset),
        "api": name(one.api) if one.api else "",
        "error": name(one.error),
        "message": cut(one.message, _DETAIL),
        "where": [name(where) for where in one.where],
    }


def _reason(one: Reason) -> dict[str, object]:
    resources = [name(resource) for resource in one.resources]
    return {"count": safe_text.grouped(one.count), "reason": cut(one.reason, 400), "codes": ", ".join(one.codes), "resources": resources}


def _numbers(counts: object) -> list[str]:
    names = ("passed", "failed", "waived", "errored", "not_assessed", "not_applicable")
    return [safe_text.grouped(getattr(counts, one)) for one in names]


def _control(one: ControlResult) -> dict[str, object]:
    return {
        "code": one.code,
        "title": one.title,
        "severity": one.severity,
        "numbers": _numbers(one.counts) if one.counts else None,
        "failed": one.counted.failed > 0,
        "coverage": safe_text.percent(one.counted.assessed, one.counted.applicable),
    }


def _history(one: UsedHistory) -> dict[str, object]:
    return {
        "sentence": _past(one),
        "kind": "none" if one.recorded else "gap",
        "left_out": [cut(reason, 400) for reason in one.left_out[:_LEFT_OUT]],
        "left_out_count": len(one.left_out),
        "used": [{"path": earlier.snapshot_id, "sha256": earlier.manifest_sha256} for earlier in one.used[-_HISTORY:]],
        "more": max(0, len(one.used) - _HISTORY),
    }


def _past(one: UsedHistory) -> str:
    who = f"verify ({' and '.join(one.parts)})"
    if not one.recorded:
        return f"{who} left no record of the earlier snapshots used for comparison."
    if one.used:
        earlier = words.counted(len(one.used), "earlier one")
        return f"{who} compared this snapshot with {earlier}, taken from {one.used[0].snapshot_id} to {one.used[-1].snapshot_id}."
    if one.first_audit:
        return (
            f"This is the cluster's first audit: {who} had no earlier snapshot to compare this one with. It took the baseline that later "
            "audits compare with, and controls that only compare with the past are not applicable."
        )
    return f"{who} had no earlier snapshot to compare this one with, so controls that need a series say that their history is too short."


def _files(files: Sequence[HashedFile]) -> dict[str, object]:
    rows = [{"path": name(one.path), "bytes": safe_text.grouped(one.bytes), "sha256": one.sha256} for one in files[:_FILES]]
    return {"rows": rows, "more": max(0, len(files) - _FILES)}
