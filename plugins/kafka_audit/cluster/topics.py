"""Reads topics, partitions with their replicas, and running reassignments."""

import base64
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kafka.protocol.admin.topics import DescribeTopicPartitionsRequest, ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from kafka_audit.cluster.acls import operation_names
from kafka_audit.cluster.bootstrap import BrokerAddress, addresses_in
from kafka_audit.cluster.channel import Channel, Message
from kafka_audit.cluster.failures import Failure, error_name, refused

# The broker's own limit (max.request.partition.size.limit) is 2000 by default; more would only be cut there.
_PARTITIONS_PER_RESPONSE = 2000


@dataclass(frozen=True, kw_only=True, slots=True)
class Topic:
    """One topic as Metadata lists it; ``topic_id`` in Kafka's own text form, ``authorized_operations`` are the asking principal's."""

    name: str
    topic_id: str | None
    is_internal: bool
    partition_count: int | None
    failure: Failure | None = None
    authorized_operations: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Partition:
    """Leader and replicas of one partition; ``leader`` is -1 when there is none, the ELR is None when it was not told (KIP-966)."""

    topic: str
    partition: int
    leader: int
    leader_epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_elr: tuple[int, ...] | None = None
    error: str | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.topic, self.partition


@dataclass(frozen=True, kw_only=True, slots=True)
class TopicListing:
    """The answer to Metadata for all topics the principal may see; other topics are absent without any error.

    ``brokers`` are those that the same answer lists: alive when the leaders were.
    """

    cluster_id: str | None
    controller_id: int | None
    topics: tuple[Topic, ...]
    partitions: tuple[Partition, ...]
    failures: tuple[Failure, ...]
    brokers: tuple[BrokerAddress, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Reassignment:
    """One partition whose replicas are being moved (KIP-455)."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


def list_topics(channel: Channel) -> TopicListing:
    """All visible topics and their partitions, in one request."""
    reply = channel.ask_any(MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True))
    if reply.failure is not None:
        return TopicListing(cluster_id=None, controller_id=None, topics=(), partitions=(), failures=(reply.failure,))
    response = reply.response
    channel.manager.cluster.update_metadata(response)
    topics: list[Topic] = []
    partitions: list[Partition] = []
    failures: list[Failure] = []
    for found in sorted(response.topics, key=lambda topic: topic.name):
        channel.outcomes.note("Metadata", found.error_code)
        failure = replace(refused("Metadata", found.error_code), topic=found.name) if found.error_code else None
        if failure is not None:
            failures.append(failure)
        topics.append(
            Topic(
                name=found.name,
                topic_id=id_text(found.topic_id),
                is_internal=bool(found.is_internal),
                partition_count=None if failure else len(found.partitions),
                failure=failure,
                authorized_operations=None if failure else operation_names(found.authorized_operations),
            )
        )
        partitions.extend(_partition(found.name, p) for p in sorted(found.partitions, key=lambda p: p.partition_index))
    if not response.topics:
        channel.outcomes.note("Metadata", 0)
    controller = response.controller_id if response.controller_id is not None and response.controller_id >= 0 else None
    return TopicListing(
        cluster_id=response.cluster_id,
        controller_id=controller,
        topics=tuple(topics),
        partitions=tuple(partitions),
        failures=tuple(failures),
        brokers=addresses_in(response),
    )


def describe_partitions(
    channel: Channel, partition_counts: Mapping[str, int]
) -> tuple[dict[tuple[str, int], Partition], tuple[Failure, ...]]:
    """Partitions of the named topics with their eligible leader replicas (DescribeTopicPartitions, API 75).

    ``partition_counts`` sizes the requests. A topic that cannot be described is a failure and has no partitions in the result.
    """
    found: dict[tuple[str, int], Partition] = {}
    failures: list[Failure] = []
    requests = [_describe_request(names) for names in _chunks(partition_counts)]
    while requests:
        rest = []
        for reply in channel.ask_any_each(requests):
            names = [topic.name for topic in reply.request.topics]
            if reply.failure is not None:
                failures.extend(replace(reply.failure, topic=name) for name in names)
                continue
            for topic in reply.response.topics:
                channel.outcomes.note("DescribeTopicPartitions", topic.error_code)
                if topic.error_code:
                    failures.append(replace(refused("DescribeTopicPartitions", topic.error_code), topic=topic.name))
                for partition in topic.partitions:
                    found[topic.name, partition.partition_index] = _partition(topic.name, partition, with_elr=True)
            cursor = reply.response.next_cursor
            if cursor is not None:
                rest.append(_describe_request([name for name in names if name >= cursor.topic_name], cursor))
        requests = rest
    return found, tuple(failures)


def list_reassignments(channel: Channel) -> tuple[tuple[Reassignment, ...], tuple[Failure, ...]]:
    """Every running reassignment; brokers forward the question to the controller."""
    request = ListPartitionReassignmentsRequest(topics=None, timeout_ms=channel.settings.request_timeout_ms)
    response, failure = channel.response_of(channel.ask_any(request))
    if failure is not None:
        return (), (failure,)
    running = [
        Reassignment(
            topic=topic.name,
            partition=partition.partition_index,
            replicas=tuple(partition.replicas),
            adding_replicas=tuple(partition.adding_replicas),
            removing_replicas=tuple(partition.removing_replicas),
        )
        for topic in response.topics
        for partition in topic.partitions
    ]
    return tuple(sorted(running, key=lambda one: (one.topic, one.partition))), ()


def id_text(topic_id: uuid.UUID | None) -> str | None:
    """A topic id as Kafka prints it (url-safe base64, no padding); None for the zero id."""
    if topic_id is None or topic_id.int == 0:
        return None
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def _partition(topic: str, raw: Message, *, with_elr: bool = False) -> Partition:
    elr = raw.eligible_leader_replicas if with_elr else None
    last = raw.last_known_elr if with_elr else None
    return Partition(
        topic=topic,
        partition=raw.partition_index,
        leader=raw.leader_id,
        leader_epoch=raw.leader_epoch if raw.leader_epoch >= 0 else None,
        replicas=tuple(raw.replica_nodes),
        isr=tuple(raw.isr_nodes),
        offline_replicas=tuple(raw.offline_replicas),
        eligible_leader_replicas=None if elr is None else tuple(elr),
        last_known_elr=None if last is None else tuple(last),
        error=error_name(raw.error_code) if raw.error_code else None,
    )


def _chunks(partition_counts: Mapping[str, int]) -> Iterator[list[str]]:
    chunk: list[str] = []
    size = 0
    for name in sorted(partition_counts):
        if chunk and size + partition_counts[name] > _PARTITIONS_PER_RESPONSE:
            yield chunk
            chunk, size = [], 0
        chunk.append(name)
        size += partition_counts[name]
    if chunk:
        yield chunk


def _describe_request(names: Sequence[str], cursor: Message = None) -> Message:
    request = DescribeTopicPartitionsRequest
    return request(
        topics=[request.TopicRequest(name=name) for name in names],
        response_partition_limit=_PARTITIONS_PER_RESPONSE,
        cursor=None if cursor is None else request.Cursor(topic_name=cursor.topic_name, partition_index=cursor.partition_index),
    )
