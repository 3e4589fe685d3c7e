"""Start, end and last stable offset of every partition, and the offsets that retention and SLAs in seconds are measured with."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cache
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.commits import Commit
from kafka_audit.cluster.failures import Failure
from kafka_audit.cluster.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, MAX_TIMESTAMP_VERSION, Offset, list_offsets
from kafka_audit.cluster.routing import Leaders, TopicPartition
from kafka_audit.collect.datasets import OFFSETS, SLA_OFFSETS
from kafka_audit.collect.tables import ErrorLog, table

if TYPE_CHECKING:
    from kafka_audit.policy.slas import LagSla

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_NOTHING = Offset(offset=None, timestamp_ms=None)
_MORE_COLUMNS = ("last_stable", "max_timestamp_ms", "headroom_offset")
MaxLagSeconds = Callable[[str, str], int | None]
"""How many seconds a group (first) may lag on a topic (second); None where no SLA says."""


class LagSlas(Protocol):
    """What knows the lag SLA of a group on a topic: a policy."""

    def lag_sla(self, group_id: str, topic: str) -> "LagSla | None":
        """The rule that holds, or None."""


def seconds_of(policy: LagSlas | None) -> MaxLagSeconds:
    """The limits in seconds of a policy; without one there are none."""

    @cache
    def seconds(group_id: str, topic: str) -> int | None:
        sla = policy.lag_sla(group_id, topic) if policy else None
        return sla.max_lag_seconds if sla else None

    return seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Log:
    """Log start, last stable offset and log end of one partition; without a known last stable offset that is the log start."""

    start: int
    stable: int
    end: int


def offsets(
    cluster: Cluster,
    leaders: Leaders,
    partitions: Sequence[TopicPartition],
    *,
    commits: Mapping[TopicPartition, int],
    retention_ms: Mapping[str, int],
    positions_only: bool = False,
    now: Callable[[], datetime],
    errors: ErrorLog,
) -> pa.Table:
    """One row per partition. ``commits`` are the highest committed offsets, read before; ``retention_ms`` the limits by topic.

    The order is start, last stable, end, so that start <= last stable <= end holds in each row although records arrive meanwhile.
    Where a commit lies beyond the end, the end is read once more and the later one kept: a commit can overtake the first reading.
    With ``positions_only`` the columns of highest timestamp and headroom are not asked for and stay null.
    ``error`` is set where start or end could not be read. A failure of one of the other columns leaves that column null, and is an error
    of the column.
    """
    read_at = now()
    starts = list_offsets(cluster, leaders, dict.fromkeys(partitions, EARLIEST))
    stable = list_offsets(cluster, leaders, dict.fromkeys(partitions, LATEST), read_committed=True)
    ends = list_offsets(cluster, leaders, dict.fromkeys(partitions, LATEST))
    beyond = [k for k, commit in commits.items() if (seen := _known(ends.get(k, _NOTHING)).offset) is not None and seen < commit]
    ends |= {k: one for k, one in list_offsets(cluster, leaders, dict.fromkeys(beyond, LATEST)).items() if isinstance(one, Offset)}
    newest: Mapping[TopicPartition, Offset | Failure] = {}
    if not positions_only and cluster.supports("ListOffsets", MAX_TIMESTAMP_VERSION):
        newest = list_offsets(cluster, leaders, dict.fromkeys(partitions, MAX_TIMESTAMP))
    marks = {
        key: _time_before(read_at, retention_ms[key[0]] // 4)
        for key in partitions
        if not positions_only and key in commits and retention_ms.get(key[0], -1) > 0
    }
    headroom = list_offsets(cluster, leaders, marks)
    rows: list[tuple[object, ...]] = []
    for key in sorted(partitions):
        readings = [found.get(key, _NOTHING) for found in (starts, ends, stable, newest, headroom)]
        failure = next((reading for reading in readings[:2] if isinstance(reading, Failure)), None)
        if failure is not None:
            # A partition without a leader fails in every reading; one row says it.
            errors.add(OFFSETS, failure)
        else:
            for column, reading in zip(_MORE_COLUMNS, readings[2:], strict=True):
                if isinstance(reading, Failure):
                    errors.add(OFFSETS, reading, column=column)
        start, end, last_stable, latest, ahead = (_known(reading) for reading in readings)
        mark = marks.get(key) if isinstance(headroom.get(key), Offset) else None
        rows.append(
            (
                *key,
                start.offset,
                end.offset,
                last_stable.offset,
                latest.timestamp_ms,
                latest.offset,
                mark,
                None if mark is None else ahead.offset if ahead.offset is not None else end.offset,
                failure.error if failure else None,
                read_at,
            )
        )
    return table(OFFSETS.schema, rows)


def known_logs(ends: pa.Table) -> dict[TopicPartition, Log]:
    """Start and end of every partition of the dataset ``offsets`` of which both are known."""
    columns = (ends.column(name).to_pylist() for name in ("topic", "partition", "log_start", "last_stable", "log_end"))
    rows = zip(*columns, strict=True)
    return {
        (topic, index): Log(start=start, stable=start if stable is None else stable, end=end)
        for topic, index, start, stable, end in rows
        if start is not None and end is not None
    }


def sla_offsets(
    cluster: Cluster,
    leaders: Leaders,
    commits: Mapping[str, Sequence[Commit]],
    logs: Mapping[TopicPartition, Log],
    *,
    max_lag_seconds: MaxLagSeconds,
    now: Callable[[], datetime],
    errors: ErrorLog,
) -> pa.Table:
    """One row per partition and limit in seconds of a group that is behind on it; ``commits`` by group were read before ``logs``.

    ``offset`` is that of the first record that is not older than ``timestamp_ms``, the time of asking less the limit: records below it
    are older. Where every record is older it is the log end that was read.
    """
    wanted: dict[int, set[TopicPartition]] = {}
    for group_id, committed in commits.items():
        for commit in committed:
            key = commit.topic, commit.partition
            limit = max_lag_seconds(group_id, commit.topic)
            if limit is not None and commit.committed is not None and key in logs and commit.committed < logs[key].end:
                wanted.setdefault(limit, set()).add(key)
    rows: list[tuple[object, ...]] = []
    for limit, keys in sorted(wanted.items()):
        read_at = now()
        timestamp = _time_before(read_at, limit * 1000)
        for key, found in list_offsets(cluster, leaders, dict.fromkeys(sorted(keys), timestamp)).items():
            if isinstance(found, Failure):
                errors.add(SLA_OFFSETS, found)
                rows.append((*key, limit, timestamp, None, found.error, read_at))
            else:
                rows.append((*key, limit, timestamp, logs[key].end if found.offset is None else found.offset, None, read_at))
    return table(SLA_OFFSETS.schema, sorted(rows, key=lambda row: row[:3]))


def _time_before(moment: datetime, milliseconds: int) -> int:
    """A time so much earlier than an aware one, in milliseconds since the epoch; 0 at least, because negative ones have other meanings."""
    return max(0, (moment - _EPOCH) // timedelta(milliseconds=1) - milliseconds)


def _known(reading: Offset | Failure) -> Offset:
    return reading if isinstance(reading, Offset) else _NOTHING
