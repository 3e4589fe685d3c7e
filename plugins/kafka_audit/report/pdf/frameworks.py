"""The frameworks in the PDF: each requirement with its controls, what the results say and how much of it was assessed."""

from kafka_audit import safe_text
from kafka_audit.report import words
from kafka_audit.report.frameworks import ControlSupport, FrameworkResult, RequirementResult, Support
from kafka_audit.report.model import Report
from kafka_audit.report.pdf.letters import Wide, cut, name

_KINDS = {Support.SUPPORTS: "pass", Support.DOES_NOT_SUPPORT: "fail", Support.NOT_KNOWN: "gap", Support.NOT_APPLICABLE: "none"}
_SAID = {
    Support.DOES_NOT_SUPPORT: "do not support it",
    Support.NOT_KNOWN: "not known",
    Support.SUPPORTS: "support it",
    Support.NOT_APPLICABLE: "nothing to judge",
}


def content(report: Report) -> list[dict[str, object]]:
    """What is printed about each framework of the policy."""
    return [_framework(one) for one in report.frameworks]


def _framework(framework: FrameworkResult) -> dict[str, object]:
    counts = framework.counts
    return {
        "title": name(framework.title),
        "edition": name(framework.edition),
        "source": name(framework.source),
        "counts": [{"kind": _KINDS[one], "word": one.value, "count": str(counts[one.value])} for one in _SAID if counts[one.value]],
        "requirements": [_requirement(one) for one in framework.requirements],
    }


def _requirement(requirement: RequirementResult) -> dict[str, object]:
    counts = requirement.coverage
    groups = ((said, [one for one in requirement.controls if one.support is support]) for support, said in _SAID.items())
    return {
        "id": name(requirement.id),
        "title": cut(requirement.title, 300),
        "kind": _KINDS[requirement.support],
        "support": requirement.support.value,
        "strict": requirement.strict,
        "coverage": safe_text.percent(counts.assessed, counts.applicable),
        "of": f"{counts.assessed:,} of {counts.applicable:,}"
        + (f"; {words.counted(requirement.not_run, 'control')} did not run" if requirement.not_run else ""),
        "controls": [
            {"said": said, "codes": cut(", ".join(_control(one) for one in controls), 1200)} for said, controls in groups if controls
        ],
        "rationale": Wide(cut(requirement.rationale, 600)),
        "cannot_show": Wide(cut(requirement.cannot_show, 600)),
    }


def _control(one: ControlSupport) -> str:
    told = one.why and one.support is not Support.NOT_APPLICABLE
    return f"{one.code} ({one.why})" if told else one.code
