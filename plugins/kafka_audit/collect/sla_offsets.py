"""The offsets that lag SLAs in seconds demand: what a group must have passed at this moment."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from kafka_audit.cluster.commits import Commit
from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.failures import Failure
from kafka_audit.cluster.leaders import Leaders
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.offsets import Key, Log, milliseconds
from kafka_audit.collect.tables import READ_AT, table

if TYPE_CHECKING:
    from kafka_audit.policy.slas import LagSla

NAME = "sla_offsets"
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("max_lag_seconds", pa.int32()),
        ("timestamp_ms", pa.int64()),
        ("offset", pa.int64()),
        ("error", pa.string()),
        ("read_at", READ_AT),
    ]
)
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


def collect(
    cluster: Cluster,
    leaders: Leaders,
    commits: Mapping[str, Sequence[Commit]],
    logs: Mapping[Key, Log],
    *,
    max_lag_seconds: MaxLagSeconds,
    now: Callable[[], datetime],
    errors: ErrorLog,
) -> pa.Table:
    """One row per partition and limit in seconds of a group that is behind on it; ``commits`` by group were read before ``logs``.

    ``offset`` is that of the first record that is not older than ``timestamp_ms``, the time of asking less the limit: records below it
    are older. Where every record is older it is the log end that was read.
    """
    wanted: dict[int, set[Key]] = {}
    for group_id, committed in commits.items():
        for commit in committed:
            key = commit.topic, commit.partition
            limit = max_lag_seconds(group_id, commit.topic)
            if limit is not None and commit.committed is not None and key in logs and commit.committed < logs[key].end:
                wanted.setdefault(limit, set()).add(key)
    rows: list[tuple[object, ...]] = []
    for limit, keys in sorted(wanted.items()):
        read_at = now()
        timestamp = max(0, milliseconds(read_at) - limit * 1000)
        for key, found in cluster.list_offsets(leaders, dict.fromkeys(sorted(keys), timestamp)).items():
            if isinstance(found, Failure):
                errors.add(NAME, found)
                rows.append((*key, limit, timestamp, None, found.error, read_at))
            else:
                rows.append((*key, limit, timestamp, logs[key].end if found.offset is None else found.offset, None, read_at))
    return table(SCHEMA, sorted(rows, key=lambda row: row[:3]))
