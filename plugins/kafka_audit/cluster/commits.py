"""Reads the offsets that groups have committed, and the start offsets of share groups."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kafka.protocol.api_message import ApiMessage
from kafka.protocol.consumer.group import OffsetFetchRequest

from kafka_audit.cluster import schemas
from kafka_audit.cluster.channel import Channel, Message
from kafka_audit.cluster.failures import COORDINATOR_MOVING, INVALID_RESPONSE, Failure, refused
from kafka_audit.cluster.offsets import by_topic
from kafka_audit.cluster.routing import Coordinators, Parsed, Question, TopicPartition, ask_each

_API = "OffsetFetch"
_SHARE_API = "DescribeShareGroupOffsets"
_BATCH_VERSION = 8  # many groups in one request since Kafka 3.0 (KIP-709)
_NEWEST_VERSION = 9  # version 10 names topics by id, and a deleted topic, whose orphaned offsets are wanted, has none
_GROUPS_PER_REQUEST = 200


# kafka-python 3.0.12 has no DescribeShareGroupOffsets (KIP-932).
class DescribeShareGroupOffsetsRequest(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    """Ask for the start offsets of share groups."""


class DescribeShareGroupOffsetsResponse(ApiMessage, load_json=schemas):  # type: ignore[misc, call-arg]
    """The start offset of each partition of share groups; -1 where no member has read it yet."""


class Commit(NamedTuple):
    """The committed offset of a group on one partition; None when it has none. A tuple, because there are as many as rows.

    Of a share group, it is the start offset: all records below it were acknowledged, archived or deleted (KIP-932).
    """

    topic: str
    partition: int
    committed: int | None
    leader_epoch: int | None
    failure: Failure | None = None


def fetch_commits(
    channel: Channel, coordinators: Coordinators, wanted: Mapping[str, Sequence[TopicPartition] | None]
) -> dict[str, tuple[Commit, ...] | Failure]:
    """By group the committed offset, its absence, or the refusal, for each partition that ``wanted`` names; for None every commit.

    Then topics that the principal may not describe are left out by the broker without any error: ask for them by name.
    """
    batched = channel.supports(_API, _BATCH_VERSION)

    def build(group_ids: Sequence[str]) -> Message:
        if not batched:
            return OffsetFetchRequest(
                group_id=group_ids[0], topics=_topics(OffsetFetchRequest.OffsetFetchRequestTopic, wanted[group_ids[0]]), max_version=7
            )
        entry = OffsetFetchRequest.OffsetFetchRequestGroup
        groups = [
            entry(group_id=group_id, member_id=None, member_epoch=-1, topics=_topics(entry.OffsetFetchRequestTopics, wanted[group_id]))
            for group_id in group_ids
        ]
        return OffsetFetchRequest(groups=groups, require_stable=False, min_version=_BATCH_VERSION, max_version=_NEWEST_VERSION)

    def parse(request: Message, response: Message) -> Iterator[Parsed[str, tuple[Commit, ...]]]:
        if not batched:
            yield Parsed(
                request.group_id, response.error_code, None, _each_once(_API, request.group_id, _commits(request.group_id, response.topics))
            )
            return
        for group in response.groups:
            yield Parsed(group.group_id, group.error_code, None, _each_once(_API, group.group_id, _commits(group.group_id, group.topics)))

    question = Question(api=_API, chunk=_GROUPS_PER_REQUEST if batched else 1, build=build, parse=parse, retriable=COORDINATOR_MOVING)
    return ask_each(channel, question, list(wanted), coordinators)


def fetch_share_offsets(
    channel: Channel, coordinators: Coordinators, wanted: Mapping[str, Sequence[TopicPartition] | None]
) -> dict[str, tuple[Commit, ...] | Failure]:
    """The same for share groups: their start offsets."""
    entry = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup

    def topics(partitions: Sequence[TopicPartition] | None) -> list[Message] | None:
        named = entry.DescribeShareGroupOffsetsRequestTopic
        return None if partitions is None else [named(topic_name=topic, partitions=indexes) for topic, indexes in by_topic(partitions)]

    def build(group_ids: Sequence[str]) -> Message:
        return DescribeShareGroupOffsetsRequest(groups=[entry(group_id=each, topics=topics(wanted[each])) for each in group_ids])

    def parse(_: Message, response: Message) -> Iterator[Parsed[str, tuple[Commit, ...]]]:
        for group in response.groups:
            yield Parsed(
                group.group_id, group.error_code, group.error_message, _each_once(_SHARE_API, group.group_id, _start_offsets(group))
            )

    question = Question(api=_SHARE_API, chunk=_GROUPS_PER_REQUEST, build=build, parse=parse, retriable=COORDINATOR_MOVING)
    return ask_each(channel, question, list(wanted), coordinators)


def _each_once(api: str, group_id: str, commits: Iterable[Commit]) -> tuple[Commit, ...]:
    """The commits; of a partition that is answered twice, with whatever offsets, one without an offset that says so."""
    found: dict[TopicPartition, Commit] = {}
    for commit in commits:
        key = commit.topic, commit.partition
        if key not in found:
            found[key] = commit
            continue
        text = "the answer has this partition twice"
        problem = Failure(api=api, error=INVALID_RESPONSE, message=text, topic=key[0], partition=key[1], group_id=group_id)
        found[key] = Commit(*key, None, None, problem)
    return tuple(found.values())


def _start_offsets(group: Message) -> Iterator[Commit]:
    return (
        _commit(_SHARE_API, group.group_id, topic.topic_name, raw, (raw.start_offset, raw.leader_epoch))
        for topic in group.topics
        for raw in topic.partitions
    )


def _commit(api: str, group_id: str, topic: str, raw: Message, answered: tuple[int, int]) -> Commit:
    (offset, leader_epoch), partition = answered, raw.partition_index
    return Commit(
        topic,
        partition,
        offset if raw.error_code == 0 and offset >= 0 else None,
        leader_epoch if leader_epoch >= 0 else None,
        replace(refused(api, raw.error_code), topic=topic, partition=partition, group_id=group_id) if raw.error_code else None,
    )


def _topics(entry: Message, partitions: Sequence[TopicPartition] | None) -> list[Message] | None:
    if partitions is None:
        return None
    return [entry(name=topic, partition_indexes=indexes) for topic, indexes in by_topic(partitions)]


def _commits(group_id: str, topics: Message) -> Iterator[Commit]:
    return (
        _commit(_API, group_id, topic.name, raw, (raw.committed_offset, raw.committed_leader_epoch))
        for topic in topics or ()
        for raw in topic.partitions
    )
