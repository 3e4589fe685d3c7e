"""Writes the sentences of a report that summarize verdict, failures, coverage, waivers and the policy's demands."""

from collections import Counter
from collections.abc import Iterable

from kafka_audit.audit.outcome import FAILED, INCOMPLETE, PASSED
from kafka_audit.policy.slas import LagSla
from kafka_audit.policy.tiers import GroupRule, Tier, TopicRule
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


def patterns_of(rules: Iterable[TopicRule | GroupRule], tier: str, default_tier: str) -> list[str]:
    """The patterns that assign topics or groups to a tier, in the policy's order."""
    return [rule.pattern for rule in rules if (rule.tier or default_tier) == tier]


def parameters_of(tier: Tier) -> list[tuple[str, str, float]]:
    """The parameters that a tier changes, as (control's code, parameter, value), sorted."""
    return sorted((code, key, value) for code, values in tier.parameters.items() for key, value in values.items())


def demands(sla: LagSla) -> list[str]:
    """The demands of a lag SLA and the topics and tier that it covers, in words."""
    limits = ((sla.max_lag_records, "records"), (sla.max_lag_seconds, "seconds"), (sla.max_no_progress_seconds, "seconds without progress"))
    said = [f"topics {sla.topics}"] if sla.topics != "*" else []
    said += [f"tier {sla.tier}"] if sla.tier is not None else []
    said += [f"at most {limit:,} {unit}" for limit, unit in limits if limit is not None]
    said += [f"broken by {sla.breach.samples} of {sla.breach.of} samples"] if sla.breach.of > 1 else []
    if sla.availability is not None:
        said.append(f"in {sla.availability.target_percent:g}% of the minutes of {sla.availability.window_days} days")
    return [*said, "with quiet hours"] if sla.quiet_hours else said
