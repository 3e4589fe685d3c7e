"""Writes the words of a report: sentences on verdict, coverage, waivers, demands and loss; durations, bounds and rates."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timezone
from itertools import pairwise
from math import floor
from typing import TYPE_CHECKING

from kafka_audit.audit.outcome import FAILED, INCOMPLETE, PASSED, VOID
from kafka_audit.policy.slas import LagSla
from kafka_audit.policy.tiers import GroupRule, Tier, TopicRule
from kafka_audit.safe_text import percent, utc

if TYPE_CHECKING:
    from kafka_audit.report.lag import LagTables, Loss
    from kafka_audit.report.model import Report
    from kafka_audit.report.tally import Acceptance, AssessedShare

_UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


SAMPLE = "Sample data: made up, no cluster was read."
"""Said with every verdict of an audit that is made up, in every format."""


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun: ``1 topic``, ``1,234 topics``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def coverage(report: "Report") -> str:
    """How much of what applies was assessed, as a part of a sentence; without a percentage if nothing applies."""
    counts = report.counts
    if not counts.applicable:
        return "nothing that applies was assessed"
    idle = sum(result.counts is None for result in report.results)
    not_run = f", by the controls that ran; {counted(idle, 'control')} did not" if idle else ""
    still_open = f", and {counted(counts.still_open, 'result')} can only be attested by a person" if counts.still_open else ""
    return f"{percent(counts.assessed, counts.applicable)} of what applies was assessed{still_open}{not_run}"


def failures(report: "Report") -> str:
    """How many controls fail, by the severity of their worst failure, and how many judged anything, as a part of a sentence."""
    failing = report.failing
    ran = sum(result.counts is not None for result in report.results)
    judged = sum(result.counted.assessed > 0 for result in report.results)
    if not judged:
        return f"none of {counted(ran, 'control')} judged a result" if ran else "no control ran"
    idle = f", and only {judged:,} judged at least one result" if judged < ran else ""
    if not failing:
        return f"none of {counted(ran, 'control')} fails{idle}"
    worst = Counter(result.worst for result in failing)
    severities = [f"{number} {name}" for name, number in worst.items()]
    verb = "fails" if len(failing) == 1 else "fail"
    waived = f", {report.counts.waived:,} of {counted(report.counts.failed, 'failing result')} waived" if report.counts.waived else ""
    return f"{len(failing)} of {counted(ran, 'control')} {verb} ({', '.join(severities)}){waived}{idle}"


def waiver_sentence(waiver: "Acceptance") -> str:
    """Who accepted a waived failure, and until when."""
    who = f"owner {waiver.owner}, approved by {waiver.approver}"
    return f"{waiver.id} until {utc(waiver.expires)}, {who}, ticket {waiver.ticket}"


def summary(report: "Report") -> str:
    """The verdict and the reason for it in one sentence, what the gate let through in another; before them, that a sample is one."""
    return " ".join(said for said in (SAMPLE if report.sample else "", _verdict(report), let_through(report)) if said)


def _verdict(report: "Report") -> str:
    verdict = report.outcome.verdict
    if verdict == PASSED:
        return f"The policy is met{', although' if report.failing else ':'} {failures(report)}; {coverage(report)}."
    if verdict == FAILED:
        return f"The policy is not met: {failures(report)}; {coverage(report)}."
    if verdict == INCOMPLETE:
        return f"There is no verdict yet: {coverage(report)}; {failures(report)}."
    return f"{_unfit(report)}, so this audit is void: what follows is not a verdict."


def hints(report: "Report") -> str:
    """What the results of a void audit are, as a sentence; empty if there are none, and for any other audit."""
    if report.outcome.verdict != VOID or not report.counts.assessed:
        return ""
    return f"{_unfit(report)}, so these are hints, not results."


def _unfit(report: "Report") -> str:
    return "The evidence is not fit to judge" if report.gates[0].ran else "Nothing shows that the evidence is fit to judge"


def let_through(report: "Report") -> str:
    """What a gate that blocks on new failures only let through; empty if every failure blocks."""
    found = report.gates[1].let_through
    if found is None:
        return ""
    if found.why_none is not None:
        return f"The gate blocks on new failures only, and counts every failure as new: {found.why_none}."
    why = f" Failures of the previous audit do not count as old: {found.not_previous}." if found.not_previous else ""
    if not found.failures:
        return f"The gate blocks on new failures only; none that audit {found.baseline} had, too, was let through.{why}"
    verb = "was" if found.failures == 1 else "were"
    old = counted(found.failures, "failure")
    return f"The gate blocks on new failures only: {old} that audit {found.baseline} had, too, {verb} let through and still fail.{why}"


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


def duration(milliseconds: int | None) -> str:
    """A time in its two largest units, rounded down: ``3 d 4 h``, ``5 s``, ``0.25 s``; a dash if it is not known."""
    if milliseconds is None:
        return "\N{EN DASH}"
    if milliseconds < 0:
        return f"-{duration(-milliseconds)}"
    if 0 < milliseconds < 1000:
        return f"{milliseconds / 1000:g} s"
    left = milliseconds // 1000
    for (unit, size), (smaller, part) in pairwise(_UNITS):
        if left >= size:
            rest = left % size // part
            return f"{left // size:,} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{left} s"


def beat(milliseconds: int | None) -> str:
    """A time between commits: with three digits if below a minute (``4.99 s``), else as :func:`duration`."""
    return f"{milliseconds / 1000:.3g} s" if milliseconds is not None and milliseconds < 60_000 else duration(milliseconds)


def lag_time(milliseconds: int | None, is_bound: bool | None, method: str | None) -> str:
    """The lag in time, with ``≥`` if the true lag may be larger; a dash if it is not known."""
    bound = milliseconds is not None and (is_bound or method == "at least")
    return f"\N{GREATER-THAN OR EQUAL TO} {duration(milliseconds)}" if bound else duration(milliseconds)


def minute(epoch_ms: int) -> str:
    """A time to the minute in UTC: ``2026-11-20 23:15``."""
    return datetime.fromtimestamp(epoch_ms / 1000, timezone.utc).strftime("%Y-%m-%d %H:%M")


def rate(per_second: float | None) -> str:
    """A rate in records: per second if at least one, else per hour."""
    if per_second is None:
        return "\N{EN DASH}"
    if per_second == 0 or abs(per_second) >= 1:
        return f"{per_second:,.0f}/s"
    return f"{per_second * 3600:,.1f}".removesuffix(".0") + "/h"


def minutes(number: float | None) -> str:
    """Minutes with their unit, without decimals if whole: ``216 min``; a dash if they are not known."""
    return "\N{EN DASH}" if number is None else f"{number:,.1f}".removesuffix(".0") + " min"


def percentage(percent: float | None) -> str:
    """A percentage with at most three decimals, rounded down, so that 99.9996 never reads as 100 %."""
    if percent is None:
        return "\N{EN DASH}"
    return f"{floor(percent * 1000 + 1e-6) / 1000:g}%"


def no_loss(lag: "LagTables") -> str:
    """That no loss is known or foreseen, and of how many partitions, as a sentence; empty if there is a loss or it is not known of any."""
    if not lag.ran or loss(lag.loss):
        return ""
    if not lag.partition_count:
        return "No group was seen that reads a partition in scope, so there is no loss to know of."
    if not lag.loss.known:
        return ""
    return f"No record was deleted unread on {counted(lag.loss.known, 'partition')}, and none is foreseen to be within a day."


def loss_not_known(lag: "LagTables") -> str:
    """Of how many partitions it is not known whether records were or will be lost, as sentences; empty if all is known."""
    if not lag.ran:
        return "Whether records were lost is not known: verify left no lag results."
    said = []
    if lag.unknown_count:
        said.append(f"Of {counted(lag.unknown_count, 'partition')} it is not known whether records were lost.")
    if lag.loss.rates_unknown:
        unread = counted(lag.loss.rates_unknown, "partition")
        said.append(f"Of {unread} with unread records the rates are not known, so no loss can be foreseen there.")
    return " ".join(said)


def loss(found: "Loss") -> str:
    """What was lost and what will be lost within a day, as sentences; empty if there is no known loss."""
    said = []
    if found.records:
        where = f"{counted(found.partitions, 'partition')} of {counted(found.groups, 'group')}"
        verb = "was" if found.records == 1 else "were"
        said.append(f"Up to {counted(found.records, 'record')} {verb} deleted unread on {where}.")
    if found.within_a_day:
        soonest = found.next[0].time_to_loss_ms or 0
        first = f"in {duration(soonest)}" if soonest > 0 else "now"
        if found.within_a_day == 1:
            said.append(f"At the rates seen, 1 partition loses unread records {first}.")
        else:
            said.append(f"At the rates seen, {found.within_a_day:,} partitions lose unread records within a day, the first {first}.")
    return " ".join(said)


def assessed(share: "AssessedShare", not_run: int) -> str:
    """How much was assessed of what the controls of a requirement judge, and how many of these controls did not run."""
    said = f"{percent(share.assessed, share.applicable)} assessed ({share.assessed:,} of {share.applicable:,})"
    if not share.applicable:
        said = "no result counts as coverage"
    return f"{said}; {counted(not_run, 'control')} did not run" if not_run else said


_NOUNS = {"group_partition": "partition", "group_sla": "group"}


def several(subject: str, number: int) -> str:
    """A number of resources of a control's subject: ``3 brokers``, ``1 declared topic``."""
    return counted(number, _NOUNS.get(subject, subject.replace("_", " ")))
