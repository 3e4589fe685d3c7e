"""Knows the coordinator of each group or transactional id, and finds it again when it moves."""

from collections.abc import Mapping, Sequence

from kafka.protocol.metadata import FindCoordinatorRequest

from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.failures import COORDINATOR_MOVING, Failure, refused
from kafka_audit.cluster.routing import Places
from kafka_audit.cluster.wire import Message

GROUP = 0
TRANSACTION = 1
_BATCH_VERSION = 4  # many keys in one request since Kafka 3.0 (KIP-699)
_KEYS_PER_REQUEST = 1000


class Coordinators(Places[str]):
    """Group or transactional id -> the broker that coordinates it.

    The first answer comes for nothing: a broker lists exactly what it coordinates. FindCoordinator is sent only for what
    moved since, and never on a cluster without groups, where it would make the broker create ``__consumer_offsets``.
    """

    def __init__(self, channel: Channel, kind: int, known: Mapping[str, int]) -> None:
        self._channel = channel
        self._kind = kind
        self._place: dict[str, int | Failure] = dict(known)

    def of(self, key: str) -> int | Failure:
        return self._place[key]

    def look_up(self, keys: Sequence[str]) -> None:
        batched = self._channel.supports(FindCoordinatorRequest.API_KEY, _BATCH_VERSION)
        size = _KEYS_PER_REQUEST if batched else 1
        requests = [self._request(keys[start : start + size], batched) for start in range(0, len(keys), size)]
        for reply in self._channel.ask_any_each(requests):
            if reply.failure is not None:
                continue  # the places known so far stay; the items keep their own failures
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
        return failure.about(group_id=key) if self._kind == GROUP else failure

    def _request(self, keys: Sequence[str], batched: bool) -> Message:
        if batched:
            return FindCoordinatorRequest(key_type=self._kind, coordinator_keys=list(keys), min_version=_BATCH_VERSION)
        return FindCoordinatorRequest(key=keys[0], key_type=self._kind, max_version=_BATCH_VERSION - 1)
