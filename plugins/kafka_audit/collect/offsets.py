"""Start, end and last stable offset of every partition, and how far retention is from what groups have read."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

import pyarrow as pa

from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.failures import Failure
from kafka_audit.cluster.leaders import Leaders
from kafka_audit.cluster.offsets import EARLIEST, LATEST, LIST_OFFSETS, MAX_TIMESTAMP, MAX_TIMESTAMP_VERSION, Offset
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.tables import READ_AT, table

NAME = "offsets"
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("log_start", pa.int64()),
        ("log_end", pa.int64()),
        ("last_stable", pa.int64()),
        ("max_timestamp_ms", pa.int64()),
        ("max_timestamp_offset", pa.int64()),
        ("headroom_timestamp_ms", pa.int64()),
        ("headroom_offset", pa.int64()),
        ("error", pa.string()),
        ("read_at", READ_AT),
    ]
)
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NOTHING = Offset(offset=None, timestamp_ms=None)
Key = tuple[str, int]
Found = Mapping[Key, Offset | Failure]


@dataclass(frozen=True, kw_only=True, slots=True)
class Log:
    """Log start and log end of one partition."""

    start: int
    end: int


def collect(
    cluster: Cluster,
    leaders: Leaders,
    partitions: Sequence[Key],
    *,
    commits: Mapping[Key, int],
    retention_ms: Mapping[str, int],
    positions_only: bool = False,
    now: Callable[[], datetime],
    errors: ErrorLog,
) -> pa.Table:
    """One row per partition. ``commits`` are the highest committed offsets, read before; ``retention_ms`` the limits by topic.

    The order is start, last stable, end, so that start <= last stable <= end holds in each row although records arrive meanwhile.
    Where a commit lies beyond the end, the end is read once more and the later one kept: a commit can overtake the first reading.
    With ``positions_only`` the columns of highest timestamp and headroom are not asked for and stay null.
    """
    read_at = now()
    starts = cluster.list_offsets(leaders, dict.fromkeys(partitions, EARLIEST))
    stable = cluster.list_offsets(leaders, dict.fromkeys(partitions, LATEST), read_committed=True)
    ends = cluster.list_offsets(leaders, dict.fromkeys(partitions, LATEST))
    beyond = [key for key, commit in commits.items() if _offset(ends.get(key, _NOTHING), default=commit) < commit]
    ends |= {k: found for k, found in cluster.list_offsets(leaders, dict.fromkeys(beyond, LATEST)).items() if isinstance(found, Offset)}
    newest: Found = {}
    if not positions_only and cluster.supports(LIST_OFFSETS, MAX_TIMESTAMP_VERSION):
        newest = cluster.list_offsets(leaders, dict.fromkeys(partitions, MAX_TIMESTAMP))
    marks = {
        key: milliseconds(read_at) - retention_ms[key[0]] // 4
        for key in partitions
        if not positions_only and key in commits and retention_ms.get(key[0], -1) > 0
    }
    headroom = cluster.list_offsets(leaders, marks)
    rows = []
    for key in sorted(partitions):
        readings = (starts.get(key, _NOTHING), stable.get(key, _NOTHING), ends.get(key, _NOTHING), newest.get(key, _NOTHING))
        failure = _note(errors, (*readings, headroom.get(key, _NOTHING)))
        start, last_stable, end, latest = (_known(reading) for reading in readings)
        mark = marks.get(key) if key in headroom and isinstance(headroom[key], Offset) else None
        ahead = _known(headroom.get(key, _NOTHING)).offset
        rows.append(
            (
                *key,
                start.offset,
                end.offset,
                last_stable.offset,
                latest.timestamp_ms,
                latest.offset,
                mark,
                None if mark is None else ahead if ahead is not None else end.offset,
                failure.error if failure else None,
                read_at,
            )
        )
    return table(SCHEMA, rows)


def logs(ends: pa.Table) -> dict[Key, Log]:
    """Start and end of every partition of this dataset of which both are known."""
    columns = (ends.column(name).to_pylist() for name in ("topic", "partition", "log_start", "log_end"))
    rows = zip(*columns, strict=True)
    return {(topic, index): Log(start=start, end=end) for topic, index, start, end in rows if start is not None and end is not None}


def milliseconds(moment: datetime) -> int:
    """An aware time in milliseconds since the epoch, rounded down."""
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _note(errors: ErrorLog, readings: Sequence[Offset | Failure]) -> Failure | None:
    # One leaderless partition fails in every reading; one row says it.
    first = next((reading for reading in readings if isinstance(reading, Failure)), None)
    if first is not None:
        errors.add(NAME, first)
    return first


def _known(reading: Offset | Failure) -> Offset:
    return reading if isinstance(reading, Offset) else _NOTHING


def _offset(reading: Offset | Failure, *, default: int) -> int:
    offset = _known(reading).offset
    return default if offset is None else offset
