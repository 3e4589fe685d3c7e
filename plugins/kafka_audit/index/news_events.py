"""What happened since somebody was told: failures that are new or got worse, records that were lost, losses that are foreseen."""

from kafka_audit.audit.outcome import VOID
from kafka_audit.findings import Severity
from kafka_audit.index.news_item import LINES, LOSS, NEW_FAILURES, News, Observed, counted, key_of
from kafka_audit.index.overview import LISTED, Loss, Overview
from kafka_audit.index.told import Told
from kafka_audit.report.comparison import Change, ChangedFinding
from kafka_audit.report.inert_text import chat
from kafka_audit.safe_text import grouped

_DAY_MS = 86_400_000


def loss_key(loss: Loss) -> str:
    """The key of a group partition; its names may be of any length."""
    return key_of(loss.group_id, loss.topic, str(loss.partition))


def new_failures(observed: Observed, told: Told, least: Severity) -> list[News]:
    """Failures that are new or got worse, by the audit's comparison.

    To one who was told of no audit, or not of those just before this one, how many failures there are: what is new to it is not known.
    So it is if nothing could be compared. A failure that is not comparable may be new where its control did not fail when that was told.
    """
    overview = observed.overview
    if overview is None or overview.verdict == VOID or (told.audit_id is not None and overview.audit_id <= told.audit_id):
        return []
    if told.audit_id is None:
        return _all_failures(overview, least, "as notifications begin; from now on only changes are told")
    missed = sum(told.audit_id < one.audit_id < overview.audit_id and one.verdict != VOID for one in overview.past)
    if missed:
        return _all_failures(overview, least, f"in all; {counted(missed, 'audit')} before this one could not be told")
    if overview.changes is None or overview.changes.compared_with is None:
        return _all_failures(overview, least, "in all; which of them are new is not known, as nothing could be compared")
    found = {change: _changed(observed, overview, change, least) for change in (Change.NEW, Change.WORSE)}
    found[Change.INCOMPARABLE] = _perhaps_new(observed, overview, told.audit_id, least)
    listed = sorted((one for ones in found.values() for one in ones), key=lambda one: _severity(one).rank)
    if not listed:
        return []
    new, worse, perhaps = (len(found[change]) for change in (Change.NEW, Change.WORSE, Change.INCOMPARABLE))
    said = [f"{counted(new, 'failure')} {'is' if new == 1 else 'are'} new"] if new else []
    said += [f"{counted(worse, 'failure')} got worse"] if worse else []
    said += [f"{counted(perhaps, 'failure')} may be new, as the audit before could not tell"] if perhaps else []
    cut = sum(_not_listed(overview, change, least) for change in (Change.NEW, Change.WORSE))
    more = f"; up to {grouped(cut)} more are not listed" if cut else ""
    lines = [f"{' and '.join(said)} ({_or_above(least)}){more}."]
    lines += [_failure_line(one) for one in listed[: LINES - 1]]
    if len(listed) > LINES - 1:
        lines[-1] += f" (and {grouped(len(listed) - LINES + 1)} more)"
    return [News(kind=NEW_FAILURES, severity=_severity(listed[0]), key=f"{NEW_FAILURES}:{overview.audit_id}", lines=tuple(lines))]


def _all_failures(overview: Overview, least: Severity, said: str) -> list[News]:
    """How many failures there are that are severe enough and not waived, followed by what is ``said`` of them."""
    counts = {one: found.results - found.waived for one in Severity if one.at_least(least) and (found := overview.failures(one.value))}
    failing = {one: number for one, number in counts.items() if number > 0}
    if not failing:
        return []
    each = ", ".join(f"{grouped(number)} {one.value}" for one, number in failing.items())
    line = f"The audit ended {overview.verdict}: {counted(sum(failing.values()), 'failure')} ({each}) {said}."
    worst = min(failing, key=lambda one: one.rank)
    return [News(kind=NEW_FAILURES, severity=worst, key=f"{NEW_FAILURES}:{overview.audit_id}", lines=(line,))]


def _changed(observed: Observed, overview: Overview, change: Change, least: Severity) -> list[ChangedFinding]:
    """The listed findings of a change that are severe enough and not waived."""
    changes = overview.changes.listed if overview.changes else ()
    severe = [one for one in changes if one.change == change and one.severity is not None and _severity(one).at_least(least)]
    return [one for one in severe if (one.control_id, one.resource) not in observed.waived]


