"""Asks about each item the broker that answers for it, follows items that move, and gives each item its own failure."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from kafka_audit.cluster.channel import Channel, Message, Reply
from kafka_audit.cluster.failures import TRANSPORT_ERRORS, Failure, refused
from kafka_audit.cluster.places import Places

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 2.0


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
    missing = set(chunk)
    broker_id = reply.broker_id if isinstance(reply.broker_id, int) else None
    counted: dict[int, int] = {}
    for parsed in question.parse(reply.request, reply.response):
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
        unanswered = Failure(api=question.api, error="INVALID_RESPONSE", message="the answer leaves this item out", broker_id=broker_id)
        results[key] = places.name(unanswered, key)


def _pauses(total_seconds: float) -> Iterator[float]:
    pause, spent = _FIRST_PAUSE_SECONDS, 0.0
    while spent < total_seconds:
        yield pause
        spent += pause
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)
