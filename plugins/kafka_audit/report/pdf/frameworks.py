"""The frameworks in the PDF: each requirement with its controls, what the results say and how much of it was assessed."""

from kafka_audit.report.frameworks import KINDS, SAID, VERDICTS, FrameworkResult, RequirementResult, SupportGroup
from kafka_audit.report.model import Report
from kafka_audit.report.pdf.letters import Wide, cut, name
from kafka_audit.report.words import assessed


def content(report: Report) -> list[dict[str, object]]:
    """What is printed about each framework of the policy."""
    return [_framework(one) for one in report.frameworks]


def _framework(framework: FrameworkResult) -> dict[str, object]:
    counts = framework.counts
    return {
        "title": name(framework.title),
        "edition": name(framework.edition),
        "source": name(framework.source),
        "counts": [{"kind": KINDS[one], "word": word, "count": str(counts[one.value])} for one, word in VERDICTS.items()],
        "requirements": [_requirement(one) for one in framework.requirements],
    }


def _requirement(requirement: RequirementResult) -> dict[str, object]:
    return {
        "id": name(requirement.id),
        "title": cut(requirement.title, 300),
        "kind": KINDS[requirement.support],
        "support": VERDICTS[requirement.support],
        "strict": requirement.strict,
        "coverage": assessed(requirement.coverage, requirement.not_run),
        "controls": [_group(one) for one in requirement.groups()],
        "rationale": Wide(cut(requirement.rationale, 600)),
        "cannot_show": Wide(cut(requirement.cannot_show, 600)),
    }


def _group(group: SupportGroup) -> dict[str, object]:
    """The controls with one kind of support, and what is said of them."""
    codes = ", ".join(f"{code} ({why})" if why else code for code, why in group.controls)
    said = f"{SAID[group.support]} ({group.why})" if group.why else SAID[group.support]
    return {"said": said, "kind": KINDS[group.support], "codes": Wide(cut(codes, 1200))}
