"""Writes the sentences of a report that summarize verdict, failures, coverage and waivers."""

from collections import Counter

from kafka_audit.audit.outcome import FAILED, INCOMPLETE, PASSED
from kafka_audit.report.model import Report
from kafka_audit.report.waivers import WaiverUse
from kafka_audit.safe_text import percent, utc


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: ``1 topic``, ``1,234 topics``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def coverage(report: Report) -> str:
    """How much of what applies was assessed, as a part of a sentence; without a percentage if nothing applies."""
    counts = report.counts
    if not counts.applicable:
        return "nothing that applies was assessed"
    return f"{percent(counts.assessed, counts.applicable)} of what applies was assessed"


def failures(report: Report) -> str:
    """How many controls fail, by the severity of their worst failure, as a part of a sentence."""
    failing = report.failing
    ran = sum(result.counts is not None for result in report.results)
    if not failing:
        return f"none of {counted(ran, 'control')} fails" if ran else "no control ran"
    worst = Counter(result.worst for result in failing)
    severities = [f"{number} {name}" for name, number in worst.items()]
    verb = "fails" if len(failing) == 1 else "fail"
    waived = f", {report.counts.waived:,} of {counted(report.counts.failed, 'failing result')} waived" if report.counts.waived else ""
    return f"{len(failing)} of {counted(ran, 'control')} {verb} ({', '.join(severities)}){waived}"


def waiver_sentence(waiver: WaiverUse) -> str:
    """Who accepted a waived failure, and until when."""
    who = f"owner {waiver.owner}, approved by {waiver.approver}"
    return f"{waiver.id} until {utc(waiver.expires)}, {who}, ticket {waiver.ticket}"


def summary(report: Report) -> str:
    """One sentence with the verdict and the reason for it."""
    verdict = report.outcome.verdict
    if verdict == PASSED:
        if report.failing:
            return f"The policy is met, although {failures(report)}; {coverage(report)}."
        return f"The policy is met: {failures(report)}; {coverage(report)}."
    if verdict == FAILED:
        return f"The policy is not met: {failures(report)}; {coverage(report)}."
    if verdict == INCOMPLETE:
        return f"There is no verdict yet: {coverage(report)}; {failures(report)}."
    if not report.gates[0].ran:
        return "Nothing shows that the evidence is fit to judge, so this audit is void: what follows is not a verdict."
    return "The evidence is not fit to judge, so this audit is void: what follows is not a verdict."
