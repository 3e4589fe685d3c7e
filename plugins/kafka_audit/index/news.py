"""What is new of a cluster since it was last told: each change once, and nothing that has not changed.

Two kinds of news: events (failures that are new or got worse, records lost, losses foreseen), and states that began or ended (a void
audit, stale evidence, an error budget that burns too fast). A state that was told as bad is told again only when it has ended.
"""

import hashlib
import json
from collections.abc import Set
from dataclasses import dataclass
from datetime import datetime, timedelta

from kafka_audit.audit.outcome import PASSED, VOID
from kafka_audit.findings import Severity
from kafka_audit.index.overview import LISTED, Burn, Loss, Overview
from kafka_audit.index.told import Told
from kafka_audit.report.comparison import Change, ChangedFinding
from kafka_audit.report.inert_text import chat
from kafka_audit.safe_text import grouped

NEW_FAILURES, LOSS, BUDGET_BURN, IS_VOID, STALE, RECOVERED = "new_failures", "loss", "budget_burn", "void", "stale", "recovered"
UNFINISHED = "unfinished"
"""The kinds of news; UNFINISHED: an audit that ended without a result, or did not end in time."""

LINES = 3
"""The largest number of lines of a news item."""

_GATE, _BURN, _UNUSABLE = "gate:", "burn:", "unusable"
_DAY_MS = 86_400_000
_MOST_STANDING = 500
_AGAIN = {
    IS_VOID: "The audit has a result again.",
    _UNUSABLE: "The newest audit can be read again.",
    STALE: "Audits and evidence are recent again.",
    UNFINISHED: "An audit has finished again.",
}


@dataclass(frozen=True, kw_only=True)
class News:
    """One thing to tell, in at most three lines of inert text; ``key`` is the same as long as it is the same thing."""

    kind: str
    severity: Severity
    key: str
    lines: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Observed:
    """How a cluster stands at ``now``.

    ``overview``: of the audit that was sealed last; None if there is none or, ``unusable`` says why, its index cannot be used. ``waived``:
    the (control_id, resource) of its waived failures. ``audit_at``: when the newest sealed audit began, or the oldest one if none is
    sealed; ``evidence_at``: the time of the newest snapshot; None: there is none. ``unfinished``: what happened to a newer audit that is not
    sealed and should be; ``open``: whether there is such a newer audit, be it only running.
    """

    cluster: str
    now: datetime
    overview: Overview | None = None
    unusable: str = ""
    waived: Set[tuple[str, str]] = frozenset()
    audit_at: datetime | None = None
    evidence_at: datetime | None = None
    unfinished: str = ""
    open: bool = False


def find_news(observed: Observed, told: Told, *, least: Severity, stale_hours: float) -> tuple[tuple[News, ...], Told]:
    """What is new to one who was told ``told``, worst first, and what it knows once it was told that.

    ``least``: failures below this severity are no news. ``stale_hours``: how old audits and evidence may be.
    """
    failures = _failures(observed, told, least)
    lost, told = _losses(observed.overview, told)
    bad, good = _states(observed, told, stale_hours)
    begun = [item for key, item in bad.items() if key not in told.standing]
    if failures:  # they say why the gate failed
        begun = [item for item in begun if not item.key.startswith(_GATE)]
    ended = [key for key in told.standing if key in good]
    items = [*failures, *lost, *begun, *([_recovered(ended, told)] if ended else [])]
    gates = {key for key in bad if key.startswith(_GATE)}
    kept = {
        key: line for key, line in told.standing.items() if key not in good and not (gates and key.startswith(_GATE) and key not in gates)
    }
    kept |= {key: item.lines[0] for key, item in bad.items()}
    audit_id = observed.overview.audit_id if observed.overview and _is_newer(observed.overview, told) else told.audit_id
    after = told.model_copy(update={"audit_id": audit_id, "standing": dict([*kept.items()][-_MOST_STANDING:])})
    return tuple(sorted(items, key=lambda item: item.severity.rank)), after


def loss_key(loss: Loss) -> str:
    """The key of a group partition; its names may be of any length."""
    return _key(loss.group_id, loss.topic, str(loss.partition))


def _key(*names: str) -> str:
    return hashlib.sha256(json.dumps(names).encode()).hexdigest()[:32]


def _is_newer(overview: Overview, told: Told) -> bool:
    return told.audit_id is None or overview.audit_id > told.audit_id


