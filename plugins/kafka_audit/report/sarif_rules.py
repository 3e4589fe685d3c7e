"""The rules of a SARIF run: one for each control, with its texts, severity, requirements and coverage."""

from collections.abc import Mapping
from typing import Any

from kafka_audit.findings import Severity
from kafka_audit.report.control_status import counts_of, coverage_sentence, requirements
from kafka_audit.report.inert_text import line, markdown, message
from kafka_audit.report.model import Report
from kafka_audit.report.results import ControlResult
from kafka_audit.safe_text import is_web_link, with_link

_LEVELS: Mapping[str, str] = {
    Severity.CRITICAL.value: "error",
    Severity.HIGH.value: "error",
    Severity.MEDIUM.value: "warning",
    Severity.LOW.value: "note",
    Severity.INFO.value: "note",
}
_SCORES: Mapping[str, str] = {
    Severity.CRITICAL.value: "9.5",
    Severity.HIGH.value: "8.0",
    Severity.MEDIUM.value: "5.5",
    Severity.LOW.value: "2.0",
    Severity.INFO.value: "0.1",
}
"""In the middle of the ranges that GitHub calls critical, high, medium and low. They rank severities and are no CVSS scores."""

_TAGS = 10
"""GitHub shows ten tags of a rule; all requirements are among its properties."""


def level_of(severity: str) -> str:
    """The SARIF level of a failure; an unknown severity is an error rather than nothing."""
    return _LEVELS.get(severity, "error")


def rules(report: Report) -> list[dict[str, Any]]:
    """The reportingDescriptor objects, in the order of the controls."""
    named = requirements(report)
    return [_rule(result, [f"{framework.id}:{one.id}" for framework, one in named.get(result.code, ())]) for result in report.results]


def _rule(result: ControlResult, required_by: list[str]) -> dict[str, Any]:
    control = result.control
    rule: dict[str, Any] = {
        "id": line(result.code),
        "name": "".join(word.capitalize() for word in line(result.control_id).split("_")),
        "shortDescription": {"text": _sentence(message(result.title))},
        "defaultConfiguration": {"level": level_of(result.severity), "rank": float(_SCORES.get(result.severity, "9.5")) * 10},
        "properties": {
            "tags": ["security", "reliability", "kafka", *map(line, required_by)][:_TAGS],
            "security-severity": _SCORES.get(result.severity, "9.5"),
            "problem.severity": {"note": "recommendation"}.get(level_of(result.severity), level_of(result.severity)),
            "controlId": line(result.control_id),
            "subject": line(result.subject),
            "severity": line(result.severity),
            "evidenceClass": line(result.evidence_class),
            "ruleSha256": line(result.rule_sha256),
            "requirements": [line(one) for one in required_by],
            "ran": result.counts is not None,
            "counts": counts_of(result.counted),
            "coverage": coverage_sentence(result),
        },
    }
    if control is None:
        text = "The catalogue that was given for this report does not contain this control."
        return {**rule, "fullDescription": {"text": text}, "help": {"text": text}}
    remedy = [control.remediation.text, control.remediation_impact]
    parts = (
        ("Why", [control.rationale]),
        ("What happens", [control.failure_scenario]),
        ("What to do", remedy),
        ("When a failure may be harmless", control.false_positives),
        ("References", control.references),
    )
    links = [address for address in (with_link(one)[1] for one in control.references) if address and is_web_link(address)]
    return {
        **rule,
        "fullDescription": {"text": _sentence(message(control.rationale))},
        "help": {
            "text": "\n\n".join(f"{title}: {' '.join(message(one) for one in texts)}" for title, texts in parts if texts),
            "markdown": "\n\n".join(f"**{title}.** {' '.join(markdown(one) for one in texts)}" for title, texts in parts if texts),
        },
        **({"helpUri": links[0]} if links else {}),
    }


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?")) else text + "."
