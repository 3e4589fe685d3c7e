"""Reads the transactions that coordinators remember."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kafka.protocol.admin.transactions import DescribeTransactionsRequest, ListTransactionsRequest

from kafka_audit.cluster.channel import Channel, Message
from kafka_audit.cluster.failures import COORDINATOR_MOVING, Failure
from kafka_audit.cluster.routing import TRANSACTION, Coordinators, Parsed, Question, ask_each

_IDS_PER_REQUEST = 500


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedTransaction:
    """One transactional id as its coordinator lists it."""

    transactional_id: str
    producer_id: int
    state: str
    coordinator_id: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TransactionDetail:
    """What the coordinator knows of one transaction; ``start_time_ms`` is None while none is open."""

    state: str
    timeout_ms: int
    start_time_ms: int | None
    partitions: tuple[tuple[str, int], ...]


def list_transactions(channel: Channel) -> tuple[tuple[ListedTransaction, ...], tuple[Failure, ...]]:
    """All transactional ids of all brokers; ids the principal may not describe are left out without any error."""
    found: dict[str, ListedTransaction] = {}
    failures: list[Failure] = []
    request = ListTransactionsRequest
    asked = {
        broker_id: [request(state_filters=[], producer_id_filters=[], duration_filter=-1, transactional_id_pattern=None)]
        for broker_id in channel.brokers
    }
    for reply in channel.ask_all(asked):
        broker_id = int(reply.broker_id)
        response, failure = channel.response_of(reply)
        if failure is not None:
            failures.append(replace(failure, broker_id=broker_id))
            continue
        for raw in response.transaction_states:
            found[raw.transactional_id] = ListedTransaction(
                transactional_id=raw.transactional_id, producer_id=raw.producer_id, state=raw.transaction_state, coordinator_id=broker_id
            )
    return tuple(found[name] for name in sorted(found)), tuple(failures)


def describe_transactions(channel: Channel, listed: Sequence[ListedTransaction]) -> dict[str, TransactionDetail | Failure]:
    """Timeout, start and partitions of each listed transaction."""
    coordinators = Coordinators(channel, TRANSACTION, {one.transactional_id: one.coordinator_id for one in listed})
    question: Question[str, TransactionDetail] = Question(
        api="DescribeTransactions",
        chunk=_IDS_PER_REQUEST,
        build=lambda ids: DescribeTransactionsRequest(transactional_ids=list(ids)),
        parse=_parse,
        retriable=COORDINATOR_MOVING,
    )
    return ask_each(channel, question, [one.transactional_id for one in listed], coordinators)


def _parse(_: Message, response: Message) -> Iterator[Parsed[str, TransactionDetail]]:
    for raw in response.transaction_states:
        partitions = tuple(sorted((topic.topic, index) for topic in raw.topics for index in topic.partitions))
        start = raw.transaction_start_time_ms
        detail = TransactionDetail(
            state=raw.transaction_state,
            timeout_ms=raw.transaction_timeout_ms,
            start_time_ms=start if start >= 0 else None,
            partitions=partitions,
        )
        yield Parsed(raw.transactional_id, raw.error_code, None, detail)