def _failures(observed: Observed, told: Told, least: Severity) -> list[News]:
    """Failures that are new or got worse, by the audit's comparison; to one who was told nothing, how many there are."""
    overview = observed.overview
    if overview is None or overview.verdict == VOID or not _is_newer(overview, told):
        return []
    if told.audit_id is None:
        return _standing_failures(overview, least)
    if overview.changes is None:
        return []
    found = {change: _changed(observed, overview, change, least) for change in (Change.NEW, Change.WORSE)}
    listed = sorted((one for ones in found.values() for one in ones), key=lambda one: _severity(one).rank)
    if not listed:
        return []
    new, worse = len(found[Change.NEW]), len(found[Change.WORSE])
    said = [f"{_counted(new, 'failure')} {'is' if new == 1 else 'are'} new"] if new else []
    said += [f"{_counted(worse, 'failure')} got worse"] if worse else []
    cut = sum(_not_listed(overview, change, least) for change in found)
    more = f"; {grouped(cut)} more are not listed, of this severity or a lower one" if cut else ""
    lines = [f"{' and '.join(said)} ({_or_above(least)}){more}."]
    lines += [_failure_line(one) for one in listed[: LINES - 1]]
    if len(listed) > LINES - 1:
        lines[-1] += f" (and {grouped(len(listed) - LINES + 1)} more)"
    return [News(kind=NEW_FAILURES, severity=_severity(listed[0]), key=f"{NEW_FAILURES}:{overview.audit_id}", lines=tuple(lines))]


def _standing_failures(overview: Overview, least: Severity) -> list[News]:
    counts = {one: found.results - found.waived for one in Severity if one.at_least(least) and (found := overview.failures(one.value))}
    failing = {one: number for one, number in counts.items() if number > 0}
    if not failing:
        return []
    each = ", ".join(f"{grouped(number)} {one.value}" for one, number in failing.items())
    line = f"{_counted(sum(failing.values()), 'failure')} stood when notifications began ({each}); from now on only changes are told."
    return [
        News(kind=NEW_FAILURES, severity=min(failing, key=lambda one: one.rank), key=f"{NEW_FAILURES}:{overview.audit_id}", lines=(line,))
    ]


def _changed(observed: Observed, overview: Overview, change: Change, least: Severity) -> list[ChangedFinding]:
    """The listed findings of a change that are severe enough and not waived."""
    changes = overview.changes.listed if overview.changes else ()
    severe = [one for one in changes if one.change == change and one.severity is not None and _severity(one).at_least(least)]
    return [one for one in severe if (one.control_id, one.resource) not in observed.waived]


def _not_listed(overview: Overview, change: Change, least: Severity) -> int:
    """How many results of a change the overview does not list, where the last one listed is severe enough; they are worst first."""
    if overview.changes is None:
        return 0
    listed = [one for one in overview.changes.listed if one.change == change]
    cut = overview.changes.counts.get(change.value, 0) - len(listed)
    return cut if cut > 0 and listed and _severity(listed[-1]).at_least(least) else 0


def _severity(one: ChangedFinding) -> Severity:
    """Its severity; info for a word that is none, which a file that others wrote may hold."""
    return next((known for known in Severity if known.value == one.severity), Severity.INFO)


def _failure_line(one: ChangedFinding) -> str:
    worse = f", {chat(one.severity_before, 10)} before" if one.change == Change.WORSE and one.severity_before else ""
    return f"{_severity(one).value}{worse}: {chat(one.code, 12)} {chat(one.title, 80)}, {chat(one.subject, 20)} {chat(one.resource)}"


def _losses(overview: Overview | None, told: Told) -> tuple[list[News], Told]:
    """Records lost since, and losses foreseen within a day that were not told; what is not known now stays as it was told."""
    if overview is None or overview.loss is None:
        return [], told
    items, update = [], {}
    if overview.loss.records is not None:
        lost = {loss_key(one): one.lost or 0 for one in overview.happened_losses}
        known_all = len(told.lost) < LISTED
        grown = {key: number - told.lost.get(key, 0) for key, number in lost.items() if known_all or key in told.lost}
        amount = max(overview.loss.records - told.lost_records, sum(more for more in grown.values() if more > 0))
        if amount > 0:
            worst = sorted(overview.happened_losses, key=lambda one: -grown.get(loss_key(one), 0))[: LINES - 1]
            total = f"; {grouped(overview.loss.records)} in all, by {_counted(overview.loss.groups, 'group')}"
            lines = [f"{_counted(amount, 'more record')} {'was' if amount == 1 else 'were'} lost unread{total}."]
            lines += [f"{_place(one)}: {_counted(one.lost or 0, 'record')} lost" for one in worst if grown.get(loss_key(one), 0) > 0]
            items.append(News(kind=LOSS, severity=Severity.CRITICAL, key=f"{LOSS}:{overview.audit_id}", lines=tuple(lines)))
        update |= {"lost_records": overview.loss.records, "lost": lost}
    soon = [one for one in overview.next_losses if one.time_to_loss_ms is not None and one.time_to_loss_ms <= _DAY_MS]
    untold = [one for one in soon if loss_key(one) not in told.losing]
    if untold:
        more = max(0, (overview.loss.within_a_day or 0) - len(soon))
        cut = f" ({grouped(more)} more are not listed)" if more else ""
        lose = "partition loses" if len(untold) == 1 else "partitions lose"
        lines = [f"{grouped(len(untold))} more {lose} unread records within a day, at the rates seen{cut}."]
        lines += [f"{_place(one)}: in about {_hours(one.time_to_loss_ms or 0)}" for one in untold[: LINES - 1]]
        items.append(News(kind=LOSS, severity=Severity.CRITICAL, key=f"losing:{overview.audit_id}", lines=tuple(lines)))
    if untold or overview.loss.within_a_day is not None:
        known = [loss_key(one) for one in soon]
        before = [] if overview.loss.within_a_day is not None else [key for key in told.losing if key not in known]
        update |= {"losing": tuple([*known, *before][:LISTED])}
    return items, told.model_copy(update=update)


