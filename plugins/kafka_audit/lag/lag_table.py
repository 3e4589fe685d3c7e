"""The table of a reading as text and as JSON with its notes, and one after another until Ctrl-C; names from the cluster are inert."""

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from math import inf
from typing import Any, TextIO

from rich.cells import cell_len

from kafka_audit.errors import CollectionError
from kafka_audit.lag.reading import Place, Rate, Reading, Row, rates
from kafka_audit.lag.rows import NOT_ASSESSED, LagRow, SlaOf, lag_rows
from kafka_audit.safe_text import shortened, utc, visible


class Sort(StrEnum):
    """What decides the order of rows: names, or a figure with the worst first and unknown ones last."""

    GROUP = "group"
    LAG = "lag"
    SECONDS = "seconds"
    LOST = "lost"
    MARGIN = "margin"


_NONE = "-"
_HEADINGS = (
    *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG", "CONSUMER-ID", "HOST", "CLIENT-ID"),
    *("LOST", "MARGIN", "LAG-SECONDS", "SLA", "STATE"),
)
_RATE_HEADINGS = ("CONSUMED/S", "PRODUCED/S")
_NAMED = 3
"""How many groups or partitions a note names."""
Render = Callable[[Reading, Reading | None], str]
"""The text of a reading, given the one before."""

_WORST: Mapping[Sort, Callable[[LagRow], float | None]] = {
    Sort.LAG: lambda row: row.lag,
    Sort.SECONDS: lambda row: None if row.lag_seconds is None else row.lag_seconds.value,
    Sort.LOST: lambda row: row.lost,
    Sort.MARGIN: lambda row: None if row.margin is None else -row.margin,
}


