"""The failing controls in the PDF: what is wrong, the resources with the same cause in one row, and what to do."""

from kafka_audit import safe_text
from kafka_audit.report.causes import Cause, by_cause, same_expected
from kafka_audit.report.comparison import Change
from kafka_audit.report.model import Report
from kafka_audit.report.pdf.letters import Wide, cut, name
from kafka_audit.report.results import ControlResult
from kafka_audit.report.words import counted, waiver_sentence

_CAUSES = 8
_RESOURCES = 12
_LONGEST_LIST = 900
_OBSERVED = 420
_PROSE = 1500


def content(report: Report) -> list[dict[str, object]]:
    """The failing controls by severity, worst first."""
    groups: list[dict[str, object]] = []
    for one in report.by_severity():
        controls = [result for result in report.failing if result.worst == one.name]
        if controls:
            groups.append(
                {
                    "severity": one.name,
                    "controls": counted(len(controls), "control"),
                    "results": counted(one.failed, "failing result"),
                    "waived": safe_text.grouped(one.waived) if one.waived else None,
                    "cards": [_card(result, report) for result in controls],
                }
            )
    return groups


def _card(result: ControlResult, report: Report) -> dict[str, object]:
    counts, control = result.counted, result.control
    grouped = by_cause(result.failures)
    shown = grouped[:_CAUSES]
    same = same_expected(result.failures)
    return {
        "code": result.code,
        "title": result.title,
        "severity": result.worst,
        "catalogue": result.severity if result.severity != result.worst else None,
        "evidence": result.evidence_class,
        "tally": _tally(result),
        "scenario": _prose(control.failure_scenario) if control else [],
        "expected": _value(same),
        "causes": [_cause(cause, result, report, same=same is not None) for cause in shown],
        "more": counts.failed - sum(len(cause.findings) for cause in shown),
        "fix": _prose(control.remediation.text) if control else [],
        "impact": _prose(control.remediation_impact) if control else [],
        "known": control is not None,
    }


def _tally(result: ControlResult) -> str:
    counts = result.counted
    said = f"Fails on {counts.failed:,} of {counted(counts.assessed, 'assessed result')}"
    unknown = counts.not_assessed + counts.errored
    said += f"; {unknown:,} more could not be assessed" if unknown else ""
    said += f" (coverage {safe_text.percent(counts.assessed, counts.applicable)})."
    if len(result.failing_severities) > 1:
        severities = ", ".join(f"{results.failed:,} {severity}" for severity, results in result.failing_severities.items())
        said += f" By the severities of the tiers: {severities}."
    verb = "is" if counts.waived == 1 else "are"
    return f"{said} {counts.waived:,} of the failures {verb} waived." if counts.waived else said


def _cause(cause: Cause, result: ControlResult, report: Report, *, same: bool) -> dict[str, object]:
    first, findings = cause.first, cause.findings
    names = [name(one.resource) or "" for one in findings]
    shown = _that_fit(names)
    changes = [report.comparison.change_of(one.control_id, one.resource) for one in findings] if report.comparison else []
    new, worse = changes.count(Change.NEW), changes.count(Change.WORSE)
    notes = [first.reason] if first.reason else []
    notes += ["written of the first; the others say the same with their own names"] if cause.names_itself else []
    notes += [f"tier {first.tier}"] if first.tier else []
    notes += [f"loosened: {first.loosened}"] if first.loosened else []
    notes += [f"{new:,} new since the previous audit"] if new else []
    notes += [f"{worse:,} worse than in the previous audit"] if worse else []
    waiver = report.waivers.find(first.waiver)
    notes += [f"waiver {first.waiver} was not in force"] if first.waiver is not None and waiver is None else []
    return {
        "count": safe_text.grouped(len(findings)),
        "resources": shown,
        "more": len(names) - len(shown),
        "observed": _value(first.observed),
        "expected": None if same else _value(first.expected),
        "severity": first.severity if first.severity != result.worst else None,
        "notes": [cut(note, _OBSERVED) for note in notes],
        "waived": f"waived by {waiver_sentence(waiver)}" if waiver else None,
    }


def _that_fit(names: list[str]) -> list[str]:
    """The first resources: at most twelve, and no more text than a third of a page holds; the first one always."""
    shown = names[:1]
    for one in names[1:_RESOURCES]:
        if sum(map(len, shown)) + len(one) > _LONGEST_LIST:
            break
        shown.append(one)
    return shown


def _value(text: str | None) -> Wide | None:
    return Wide(cut(text, _OBSERVED)) if text else None


def _prose(text: str | None) -> list[Wide]:
    return [Wide(paragraph) for paragraph in safe_text.paragraphs(cut(text or "", _PROSE))]