def _place(one: Loss) -> str:
    return f"group {chat(one.group_id, 80)} on {chat(one.topic, 80)}-{one.partition}"


def _hours(milliseconds: int) -> str:
    hours = max(0, milliseconds) / 3_600_000
    return f"{hours:.0f} h" if hours >= 2 else f"{hours * 60:.0f} min"


def _states(observed: Observed, told: Told, stale_hours: float) -> tuple[dict[str, News], set[str]]:
    """The states that are bad now, by key, and the keys of those that are known to be good. One in neither is not known."""
    bad: list[News] = [*_stale(observed, stale_hours)]
    good: set[str] = set() if bad else {STALE}
    if observed.unfinished:
        line = f"An audit did not finish: {chat(observed.unfinished, 200)}"
        bad.append(News(kind=UNFINISHED, severity=Severity.HIGH, key=UNFINISHED, lines=(line,)))
    elif not observed.open:
        good.add(UNFINISHED)
    overview = observed.overview
    if overview is None:
        if observed.unusable:
            line = f"The newest audit cannot be used: {chat(observed.unusable, 300)}"
            bad.append(News(kind=IS_VOID, severity=Severity.HIGH, key=_UNUSABLE, lines=(line,)))
        return {item.key: item for item in bad}, good
    good.add(_UNUSABLE)
    if overview.verdict == VOID:
        lines = ("The audit is void: its evidence is not fit to be judged, so nothing is known of this cluster.", *_reasons(overview))
        bad.append(News(kind=IS_VOID, severity=Severity.HIGH, key=IS_VOID, lines=lines))
        return {item.key: item for item in bad}, good
    good.add(IS_VOID)
    if overview.verdict == PASSED:
        good |= {key for key in told.standing if key.startswith(_GATE)}
    else:
        lines = (f"The audit ended {overview.verdict}.", *_reasons(overview))
        bad.append(News(kind=NEW_FAILURES, severity=Severity.HIGH, key=f"{_GATE}{overview.verdict}", lines=lines))
    bad += [_burn(one) for one in overview.burns if one.burn is not None]
    if len(overview.burns) < LISTED:  # one that is not among them has ended
        named = {_burn_key(one) for one in overview.burns}
        good |= {key for key in told.standing if key.startswith(_BURN) and key not in named}
    return {item.key: item for item in bad}, good


def _stale(observed: Observed, stale_hours: float) -> list[News]:
    """A cluster of which there is nothing at all is not stale: nobody began to audit it."""
    oldest = observed.now - timedelta(hours=stale_hours)
    ages = [("audit", observed.audit_at), ("evidence", observed.evidence_at)]
    old = [f"the newest {what} is of {at:%Y-%m-%d %H:%M} UTC" for what, at in ages if at is not None and at < oldest]
    if not old:
        return []
    line = f"Nothing recent is known: {' and '.join(old)}, more than {stale_hours:g} h ago."
    return [News(kind=STALE, severity=Severity.HIGH, key=STALE, lines=(line,))]


def _burn_key(one: Burn) -> str:
    return f"{_BURN}{_key(one.group_id, one.sla)}"


def _burn(one: Burn) -> News:
    rate = f"{one.burn or 0:.1f} times as fast as its target of {one.target_percent:g} % allows"
    windows = f"over {_length(one.window_hours)} and {_length(one.short_window_hours)}"
    line = f"Group {chat(one.group_id, 80)} uses up the error budget of {chat(one.sla, 40)} {rate}, {windows}."
    severity = Severity.CRITICAL if one.threshold >= 6 else Severity.HIGH
    return News(kind=BUDGET_BURN, severity=severity, key=_burn_key(one), lines=(line,))


def _length(hours: float) -> str:
    return f"{hours * 60:.0f} min" if hours < 1 else f"{hours:g} h"


def _recovered(ended: list[str], told: Told) -> News:
    said = ["The audit passes again." if key.startswith(_GATE) else _AGAIN.get(key) or f"Over: {told.standing[key]}" for key in ended]
    lines = said[:LINES]
    if len(said) > LINES:
        lines[-1] += f" (and {grouped(len(said) - LINES)} more)"
    return News(kind=RECOVERED, severity=Severity.INFO, key=f"{RECOVERED}:{','.join(ended)}"[:200], lines=tuple(lines))


def _reasons(overview: Overview) -> tuple[str, ...]:
    return tuple(chat(one, 200) for one in overview.reasons[: LINES - 1])


def _or_above(least: Severity) -> str:
    return least.value if least == Severity.CRITICAL else f"{least.value} or above"


def _counted(number: int, noun: str) -> str:
    return f"{grouped(number)} {noun}{'' if number == 1 else 's'}"
