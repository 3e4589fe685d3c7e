"""Reads the offsets that groups have committed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from kafka.protocol.consumer.group import OffsetFetchRequest

from kafka_audit.cluster.channel import Channel, Message
from kafka_audit.cluster.failures import COORDINATOR_MOVING, Failure, refused
from kafka_audit.cluster.offsets import by_topic
from kafka_audit.cluster.routing import Coordinators, Parsed, Question, TopicPartition, ask_each

_API = "OffsetFetch"
_BATCH_VERSION = 8  # many groups in one request since Kafka 3.0 (KIP-709)
_NEWEST_VERSION = 9  # version 10 names topics by id, and a deleted topic, whose orphaned offsets are wanted, has none
_GROUPS_PER_REQUEST = 200


class Commit(NamedTuple):
    """The committed offset of a group on one partition; None when it has none. A tuple, because there are as many as rows."""

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
            yield Parsed(request.group_id, response.error_code, None, _commits(request.group_id, response.topics))
            return
        for group in response.groups:
            yield Parsed(group.group_id, group.error_code, None, _commits(group.group_id, group.topics))

    question = Question(api=_API, chunk=_GROUPS_PER_REQUEST if batched else 1, build=build, parse=parse, retriable=COORDINATOR_MOVING)
    return ask_each(channel, question, list(wanted), coordinators)


def _topics(entry: Message, partitions: Sequence[TopicPartition] | None) -> list[Message] | None:
    if partitions is None:
        return None
    return [entry(name=topic, partition_indexes=indexes) for topic, indexes in by_topic(partitions)]


def _commits(group_id: str, topics: Message) -> tuple[Commit, ...]:
    return tuple(
        Commit(
            topic.name,
            raw.partition_index,
            raw.committed_offset if raw.error_code == 0 and raw.committed_offset >= 0 else None,
            raw.committed_leader_epoch if raw.committed_leader_epoch >= 0 else None,
            replace(refused(_API, raw.error_code), topic=topic.name, partition=raw.partition_index, group_id=group_id)
            if raw.error_code
            else None,
        )
        for topic in topics or ()
        for raw in topic.partitions
    )
