"""Formats lag and loss as text: durations, bounds, rates, and what was or will be lost."""

from datetime import datetime, timezone
from itertools import pairwise
from math import floor

from kafka_audit.report.lag_groups import GroupLag
from kafka_audit.report.lag_partitions import GroupPartition, Loss
from kafka_audit.report.sentences import counted

_UNITS = (("d", 86_400), ("h", 3600), ("min", 60), ("s", 1))


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


def lag_time(one: GroupLag | GroupPartition) -> str:
    """The lag in time, with ``≥`` if the true lag may be larger; a dash if it is not known."""
    bound = one.lag_ms is not None and (one.lag_ms_is_bound or one.lag_ms_method == "at least")
    return f"\N{GREATER-THAN OR EQUAL TO} {duration(one.lag_ms)}" if bound else duration(one.lag_ms)


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


def loss(found: Loss) -> str:
    """What was lost and what will be lost within a day, as sentences; empty if there is no known loss."""
    said = []
    if found.records:
        where = f"{counted(found.partitions, 'partition')} of {counted(found.groups, 'group')}"
        said.append(f"Up to {counted(found.records, 'record')} {_were(found.records)} deleted unread on {where}.")
    if found.within_a_day:
        soonest = found.next[0].time_to_loss_ms or 0
        first = f"in {duration(soonest)}" if soonest > 0 else "now"
        if found.within_a_day == 1:
            said.append(f"At the rates seen, 1 partition loses unread records {first}.")
        else:
            said.append(f"At the rates seen, {found.within_a_day:,} partitions lose unread records within a day, the first {first}.")
    return " ".join(said)


def _were(number: int) -> str:
    return "was" if number == 1 else "were"
