"""Where a group stands in the log of a partition: the arithmetic of spark_jobs/lag/positions.py for one row, without Spark.

The golden table tests/lag_golden.py runs through both.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

HIDES_ITS_TIME = ("CORRUPT_MESSAGE", "DEADLINE_EXCEEDED", "INVALID_RESPONSE", "RECORD_BATCH_TOO_LARGE", "UNSUPPORTED_COMPRESSION_TYPE")
"""``error`` of ``first_unread`` where the log may be read but not this record of it.

Whoever writes to the topic can bring that about. Timestamps need not rise with the offsets, so the record may be older than its offset
tells: without its time nothing says that an SLA in seconds is kept. A missing right of the auditor is another matter: the offsets that
brokers name for a time then still decide.
"""

PERHAPS_LEFT = "not every member tells which topics it reads, so it is not known whether the group still reads this one"


@dataclass(frozen=True, slots=True)
class Position:
    """A commit in a log whose start and end are known.

    offset: where the group reads on. lag: offsets from there up to the log end. lost: offsets from the commit up to the log start.
    beyond_end: offsets from the log end up to the commit. margin: commit less log start, negative after a loss.
    """

    offset: int
    lag: int
    lost: int
    beyond_end: int
    margin: int


def position_of(committed: int, log_start: int, log_end: int) -> Position:
    """Compare a committed offset with the first offset of the log and the one after its last (high watermark)."""
    offset = max(committed, log_start)
    return Position(
        offset=offset,
        lag=max(0, log_end - offset),
        lost=max(0, log_start - committed),
        beyond_end=max(0, committed - log_end),
        margin=committed - log_start,
    )


def held_unread(offset: int, log_end: int, last_stable: int | None) -> int:
    """Offsets from where a group reads on that open transactions hold back from read_committed consumers (KIP-98); 0 if not known."""
    return 0 if last_stable is None else max(0, log_end - max(offset, last_stable))


def unread_bounds(lag: int, only_markers: bool | None, held: int = 0) -> tuple[int, int]:
    """The least and the most records unread of a lag, which counts ends of transactions, aborted records, and what open
    transactions hold back.

    ``only_markers``: nothing else follows the position; None where that is not known, and one offset then proves no record. ``held``: as
    :func:`held_unread` gives it; no lag of a group that reads with read_committed, which one reading does not tell.
    """
    if only_markers:
        return 0, 0
    return (0 if lag == 1 and only_markers is None else lag - held), lag


def is_over(limit: Mapping[str, Any], offset: int, record: Mapping[str, Any] | None) -> bool | None:
    """Whether a record from ``offset`` on is older than a limit, a row of sla_offsets; ``record`` is the row of first_unread, if any.

    Offsets below that of the limit are older. Times may be out of order: the first unread record may be older than the limit although its
    offset is higher. Between the offset and the first record that is still there may lie what compaction took, or the ends of
    transactions. None where the first record was not read and a single offset is older, which may be the end of a transaction.
    """
    first, stamp = (None, None) if record is None else (record["record_offset"], record["timestamp_ms"])
    if stamp is not None and 0 <= stamp < limit["timestamp_ms"]:
        return True
    older = limit["offset"] - (offset if first is None else first)
    return None if older == 1 and first is None else bool(older > 0)


@dataclass(frozen=True, slots=True)
class ReadTopics:
    """The topics that members have assigned or say that they subscribe, and whether there are members and all of them told both."""

    topics: frozenset[str]
    all_told: bool


def read_topics(members: Iterable[Mapping[str, Any]]) -> ReadTopics:
    """What members (rows of the dataset) read."""
    topics: set[str] = set()
    told = []
    for member in members:
        topics |= {place["topic"] for place in member["assignment"] or ()} | {*(member["subscribed_topics"] or ())}
        told.append(member["assignment"] is not None and member["subscribed_topics"] is not None)
    return ReadTopics(topics=frozenset(topics), all_told=bool(told) and all(told))


def is_abandoned(topic: str, state: str | None, read: ReadTopics) -> bool | None:
    """Whether the members of a Stable group no longer read a topic; ``read`` as :func:`read_topics` gives it.

    None where no member says that it reads it, and one did not tell what it has assigned or what it subscribes (a regular expression,
    KIP-848), or none was described.
    """
    if state != "Stable" or topic in read.topics:
        return False
    return bool(read.topics) if read.all_told else None


def position_counts(
    commits: Iterable[tuple[str, int, int | None, str | None]], logs: Mapping[tuple[str, int], tuple[Any, Any]]
) -> dict[str, int]:
    """In how many partitions groups are behind, have lost records or stand beyond the log end, and in how many that is not known.

    ``commits``: topic, partition, committed offset and error. ``logs``: topic and partition -> log start and end, or None for each.
    """
    behind = lost = beyond = unknown = 0
    for topic, partition, committed, error in commits:
        start, end = logs.get((topic, partition), (None, None))
        if committed is None and error is None:
            continue  # the group has no commit there
        if committed is None or start is None or end is None:
            unknown += 1
            continue
        found = position_of(committed, start, end)
        behind += found.lag > 0
        lost += found.lost > 0
        beyond += found.beyond_end > 0
    return {"partitions_behind": behind, "partitions_lost": lost, "partitions_beyond_end": beyond, "partitions_unknown": unknown}