def _perhaps_new(observed: Observed, overview: Overview, told: str, least: Severity) -> list[ChangedFinding]:
    """Failures that the audit before could not see or judged otherwise, of controls that did not fail up to the audit ``told``."""
    old = {one.control_id for one in overview.controls if one.fails_since is not None and one.fails_since.audit_id <= told}
    return [one for one in _changed(observed, overview, Change.INCOMPARABLE, least) if one.control_id not in old]


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


def new_losses(overview: Overview | None, told: Told) -> tuple[list[News], Told]:
    """Records lost since, and losses foreseen within a day that were not told; what is not known now stays as it was told.

    So does what an audit of a part of the topics or groups did not look at.
    """
    if overview is None or overview.loss is None:
        return [], told
    partial = overview.narrowed
    items: list[News] = []
    update: dict[str, object] = {}
    if overview.loss.records is not None:
        lost = {loss_key(one): one.lost or 0 for one in overview.happened_losses}
        known_all = len(told.lost) < LISTED
        grown = {key: number - told.lost.get(key, 0) for key, number in lost.items() if known_all or key in told.lost}
        amount = max(overview.loss.records - told.lost_records, sum(more for more in grown.values() if more > 0))
        if amount > 0:
            worst = sorted(overview.happened_losses, key=lambda one: -grown.get(loss_key(one), 0))[: LINES - 1]
            more = amount < overview.loss.records
            total = f"; {grouped(overview.loss.records)} in all" if more else ""
            what = f"{counted(amount, 'more record' if more else 'record')} {'was' if amount == 1 else 'were'} lost unread"
            # As the report says it: offsets count what held no record, too.
            lines = [f"Up to {what}{total}, by {counted(overview.loss.groups, 'group')}."]
            lines += [f"{_place(one)}: up to {counted(one.lost or 0, 'record')} lost" for one in worst if grown.get(loss_key(one), 0) > 0]
            items.append(News(kind=LOSS, severity=Severity.CRITICAL, key=f"{LOSS}:{overview.audit_id}", lines=tuple(lines)))
        if partial or overview.loss.unknown:  # a smaller sum may be one over fewer partitions
            kept = {**told.lost, **{key: max(number, told.lost.get(key, 0)) for key, number in lost.items()}}
            most = sorted(kept, key=lambda key: -kept[key])[:LISTED]
            update |= {"lost_records": max(overview.loss.records, told.lost_records), "lost": {key: kept[key] for key in most}}
        else:
            update |= {"lost_records": overview.loss.records, "lost": lost}
    soon = [one for one in overview.next_losses if one.time_to_loss_ms is not None and one.time_to_loss_ms <= _DAY_MS]
    untold = [one for one in soon if loss_key(one) not in told.losing]
    if untold:
        not_listed = max(0, (overview.loss.within_a_day or 0) - len(soon))
        cut = f"; {grouped(not_listed)} more {'is' if not_listed == 1 else 'are'} not listed" if not_listed else ""
        lose = f"{'more ' if told.losing else ''}{'partition loses' if len(untold) == 1 else 'partitions lose'}"
        lines = [f"{grouped(len(untold))} {lose} unread records within a day, at the rates seen{cut}."]
        lines += [f"{_place(one)}: in about {_hours(one.time_to_loss_ms or 0)}" for one in untold[: LINES - 1]]
        items.append(News(kind=LOSS, severity=Severity.CRITICAL, key=f"losing:{overview.audit_id}", lines=tuple(lines)))
    known = [loss_key(one) for one in soon]
    foreseen = {loss_key(one) for one in overview.next_losses}
    unsure = partial or overview.loss.within_a_day is None or bool(overview.loss.unknown or overview.loss.rates_unknown)
    # One that was told is told again only after no loss was foreseen there, so that a time about a day is told once.
    before = [key for key in told.losing if key not in known and (unsure or key in foreseen)]
    update |= {"losing": tuple([*known, *before][:LISTED])}
    return items, told.model_copy(update=update)


def _place(one: Loss) -> str:
    return f"group {chat(one.group_id, 80)} on {chat(one.topic, 80)}-{one.partition}"


def _hours(milliseconds: int) -> str:
    hours = max(0, milliseconds) / 3_600_000
    return f"{hours:.0f} h" if hours >= 2 else f"{hours * 60:.0f} min"


def _or_above(least: Severity) -> str:
    return least.value if least == Severity.CRITICAL else f"{least.value} or above"
