"""The plain sentences of a report: what the verdict means, and how big the failures are."""

from kafka_audit.report.gates import FAILED, INCOMPLETE, PASSED
from kafka_audit.report.model import Report
from kafka_audit.safe_text import percent


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: ``1 topic``, ``1,234 topics``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def coverage(report: Report) -> str:
    """How much of what applies was assessed, as a sentence part; never a percentage of nothing."""
    counts = report.counts
    if not counts.applicable:
        return "nothing that applies was assessed"
    return f"{percent(counts.assessed, counts.applicable)} of what applies was assessed"


def failures(report: Report) -> str:
    """How many controls fail, by severity; says so when none does."""
    failing = report.failing
    ran = sum(result.counts is not None for result in report.results)
    if not failing:
        return f"none of {counted(ran, 'control')} fails" if ran else "no control ran"
    severities = [f"{len(results)} {name}" for name, results, _ in report.by_severity() if results]
    verb = "fails" if len(failing) == 1 else "fail"
    return f"{len(failing)} of {counted(ran, 'control')} {verb} ({', '.join(severities)})"


def summary(report: Report) -> str:
    """One sentence that says what the verdict is and why."""
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
