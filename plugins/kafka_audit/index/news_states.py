"""States of a cluster that are bad or good: a void audit, stale evidence, a failed gate, an error budget that burns too fast."""

from collections.abc import Sequence
from datetime import timedelta

from kafka_audit.audit.outcome import PASSED, VOID
from kafka_audit.findings import Severity
from kafka_audit.index.news_item import BUDGET_BURN, IS_VOID, LINES, NEW_FAILURES, RECOVERED, STALE, UNFINISHED, News, Observed, key_of
from kafka_audit.index.overview import LISTED, Burn, Overview
from kafka_audit.index.told import Told
from kafka_audit.report.inert_text import chat
from kafka_audit.safe_text import grouped

GATE = "gate:"
"""How the key of a verdict that is not PASSED begins."""
_BURN, _UNUSABLE = "burn:", "unusable"
_AGAIN = {
    IS_VOID: "The audit has a result again.",
    _UNUSABLE: "The newest audit can be read again.",
    STALE: "Audits and evidence are recent again.",
    UNFINISHED: "An audit has finished again.",
}


def find_states(observed: Observed, told: Told, stale_hours: float) -> tuple[dict[str, News], set[str]]:
    """The states that are bad now, by key, and the keys of those that are known to be good. One in neither is not known."""
    bad: list[News] = [*_stale(observed, stale_hours)]
    good: set[str] = set() if bad or observed.audit_at is None else {STALE}
    if observed.unfinished:
        line = f"An audit did not finish: {chat(observed.unfinished, 200)}"
        bad.append(News(kind=UNFINISHED, severity=Severity.HIGH, key=UNFINISHED, lines=(line,)))
    overview = observed.overview
    # An audit that left no folder is not missed until a later one is sealed.
    if overview is not None and not observed.unfinished and not observed.running and overview.audit_id > (told.sealed_id or ""):
        good.add(UNFINISHED)
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
        # A pass of a part of the cluster, or of a looser gate, is no end of what the whole was told to fail.
        good |= set() if overview.judged_less else {key for key in told.standing if key.startswith(GATE)}
    else:
        lines = (f"The audit ended {overview.verdict}.", *_reasons(overview))
        bad.append(News(kind=NEW_FAILURES, severity=Severity.HIGH, key=f"{GATE}{overview.verdict}", lines=lines))
    bad += [_burn(one) for one in overview.burns if one.burn is not None]
    if len(overview.burns) < LISTED and not overview.narrowed:  # one that is not among them has ended
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
    return f"{_BURN}{key_of(one.group_id, one.sla)}"


def _burn(one: Burn) -> News:
    rate = f"{one.burn or 0:.1f} times as fast as its target of {one.target_percent:g} % allows"
    windows = f"over {_length(one.window_hours)} and {_length(one.short_window_hours)}"
    line = f"Group {chat(one.group_id, 80)} uses up the error budget of {chat(one.sla, 40)} {rate}, {windows}."
    severity = Severity.CRITICAL if one.threshold >= 6 else Severity.HIGH
    return News(kind=BUDGET_BURN, severity=severity, key=_burn_key(one), lines=(line,))


def _length(hours: float) -> str:
    return f"{hours * 60:.0f} min" if hours < 1 else f"{hours:g} h"


def recovered(ended: Sequence[str], told: Told) -> News:
    """That states ended which were told as bad; ``ended``: their keys."""
    again = {key: "The audit passes again." if key.startswith(GATE) else _AGAIN.get(key) for key in ended}
    said = [line or f"No more: {chat(told.standing[key], 400)}" for key, line in again.items()]
    lines = said[:LINES]
    if len(said) > LINES:
        lines[-1] += f" (and {grouped(len(said) - LINES)} more)"
    return News(kind=RECOVERED, severity=Severity.INFO, key=f"{RECOVERED}:{','.join(ended)}"[:200], lines=tuple(lines))


def _reasons(overview: Overview) -> tuple[str, ...]:
    return tuple(chat(one, 200) for one in overview.reasons[: LINES - 1])
