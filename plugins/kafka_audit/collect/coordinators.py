"""Partitions of the coordinators' topics that have no leader: what they keep is listed by no broker, and no answer says so."""

from collections.abc import Iterable

from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.failures import Failure
from kafka_audit.cluster.routing import Leaders
from kafka_audit.cluster.topics import Partition

_KEPT_IN = {
    "ListGroups": ("__consumer_offsets", "the groups that it keeps are not listed, and their members and commits cannot be read"),
    "ListTransactions": ("__transaction_state", "the transactional ids that it keeps are not listed"),
}
"""API that lists -> topic whose partition leaders are the coordinators, and what is missing without one."""


def without_leader(cluster: Cluster, api: str, partitions: Iterable[Partition]) -> tuple[Failure, ...]:
    """A failure for each partition of the topic behind ``api`` that has no leader, as listed before or now.

    Each broker lists what the partitions that it leads keep, and succeeds without a word on the others. Call it after the listing with
    the partitions that were listed before: a partition with a leader at both times had one, or moved, meanwhile.
    """
    topic, missing = _KEPT_IN[api]
    listed = [one for one in partitions if one.topic == topic]
    keys = [one.key for one in listed]
    leaders = Leaders(cluster, listed)
    before = {key for key in keys if isinstance(leaders.of(key), Failure)}
    if keys:
        leaders.look_up(keys)
    text = f"this partition of {topic} has no leader: {missing}"
    return tuple(
        Failure(api=api, error="COORDINATOR_NOT_AVAILABLE", message=text, topic=topic, partition=key[1])
        for key in sorted(keys)
        if key in before or isinstance(leaders.of(key), Failure)
    )
