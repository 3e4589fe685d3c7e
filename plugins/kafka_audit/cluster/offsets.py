"""Reads offsets and producers of partitions from their leaders."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from kafka.protocol.admin.transactions import DescribeProducersRequest
from kafka.protocol.consumer.offsets import ListOffsetsRequest

from kafka_audit.cluster.channel import Channel, Message
from kafka_audit.cluster.failures import LEADER_MOVING, Failure
from kafka_audit.cluster.routing import Leaders, Parsed, Question, TopicPartition, ask_each

# ListOffsets' special timestamps (KIP-734 for the highest timestamp, KIP-405 and KIP-1005 for tiered storage)
LATEST = -1
EARLIEST = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL = -4
LATEST_TIERED = -5

MAX_TIMESTAMP_VERSION, LATEST_TIERED_VERSION = 7, 9
_LOWEST_VERSIONS = {MAX_TIMESTAMP: MAX_TIMESTAMP_VERSION, EARLIEST_LOCAL: 8, LATEST_TIERED: LATEST_TIERED_VERSION}

READ_UNCOMMITTED = 0
READ_COMMITTED = 1

_PARTITIONS_PER_REQUEST = 2000
_PRODUCER_PARTITIONS_PER_REQUEST = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class Offset:
    """An offset and the timestamp of its record; None where Kafka found no such record."""

    offset: int | None
    timestamp_ms: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Producer:
    """One producer id that a partition's leader remembers (KIP-664); times are those of its records, not of the broker."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int
    current_txn_start_offset: int | None


def list_offsets(
    channel: Channel, leaders: Leaders, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
) -> dict[TopicPartition, Offset | Failure]:
    """One offset per partition: ``wanted`` maps it to a timestamp in epoch ms, or to one of the names above."""
    isolation = READ_COMMITTED if read_committed else READ_UNCOMMITTED
    timeout_ms = channel.settings.request_timeout_ms
    lowest = max((_LOWEST_VERSIONS.get(one, 1) for one in set(wanted.values())), default=1)

    def build(keys: Sequence[TopicPartition]) -> Message:
        entry = ListOffsetsRequest.ListOffsetsTopic
        topics = [
            entry(
                name=topic,
                partitions=[
                    entry.ListOffsetsPartition(partition_index=index, current_leader_epoch=-1, timestamp=wanted[topic, index])
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(keys)
        ]
        return ListOffsetsRequest(replica_id=-1, isolation_level=isolation, topics=topics, timeout_ms=timeout_ms, min_version=lowest)

    def parse(_: Message, response: Message) -> Iterator[Parsed[TopicPartition, Offset]]:
        for topic in response.topics:
            for found in topic.partitions:
                # -1 means that there is no such record: an empty partition, or nothing as young as the timestamp.
                offset = Offset(
                    offset=found.offset if found.offset >= 0 else None, timestamp_ms=found.timestamp if found.timestamp >= 0 else None
                )
                yield Parsed((topic.name, found.partition_index), found.error_code, None, offset)

    question = Question(api="ListOffsets", chunk=_PARTITIONS_PER_REQUEST, build=build, parse=parse, retriable=LEADER_MOVING)
    return ask_each(channel, question, wanted, leaders)


def describe_producers(
    channel: Channel, leaders: Leaders, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[Producer, ...] | Failure]:
    """The producers that each partition's leader remembers; needs Read on the topic."""

    def build(keys: Sequence[TopicPartition]) -> Message:
        entry = DescribeProducersRequest.TopicRequest
        return DescribeProducersRequest(topics=[entry(name=topic, partition_indexes=indexes) for topic, indexes in by_topic(keys)])

    def parse(_: Message, response: Message) -> Iterator[Parsed[TopicPartition, tuple[Producer, ...]]]:
        for topic in response.topics:
            for found in topic.partitions:
                producers = tuple(_producer(raw) for raw in found.active_producers)
                yield Parsed((topic.name, found.partition_index), found.error_code, found.error_message, producers)

    question = Question(api="DescribeProducers", chunk=_PRODUCER_PARTITIONS_PER_REQUEST, build=build, parse=parse, retriable=LEADER_MOVING)
    return ask_each(channel, question, partitions, leaders)


def by_topic(keys: Iterable[TopicPartition]) -> Iterable[tuple[str, list[int]]]:
    """Group partitions by topic, as requests want them."""
    grouped: dict[str, list[int]] = {}
    for topic, index in keys:
        grouped.setdefault(topic, []).append(index)
    return grouped.items()


def _producer(raw: Message) -> Producer:
    start = raw.current_txn_start_offset
    return Producer(
        producer_id=raw.producer_id,
        producer_epoch=raw.producer_epoch,
        last_sequence=raw.last_sequence,
        last_timestamp_ms=raw.last_timestamp,
        coordinator_epoch=raw.coordinator_epoch,
        current_txn_start_offset=start if start >= 0 else None,
    )
