"""Which broker answers for a partition, a group or a transactional id, and how to find it again when it has moved."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Generic, TypeVar

from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from kafka_audit.cluster.channel import Channel, Message
from kafka_audit.cluster.failures import COORDINATOR_MOVING, LEADER_NOT_AVAILABLE, Failure, refused
from kafka_audit.cluster.topics import Partition

K = TypeVar("K", bound=Hashable)
TopicPartition = tuple[str, int]

GROUP = 0
TRANSACTION = 1
_BATCH_VERSION = 4  # many keys in one request since Kafka 3.0 (KIP-699)
_KEYS_PER_REQUEST = 1000


class Places(Generic[K]):
    """Knows which broker answers for an item; subclasses know partition leaders or coordinators."""

    retry_seconds: float = 10.0

    def of(self, key: K) -> int | Failure:
        """The broker that answers for ``key``, or why there is none."""
        raise NotImplementedError

    def look_up(self, keys: Sequence[K]) -> None:
        """Ask the cluster again where these items are."""
        raise NotImplementedError

    def name(self, failure: Failure, key: K) -> Failure:
        """The failure with the name of this item."""
        raise NotImplementedError


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
            return  # keep the places known so far; the items keep their own failures
        for topic in reply.response.topics:
            for partition in topic.partitions:
                self._leader[topic.name, partition.partition_index] = partition.leader_id

    def name(self, failure: Failure, key: TopicPartition) -> Failure:
        return replace(failure, topic=key[0], partition=key[1])


class Coordinators(Places[str]):
    """Group or transactional id -> the broker that coordinates it.

    The first places cost no request: each broker lists what it coordinates. FindCoordinator is sent only for what has moved since,
    and never on a cluster without groups, where it would make the broker create ``__consumer_offsets``.
    """

    def __init__(self, channel: Channel, kind: int, known: Mapping[str, int]) -> None:
        self._channel = channel
        self._kind = kind
        self._place: dict[str, int | Failure] = dict(known)

    def of(self, key: str) -> int | Failure:
        return self._place[key]

    def look_up(self, keys: Sequence[str]) -> None:
        batched = self._channel.supports("FindCoordinator", _BATCH_VERSION)
        size = _KEYS_PER_REQUEST if batched else 1
        requests = [self._request(keys[start : start + size], batched) for start in range(0, len(keys), size)]
        for reply in self._channel.ask_any_each(requests):
            if reply.failure is not None:
                continue  # keep the places known so far; the items keep their own failures
            found = reply.response.coordinators if batched else [reply.response]
            for coordinator in found:
                key = coordinator.key if batched else reply.request.key
                code = coordinator.error_code
                self._channel.outcomes.note("FindCoordinator", code)
                if code == 0:
                    self._place[key] = coordinator.node_id
                elif code not in COORDINATOR_MOVING:
                    self._place[key] = refused("FindCoordinator", code, coordinator.error_message)

    def name(self, failure: Failure, key: str) -> Failure:
        return replace(failure, group_id=key) if self._kind == GROUP else failure

    def _request(self, keys: Sequence[str], batched: bool) -> Message:
        if batched:
            return FindCoordinatorRequest(key_type=self._kind, coordinator_keys=list(keys), min_version=_BATCH_VERSION)
        return FindCoordinatorRequest(key=keys[0], key_type=self._kind, max_version=_BATCH_VERSION - 1)
