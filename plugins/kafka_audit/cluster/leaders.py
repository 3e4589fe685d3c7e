"""Knows the leader of each partition, and learns it again when leaders move."""

from collections.abc import Iterable, Sequence

from kafka.protocol.metadata import MetadataRequest

from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.failures import LEADER_NOT_AVAILABLE, Failure, refused
from kafka_audit.cluster.routing import Places
from kafka_audit.cluster.topics import Partition

TopicPartition = tuple[str, int]


class Leaders(Places[TopicPartition]):
    """Partition -> broker that leads it."""

    # An election takes well under a second; a partition that has no leader for longer is a finding, not something to wait for.
    retry_seconds = 2.0

    def __init__(self, channel: Channel, partitions: Iterable[Partition]) -> None:
        self._channel = channel
        self._leader = {partition.key: partition.leader for partition in partitions}

    def of(self, key: TopicPartition) -> int | Failure:
        leader = self._leader.get(key, -1)
        return leader if leader >= 0 else refused("Metadata", LEADER_NOT_AVAILABLE)

    def look_up(self, keys: Sequence[TopicPartition]) -> None:
        names = sorted({topic for topic, _ in keys})
        request = MetadataRequest(
            topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=False
        )
        reply = self._channel.ask_any(request)
        if reply.failure is not None:
            return  # the places known so far stay; the items keep their own failures
        for topic in reply.response.topics:
            for partition in topic.partitions:
                self._leader[topic.name, partition.partition_index] = partition.leader_id

    def name(self, failure: Failure, key: TopicPartition) -> Failure:
        return failure.about(topic=key[0], partition=key[1])
