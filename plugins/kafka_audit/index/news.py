"""What is new of a cluster since it was last told: each change once, and nothing that has not changed.

Two kinds of news: events (failures that are new or got worse, records lost, losses foreseen), and states that began or ended (a void
audit, stale evidence, an error budget that burns too fast). A state that was told as bad is told again only when it has ended.
"""

from dataclasses import replace

from kafka_audit.audit.outcome import VOID
from kafka_audit.findings import Severity
from kafka_audit.index.news_events import new_failures, new_losses
from kafka_audit.index.news_item import News, Observed
from kafka_audit.index.news_states import GATE, find_states, recovered
from kafka_audit.index.told import Told

_MOST_STANDING = 500


def find_news(observed: Observed, told: Told, *, least: Severity, stale_hours: float) -> tuple[tuple[News, ...], Told]:
    """What is new to one who was told ``told``, worst first, and what it knows once it was told that.

    ``least``: failures below this severity are no news. ``stale_hours``: how old audits and evidence may be.
    """
    if observed.overview is not None and observed.overview.audit_id < (told.sealed_id or ""):  # the newer one is being done again
        observed = replace(observed, overview=None)
    failures = new_failures(observed, told, least)
    lost, after = new_losses(observed.overview, told)
    bad, good = find_states(observed, told, stale_hours)
    begun = [item for key, item in bad.items() if key not in told.standing]
    if failures:  # they say why the gate failed
        begun = [item for item in begun if not item.key.startswith(GATE)]
    ended = [key for key in told.standing if key in good]
    items = [*failures, *lost, *begun, *([recovered(ended, told)] if ended else [])]
    return tuple(sorted(items, key=lambda item: item.severity.rank)), after.model_copy(update=_after(observed, told, bad, good))


def _after(observed: Observed, told: Told, bad: dict[str, News], good: set[str]) -> dict[str, object]:
    """The fields of Told that name audits and states, once the news is told. Only one verdict stands at a time."""
    gates = {key for key in bad if key.startswith(GATE)}
    other_gates = {key for key in told.standing if gates and key.startswith(GATE)} - gates
    kept = {key: line for key, line in told.standing.items() if key not in good | other_gates}
    kept |= {key: item.lines[0] for key, item in bad.items() if key not in kept}
    update: dict[str, object] = {"standing": dict([*kept.items()][-_MOST_STANDING:])}
    if (overview := observed.overview) is not None:
        update["sealed_id"] = max(told.sealed_id or "", overview.audit_id)
        if overview.verdict != VOID:  # a void audit says nothing of failures
            update["audit_id"] = max(told.audit_id or "", overview.audit_id)
    return update
