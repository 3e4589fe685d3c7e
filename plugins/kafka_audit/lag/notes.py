"""The sentences below the table: what could not be read, and how figures are to be understood."""

from collections.abc import Iterable, Sequence

from kafka_audit.lag.reading import Reading
from kafka_audit.lag.rows import NOT_ASSESSED, LagRow

_NAMED = 3


def notes(reading: Reading, rows: Sequence[LagRow]) -> list[str]:
    """One sentence for each thing that a reader of the table must know."""
    errors, groups = reading.datasets["errors"], reading.datasets["groups"]
    unlisted = [row for row in errors if row["dataset"] == "groups" and row["group_id"] is None]
    found = [f"the groups of broker {row['broker_id']} are missing: {row['message']} ({row['error']})" for row in unlisted]
    found += _reasons((f"members not known ({row['error']})", row["group_id"]) for row in groups if row["error"])
    found += _reasons((row.reason, place_of(row)) for row in rows if row.state == NOT_ASSESSED and row.reason)
    share = [row["group_id"] for row in groups if row["group_type"] == "share"]
    if share:
        found.append(f"share groups keep no committed offsets and are not shown: {_some(share)}")
    untimed = [(row["error"], f"{row['topic']}-{row['partition']}") for row in reading.datasets["first_unread"] if row["error"]]
    found += [f"LAG-SECONDS is not from the unread record itself: {line}" for line in _reasons(untimed)]
    whole = [row for row in errors if row["dataset"] == "first_unread" and row["topic"] is None]
    found += [f"LAG-SECONDS is not from the unread record itself: {row['message']}" for row in whole]
    if any(row.lost for row in rows):
        found.append("LAG counts lost records too, as kafka-consumer-groups does: what is left to read is LAG less LOST")
    return found


def place_of(row: LagRow) -> str:
    """``group:topic-partition``, or the group alone."""
    return row.group_id if row.topic is None else f"{row.group_id}:{row.topic}-{row.partition}"


def _reasons(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Each reason once, with whom it concerns."""
    by_reason: dict[str, list[str]] = {}
    for reason, place in pairs:
        by_reason.setdefault(reason, []).append(place)
    return [f"{reason}: {_some(places)}" for reason, places in by_reason.items()]


def _some(places: Sequence[str]) -> str:
    more = len(places) - _NAMED
    return ", ".join(places[:_NAMED]) + (f" and {more} more" if more > 0 else "")
