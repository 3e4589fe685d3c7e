"""Topics and their partitions, running reassignments, and topics that are hidden from the audit; bad partitions are looked at twice."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from operator import attrgetter

import pyarrow as pa

from kafka_audit.cluster.bootstrap import BrokerAddress, Cluster
from kafka_audit.cluster.brokers import list_brokers
from kafka_audit.cluster.failures import Failure
from kafka_audit.cluster.routing import TopicPartition
from kafka_audit.cluster.topics import Partition, Reassignment, Topic, TopicListing, describe_partitions, list_reassignments, list_topics
from kafka_audit.collect.datasets import PARTITIONS, REASSIGNMENTS, TOPICS
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.tables import ErrorLog, table
from kafka_audit.errors import CollectionError

_DESCRIBE_PARTITIONS = "DescribeTopicPartitions"  # since Kafka 3.7


def listing(cluster: Cluster) -> TopicListing:
    """All topics with their partitions; CollectionError when they cannot be listed, because then there is nothing to collect from."""
    found = list_topics(cluster)
    if found.cluster_id is None:
        reason = "; ".join(failure.message for failure in found.failures) or "the answer has no cluster id"
        raise CollectionError(f"the topics of the cluster could not be listed ({reason}). Nothing was stored; run again when it is back")
    return found


def topics(in_scope: Sequence[Topic], errors: ErrorLog) -> pa.Table:
    """One row per topic in scope; ``authorized_operations`` are those of the audit's principal (KIP-430), null = not told."""
    errors.add_all(TOPICS, (topic.failure for topic in in_scope if topic.failure is not None))
    rows = [
        (t.name, t.topic_id, t.is_internal, t.partition_count, t.failure.error if t.failure else None, t.authorized_operations)
        for t in in_scope
    ]
    return table(TOPICS.schema, sorted(rows, key=lambda row: str(row[0])))


def note_hidden(stored: Iterable[str], visible: Iterable[str], scope: Scope, errors: ErrorLog) -> None:
    """Record every topic that brokers store and Metadata does not show, as the error TOPIC_HIDDEN.

    Metadata leaves out, without any error, topics that the principal may not describe; DescribeLogDirs needs Describe on the
    cluster only and shows them all.
    """
    text = (
        "a broker stores this topic and Metadata does not show it: the audit's principal lacks Describe on it "
        "(or it was being created or deleted at this moment)"
    )
    for name in sorted(set(stored) - set(visible)):
        if scope.covers_topic(name):
            errors.add(TOPICS, Failure(api="Metadata", error="TOPIC_HIDDEN", message=text, topic=name))


def reassignments(running: Iterable[Reassignment]) -> pa.Table:
    """One row per partition that is being reassigned."""
    return table(REASSIGNMENTS.schema, map(attrgetter(*REASSIGNMENTS.schema.names), running))


@dataclass(frozen=True, kw_only=True)
class SeenPartition:
    """One partition as last seen; ``confirmed`` = a bad state was still there at the second look."""

    partition: Partition
    read_at: datetime
    confirmed: bool = False


def first_look(
    cluster: Cluster, listed: Sequence[Partition], in_scope: Iterable[Topic], *, has_elr: bool, read_at: datetime, errors: ErrorLog
) -> dict[TopicPartition, SeenPartition]:
    """Partitions as Metadata listed them, with the ELR where the cluster keeps one (``has_elr``: KIP-966 is finalized)."""
    detailed: Mapping[TopicPartition, Partition] = {}
    if cluster.supports(_DESCRIBE_PARTITIONS):
        detailed, failures = describe_partitions(cluster, {t.name: t.partition_count for t in in_scope if t.partition_count})
        errors.add_all(PARTITIONS, failures)
    return {one.key: SeenPartition(partition=_with_elr(detailed.get(one.key, one), has_elr), read_at=read_at) for one in listed}


def bad_partitions(
    seen: Mapping[TopicPartition, SeenPartition], running: Iterable[Reassignment], alive: Collection[int]
) -> list[TopicPartition]:
    """Partitions without a leader among the brokers that are alive, or with a replica out of sync that no reassignment is just adding."""
    adding = {(one.topic, one.partition): set(one.adding_replicas) for one in running}
    return [
        key
        for key, one in seen.items()
        if one.partition.leader not in alive or not set(one.partition.replicas) - adding.get(key, set()) <= set(one.partition.isr)
    ]


def second_look(
    cluster: Cluster,
    seen: Mapping[TopicPartition, SeenPartition],
    bad: Sequence[TopicPartition],
    *,
    alive: Collection[int],
    has_elr: bool,
    now: Callable[[], datetime],
    errors: ErrorLog,
) -> tuple[dict[TopicPartition, SeenPartition], tuple[BrokerAddress, ...]]:
    """All partitions, those that were ``bad`` at the first look as they are now, ``confirmed`` if they are still bad; and who is alive now.

    So a restart or an election of a second is told apart from a fault that stays. ``alive`` are the brokers of the first look: one that
    came back since may lead a partition now, so brokers are listed again, after the leaders.
    """
    read_at = now()
    running, _ = list_reassignments(cluster)
    names = {topic for topic, _ in bad}
    if cluster.supports(_DESCRIBE_PARTITIONS):
        counts = {name: sum(1 for topic, _ in seen if topic == name) for name in names}
        found, failures = describe_partitions(cluster, counts)
        brokers = list_brokers(cluster)
    else:
        listed = list_topics(cluster)
        found, failures, brokers = {one.key: one for one in listed.partitions}, listed.failures, listed.brokers
    for failure in failures:
        errors.add(PARTITIONS, replace(failure, message=f"second look at a bad partition: {failure.message}"))
    later = {key: SeenPartition(partition=_with_elr(found[key], has_elr), read_at=read_at) for key in bad if key in found}
    known = {*alive, *(broker.broker_id for broker in brokers)}
    later |= {key: replace(later[key], confirmed=True) for key in bad_partitions(later, running, known)}
    return {**seen, **later}, brokers


def partitions(seen: Mapping[TopicPartition, SeenPartition]) -> pa.Table:
    """One row per partition in scope."""
    columns = attrgetter(*PARTITIONS.schema.names[:-2])
    return table(PARTITIONS.schema, [(*columns(one.partition), one.confirmed, one.read_at) for _, one in sorted(seen.items())])


def _with_elr(partition: Partition, has_elr: bool) -> Partition:
    # Without the feature brokers answer with empty lists, which would read as "no replica is eligible".
    return partition if has_elr else replace(partition, eligible_leader_replicas=None, last_known_elr=None)
