"""Asks about each item the broker that answers for it, follows items that move, and gives each item its own failure."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from kafka.protocol.metadata import FindCoordinatorRequest, MetadataRequest

from kafka_audit.cluster.channel import Channel, Message, Reply
from kafka_audit.cluster.failures import COORDINATOR_MOVING, INVALID_RESPONSE, LEADER_NOT_AVAILABLE, TRANSPORT_ERRORS, Failure, refused
from kafka_audit.cluster.topics import Partition

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
TopicPartition = tuple[str, int]

GROUP = 0
TRANSACTION = 1
_BATCH_VERSION = 4  # many keys in one request since Kafka 3.0 (KIP-699)
_KEYS_PER_REQUEST = 1000
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.1, 2.0


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


@dataclass(frozen=True, slots=True)
class Parsed(Generic[K, V]):
    """The part of a response about one item: Kafka's error code (0 = none), its message, and the value."""

    key: K
    code: int
    message: str | None
    value: V | None


@dataclass(frozen=True, kw_only=True)
class Question(Generic[K, V]):
    """One kind of request: how to ask it for a chunk of items, and how to read the answer (given the request and the response).

    ``retriable`` are the error codes after which an item is looked up again and asked again. ``one_by_one``: a broker gets its next request
    only when its answer to the one before was read, because reading one takes longer than answering it.
    """

    api: str
    chunk: int
    build: Callable[[Sequence[K]], Message]
    parse: Callable[[Message, Message], Iterable[Parsed[K, V]]]
    retriable: frozenset[int]
    one_by_one: bool = False


def ask_each(channel: Channel, question: Question[K, V], keys: Iterable[K], places: Places[K]) -> dict[K, V | Failure]:
    """The value or the failure of every item.

    Items are grouped by broker and sent in chunks, one after another per broker, brokers concurrently. Items whose leader or
    coordinator moves are looked up and asked again with growing pauses for ``places.retry_seconds`` at most.
    """
    results: dict[K, V | Failure] = {}
    pending = list(keys)
    pauses = _pauses(places.retry_seconds)
    while pending:
        again = _ask_once(channel, question, pending, places, results)
        if not again:
            break
        pause = next(pauses, None)
        if pause is None or not channel.seconds_left():
            break
        channel.sleep(pause)
        places.look_up(again)
        # An item that still belongs to a silent broker, or to none, keeps its failure: asking again would only cost time.
        pending = [key for key in again if not isinstance(place := places.of(key), Failure) and place not in channel.unanswering]
    return results


def _ask_once(channel: Channel, question: Question[K, V], keys: Sequence[K], places: Places[K], results: dict[K, V | Failure]) -> list[K]:
    by_broker: dict[int, list[K]] = {}
    again: list[K] = []
    for key in keys:
        place = places.of(key)
        if isinstance(place, Failure):
            results[key] = places.name(place, key)
        else:
            by_broker.setdefault(place, []).append(key)
    chunks: dict[int, Sequence[K]] = {}
    requests: dict[int, list[Message]] = {}
    for broker_id, items in by_broker.items():
        for start in range(0, len(items), question.chunk):
            request = question.build(items[start : start + question.chunk])
            chunks[id(request)] = items[start : start + question.chunk]
            requests.setdefault(broker_id, []).append(request)
    for some in _rounds(requests) if question.one_by_one else [requests]:
        for reply in channel.ask_all(some):
            again.extend(_take(channel, question, chunks[id(reply.request)], places, reply=reply, results=results))
    return again


def _rounds(requests: Mapping[int, Sequence[Message]]) -> Iterator[dict[int, list[Message]]]:
    """The first request of every broker, then the second of those that have one, and so on."""
    for number in range(max(map(len, requests.values()), default=0)):
        yield {broker_id: [each[number]] for broker_id, each in requests.items() if number < len(each)}


def _take(
    channel: Channel, question: Question[K, V], chunk: Sequence[K], places: Places[K], *, reply: Reply, results: dict[K, V | Failure]
) -> Iterator[K]:
    if reply.failure is not None:
        for key in chunk:
            results[key] = places.name(reply.failure, key)
            if reply.failure.error in TRANSPORT_ERRORS:
                yield key  # its leader or coordinator may have moved to a broker that does answer
        return
    asked, missing = set(chunk), set(chunk)
    broker_id = reply.broker_id if isinstance(reply.broker_id, int) else None
    counted: dict[int, int] = {}
    for parsed in question.parse(reply.request, reply.response):
        if parsed.key not in missing:
            if parsed.key in asked:  # two answers for one item: neither counts
                twice = Failure(api=question.api, error=INVALID_RESPONSE, message="the answer has this item twice", broker_id=broker_id)
                results[parsed.key] = places.name(twice, parsed.key)
            continue
        missing.discard(parsed.key)
        counted[parsed.code] = counted.get(parsed.code, 0) + 1
        if parsed.code == 0 and parsed.value is not None:
            results[parsed.key] = parsed.value
            continue
        failure = replace(refused(question.api, parsed.code, parsed.message), broker_id=broker_id)
        results[parsed.key] = places.name(failure, parsed.key)
        if parsed.code in question.retriable:
            yield parsed.key
    for code, count in counted.items():
        channel.outcomes.note(question.api, code, count)
    for key in missing:
        unanswered = Failure(api=question.api, error=INVALID_RESPONSE, message="the answer leaves this item out", broker_id=broker_id)
        results[key] = places.name(unanswered, key)


def _pauses(total_seconds: float) -> Iterator[float]:
    pause, spent = _FIRST_PAUSE_SECONDS, 0.0
    while spent < total_seconds:
        yield pause
        spent += pause
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
