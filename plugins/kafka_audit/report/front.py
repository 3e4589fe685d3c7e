"""What the first screen of a report says: the worst failures in words, and how the audit compares with the previous one."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kafka_audit.findings import Status
from kafka_audit.report.comparison import Change
from kafka_audit.report.model import Report
from kafka_audit.report.results import ControlResult, Finding
from kafka_audit.report.tally import rank
from kafka_audit.safe_text import paragraphs

WORST = 3
_NAMED = 2
_MEANING = 240
_SENTENCE = re.compile(r"(?<=[.!?]) (?=[A-Z])")

# What is the case now on these comes before settings, which only decide what a later fault does.
_STATES = ("partition", "group_partition", "group", "group_sla", "declared_topic", "declared_group")


@dataclass(frozen=True, kw_only=True)
class Worst:
    """A failing control: ``severity`` of its worst failure without a waiver, ``failed`` of these, the first of them, what it means."""

    result: ControlResult
    position: int
    severity: str
    failed: int
    failures: tuple[Finding, ...]
    meaning: str


def worst_failures(report: Report, count: int = WORST) -> list[Worst]:
    """The worst controls that fail without a waiver: by severity, then what is the case now, then settings; then by code."""
    found = [made for position, result in enumerate(report.failing, 1) if (made := _unwaived(report, result, position))]
    return sorted(found, key=lambda one: (rank(one.severity), _state(one.result.subject), one.result.code))[:count]


def _unwaived(report: Report, result: ControlResult, position: int) -> Worst | None:
    failing = {kind: number for kind, number in result.tally.items() if kind.status == Status.FAIL.value and kind.waiver is None}
    if not failing:
        return None
    severity = min((kind.severity for kind in failing), key=rank)
    listed = [one for one in result.failures if one.severity == severity and report.waivers.find(one.waiver) is None]
    return Worst(
        result=result,
        position=position,
        severity=severity,
        failed=sum(failing.values()),
        failures=tuple(listed[:_NAMED]),
        meaning=meaning(result.control.failure_scenario) if result.control else "",
    )


def _state(subject: str) -> int:
    return _STATES.index(subject) if subject in _STATES else len(_STATES)


def meaning(scenario: str, longest: int = _MEANING) -> str:
    """The first sentences of a failure scenario, one at least, as many as fit."""
    said = ""
    for sentence in _SENTENCE.split(" ".join(paragraphs(scenario))):
        if said and len(said) + len(sentence) >= longest:
            break
        said = f"{said} {sentence}".strip()
    return said


def changes(report: Report, order: Sequence[Change] = tuple(Change)) -> list[tuple[Change, int]]:
    """How many results changed in which way since the previous audit; empty without one."""
    counts = report.comparison.counts if report.comparison else {}
    return [(change, int(counts.get(change.value, 0))) for change in order] if report.comparison else []


def changed(report: Report, result: ControlResult) -> list[tuple[Change, int]]:
    """How many of the listed failures of a control are new, worse or incomparable; empty if none is."""
    if report.comparison is None:
        return []
    found = [report.comparison.change_of(result.control_id, one.resource) for one in result.failures]
    return [(change, found.count(change)) for change in (Change.NEW, Change.WORSE, Change.INCOMPARABLE) if change in found]
