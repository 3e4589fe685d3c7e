"""The frameworks in the PDF: each requirement with its controls, what the results say and how much of it was assessed."""

from kafka_audit.report.frameworks import ControlSupport, FrameworkResult, RequirementResult, Support
from kafka_audit.report.model import Report
from kafka_audit.report.pdf.letters import Wide, cut, name
from kafka_audit.report.words import assessed

_KINDS = {Support.SUPPORTS: "pass", Support.DOES_NOT_SUPPORT: "fail", Support.NOT_KNOWN: "gap", Support.NOT_APPLICABLE: "none"}
_VERDICTS = {Support.DOES_NOT_SUPPORT: "not supported", Support.NOT_KNOWN: "not known", Support.SUPPORTS: "supported"}
_SAID = {
    Support.DOES_NOT_SUPPORT: "do not support it",
    Support.NOT_KNOWN: "not known",
    Support.SUPPORTS: "support it",
    Support.NOT_APPLICABLE: "nothing to judge",
}

_WITH_REASONS = (Support.DOES_NOT_SUPPORT, Support.NOT_KNOWN, Support.SUPPORTS)


def content(report: Report) -> list[dict[str, object]]:
    """What is printed about each framework of the policy."""
    return [_framework(one) for one in report.frameworks]


def _framework(framework: FrameworkResult) -> dict[str, object]:
    counts = framework.counts
    return {
        "title": name(framework.title),
        "edition": name(framework.edition),
        "source": name(framework.source),
        "counts": [{"kind": _KINDS[one], "word": word, "count": str(counts[one.value])} for one, word in _VERDICTS.items()],
        "requirements": [_requirement(one) for one in framework.requirements],
    }


def _requirement(requirement: RequirementResult) -> dict[str, object]:
    groups = ((support, requirement.of(support.value)) for support in _SAID)
    return {
        "id": name(requirement.id),
        "title": cut(requirement.title, 300),
        "kind": _KINDS[requirement.support],
        "support": _VERDICTS[requirement.support],
        "strict": requirement.strict,
        "coverage": assessed(requirement.coverage, requirement.not_run),
        "controls": [_group(requirement, support, controls) for support, controls in groups if controls],
        "rationale": Wide(cut(requirement.rationale, 600)),
        "cannot_show": Wide(cut(requirement.cannot_show, 600)),
    }


def _group(requirement: RequirementResult, support: Support, controls: list[ControlSupport]) -> dict[str, object]:
    """The controls with one kind of support, and what is said of them; a reason that all share is said once."""
    shared = requirement.why(support.value) if support in _WITH_REASONS else ""
    apart = support in _WITH_REASONS and not shared
    codes = ", ".join(f"{one.code} ({one.why})" if apart and one.why else one.code for one in controls)
    said = f"{_SAID[support]} ({shared})" if shared else _SAID[support]
    return {"said": said, "kind": _KINDS[support], "codes": Wide(cut(codes, 1200))}