def as_text(reading: Reading, before: Reading | None, sla_of: SlaOf, sort: Sort) -> str:
    """Headings, rows and notes, each on one line. Rates only with an earlier reading."""
    rows = _sorted(lag_rows(reading, sla_of), sort)
    found = None if before is None else rates(before, reading)
    below = [f"  {_inert(note)}" for note in notes(reading, rows)]
    table = [_HEADINGS if found is None else (*_HEADINGS, *_RATE_HEADINGS), *(_cells(row, found) for row in rows)]
    widths = [max(cell_len(row[column]) for row in table) for column in range(len(table[0]))]
    text = [" ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table]
    if not rows:
        text = ["no group in scope has a commit or an assigned partition"]
    return "\n".join([*text, *below])


def as_json(reading: Reading, before: Reading | None, sla_of: SlaOf, sort: Sort, *, cluster: str) -> str:
    """One line: cluster, cluster_id, taken_at, rows and notes; only ASCII, so that no name can move a terminal."""
    rows = _sorted(lag_rows(reading, sla_of), sort)
    found = None if before is None else rates(before, reading)
    taken = reading.taken_at.isoformat()
    said = {"cluster": cluster, "cluster_id": reading.cluster_id, "taken_at": taken, "rows": [_object(row, found) for row in rows]}
    return json.dumps({**said, "notes": notes(reading, rows)}, ensure_ascii=True)


def heading(reading: Reading, cluster: str) -> str:
    """The line above a watched table."""
    return f"{cluster}  {utc(reading.taken_at)}  (Ctrl-C ends it)"


def _sorted(rows: Sequence[LagRow], sort: Sort) -> list[LagRow]:
    figure = _WORST.get(sort)
    if figure is None:
        return list(rows)
    # Stable: rows of the same figure stay in the order of their names.
    return sorted(rows, key=lambda row: inf if (value := figure(row)) is None else -value)


def _cells(row: LagRow, found: Mapping[Place, Rate] | None) -> tuple[str, ...]:
    texts = (row.group_id, row.topic, row.partition, row.committed, row.log_end, row.lag, row.member_id, row.host, row.client_id)
    ours = (row.lost, row.margin, row.lag_seconds, row.sla, row.state)
    rate = None if found is None else rate_of(row, found)
    speed = () if rate is None else (_speed(rate.consumed), _speed(rate.produced))
    return tuple(_cell(value) for value in (*texts, *ours, *speed))


def rate_of(row: LagRow, found: Mapping[Place, Rate]) -> Rate:
    """The rates of a row's partition."""
    place = (row.group_id, row.topic or "", -1 if row.partition is None else row.partition)
    return found.get(place, Rate(None, None))


def _speed(value: float | None) -> str | None:
    return None if value is None else f"{value:.1f}"


def _cell(value: object) -> str:
    return _NONE if value is None else _inert(str(value)).replace(" ", "\\u0020") or '""'


def _inert(text: str) -> str:
    """Without characters that draw nothing or move others, and not longer than a name may be."""
    kept, more = shortened(text)
    return visible(kept) + (f"...(+{more})" if more else "")


def _padded(cell: str, width: int) -> str:
    return cell + " " * (width - cell_len(cell))


def _object(row: LagRow, found: Mapping[Place, Rate] | None) -> dict[str, Any]:
    said: dict[str, Any] = {
        "group": row.group_id,
        "topic": row.topic,
        "partition": row.partition,
        "current_offset": row.committed,
        "log_end_offset": row.log_end,
        "lag": row.lag,
        "consumer_id": row.member_id,
        "host": row.host,
        "client_id": row.client_id,
        "lost": row.lost,
        "margin": row.margin,
        "held_back": row.held,
        "lag_seconds": None if row.lag_seconds is None else round(row.lag_seconds.value, 3),
        "lag_seconds_bound": None if row.lag_seconds is None else row.lag_seconds.bound or "exact",
        "sla": row.sla,
        "state": row.state,
        "reason": row.reason,
    }
    if found is not None:
        rate = rate_of(row, found)
        said |= {"consumed_per_second": rate.consumed, "produced_per_second": rate.produced}
    return said


def watch(
    read: Callable[[], Reading],
    render: Render,
    *,
    every_seconds: float,
    out: TextIO,
    say: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Write one reading after another, every ``every_seconds``, until KeyboardInterrupt ends it.

    A cluster that cannot be read at first is a CollectionError; later that is said, and it is asked again the next time.
    """
    before: Reading | None = None
    with suppress(KeyboardInterrupt):
        while True:
            began = time.monotonic()
            try:
                reading = read()
            except CollectionError as problem:
                if before is None:
                    raise
                say(str(problem))
            else:
                out.write(f"{render(reading, before)}\n")
                before = reading
            out.flush()
            sleep(max(0.0, every_seconds - (time.monotonic() - began)))


def notes(reading: Reading, rows: Sequence[LagRow], *, seconds: str = "LAG-SECONDS") -> list[str]:
    """One sentence for each thing that a reader of the table must know; ``seconds`` is its heading of the lag in seconds."""
    errors, groups = reading.datasets["errors"], reading.datasets["groups"]
    unlisted = [row for row in errors if row["dataset"] == "groups" and row["group_id"] is None]
    found = [f"groups are missing from this table: {_where(row)}{row['message']} ({row['error']})" for row in unlisted]
    found += _reasons((f"members not known ({row['error']})", row["group_id"]) for row in groups if row["error"])
    found += _reasons((row.reason, place_of(row)) for row in rows if row.state == NOT_ASSESSED and row.reason)
    share = [row["group_id"] for row in groups if row["group_type"] == "share"]
    if share:
        found.append(f"of share groups, COMMITTED is the start offset, and LAG counts all records from there on: {_some(share)}")
    untimed = [(row["error"], f"{row['topic']}-{row['partition']}") for row in reading.datasets["first_unread"] if row["error"]]
    found += [f"{seconds} is not from the unread record itself: {line}" for line in _reasons(untimed)]
    whole = [row for row in errors if row["dataset"] == "first_unread" and row["topic"] is None]
    found += [f"{seconds} is not from the unread record itself: {row['message']}" for row in whole]
    held = [f"{place_of(row)} ({row.held} of {row.lag})" for row in rows if row.held]
    if held:
        found.append(f"LAG counts records that open transactions hold back from read_committed consumers: {_some(held)}")
    if any(row.lost for row in rows):
        found.append("LAG counts lost records too, as kafka-consumer-groups does: what is left to read is LAG less LOST")
    return found


def _where(error: Row) -> str:
    """What an error is about, before its message: a broker, or a partition."""
    if error["topic"] is not None:
        return f"{error['topic']}-{error['partition']}: "
    return "" if error["broker_id"] is None else f"broker {error['broker_id']}: "


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
