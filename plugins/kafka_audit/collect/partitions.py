"""Partitions with leader, replicas, ISR and ELR; bad states are looked at twice."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.topics import Partition, Reassignment, Topic
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.tables import BROKER_IDS, READ_AT, table

NAME = "partitions"
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("leader", pa.int32()),
        ("leader_epoch", pa.int32()),
        ("replicas", BROKER_IDS),
        ("isr", BROKER_IDS),
        ("offline_replicas", BROKER_IDS),
        ("eligible_leader_replicas", BROKER_IDS),
        ("last_known_elr", BROKER_IDS),
        ("error", pa.string()),
        ("confirmed", pa.bool_()),
        ("read_at", READ_AT),
    ]
)
Key = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Seen:
    """One partition as last seen; ``confirmed`` = a bad state was still there at the second look."""

    partition: Partition
    read_at: datetime
    confirmed: bool = False


def read(
    cluster: Cluster, listed: Sequence[Partition], topics: Iterable[Topic], *, has_elr: bool, read_at: datetime, errors: ErrorLog
) -> dict[Key, Seen]:
    """The first look: what Metadata told, with the ELR where the cluster keeps one (``has_elr``: KIP-966 is finalized)."""
    detailed: Mapping[Key, Partition] = {}
    if cluster.can_describe_partitions():
        detailed, failures = cluster.describe_partitions({t.name: t.partition_count for t in topics if t.partition_count})
        errors.add_all(NAME, failures)
    return {one.key: Seen(partition=_with_elr(detailed.get(one.key, one), has_elr), read_at=read_at) for one in listed}


def is_bad(partition: Partition, adding: Mapping[Key, Iterable[int]]) -> bool:
    """True without a leader, or when a replica that is not just being added is out of sync."""
    expected = set(partition.replicas) - set(adding.get(partition.key, ()))
    return partition.leader < 0 or not expected <= set(partition.isr)


def adding_replicas(reassignments: Iterable[Reassignment]) -> dict[Key, tuple[int, ...]]:
    """Replicas that running reassignments add, by partition."""
    return {(one.topic, one.partition): one.adding_replicas for one in reassignments}


def look_again(
    cluster: Cluster, seen: Mapping[Key, Seen], bad: Sequence[Key], *, has_elr: bool, now: Callable[[], datetime], errors: ErrorLog
) -> dict[Key, Seen]:
    """The second look at partitions that were bad at the first: the later state is kept, ``confirmed`` if it is still bad.

    A restart or an election of a second is so told apart from a fault that stays.
    """
    read_at = now()
    reassignments, _ = cluster.list_reassignments()
    adding = adding_replicas(reassignments)
    names = {topic for topic, _ in bad}
    if cluster.can_describe_partitions():
        counts = {name: sum(1 for topic, _ in seen if topic == name) for name in names}
        later, failures = cluster.describe_partitions(counts)
    else:
        listing = cluster.list_topics()
        later = {one.key: one for one in listing.partitions if one.topic in names}
        failures = listing.failures
    for failure in failures:
        errors.add(NAME, replace(failure, message=f"second look at a bad partition: {failure.message}"))
    result = dict(seen)
    for key in bad:
        if key in later:
            partition = _with_elr(later[key], has_elr)
            result[key] = Seen(partition=partition, read_at=read_at, confirmed=is_bad(partition, adding))
    return result


def collect(seen: Mapping[Key, Seen]) -> pa.Table:
    """One row per partition in scope."""
    return table(SCHEMA, [_row(seen[key]) for key in sorted(seen)])


def _row(seen: Seen) -> tuple[object, ...]:
    one = seen.partition
    return (
        one.topic,
        one.partition,
        one.leader,
        one.leader_epoch,
        one.replicas,
        one.isr,
        one.offline_replicas,
        one.eligible_leader_replicas,
        one.last_known_elr,
        one.error,
        seen.confirmed,
        seen.read_at,
    )


def _with_elr(partition: Partition, has_elr: bool) -> Partition:
    # Without the feature brokers answer with empty lists, which would read as "no replica is eligible".
    return partition if has_elr else replace(partition, eligible_leader_replicas=None, last_known_elr=None)
