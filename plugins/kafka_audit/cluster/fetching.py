"""Fetches the record batches at given offsets as a consumer would, few bytes at the same time, and reads the header of the last one."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import TypeVar

from kafka.protocol.consumer.fetch import FetchRequest

from kafka_audit.cluster.channel import Channel, Message
from kafka_audit.cluster.failures import INVALID_RESPONSE, LEADER_MOVING, NO_BATCH, OLD_FORMAT, Failure
from kafka_audit.cluster.offsets import READ_COMMITTED, READ_UNCOMMITTED, by_topic
from kafka_audit.cluster.record_batches import CONTROL, HEADER, TRANSACTIONAL
from kafka_audit.cluster.routing import Leaders, Parsed, Question, TopicPartition, ask_each

V = TypeVar("V")

API = "Fetch"
OLDEST_FETCH = 4  # knows record batches of format 2
# Version 11 lets a leader send the reader to a follower (KIP-392), and version 13 names topics by id.
_NEWEST_FETCH = 10

_KIB, _MIB = 1024, 1024 * 1024
_RESPONSE_BYTES = 8 * _MIB
_BYTES_IN_FLIGHT = 24 * _MIB  # shared by all brokers, because they answer at the same time
# The most that is asked of a partition, and the size of a batch that is reckoned with. A batch that does not fit comes back empty,
# unless it is the first that the broker finds: that one is always whole (KIP-74). So every request serves a partition, and the last
# step is repeated until all are served.
_STEPS = ((64 * _KIB, 16 * _KIB), (2 * _MIB, 256 * _KIB), (_RESPONSE_BYTES, _MIB))

LENGTH_AND_OFFSET_BYTES = 12
MAGIC_BYTE = 16  # in every format
MAGIC = 2


class Unserved(Enum):
    """The broker's answer had no room for this partition: ask again, with the next step."""

    TOKEN = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class AbortedTransaction:
    """A transaction whose records a read_committed consumer leaves out: from ``first_offset`` to the end of it that follows in the log."""

    first_offset: int
    producer_id: int


def fetch(
    channel: Channel,
    leaders: Leaders,
    offsets: Mapping[TopicPartition, int],
    *,
    step: int,
    read: Callable[[TopicPartition, bytes, Sequence[AbortedTransaction]], V],
    committed_only: bool = False,
) -> dict[TopicPartition, V | Failure | Unserved]:
    """Fetch each partition from the given offset on and return ``read``'s result on the bytes; needs Read on the topic.

    With ``committed_only`` the bytes end at the last stable offset, and the aborted transactions among them are named (KIP-98); their
    records are still there. Without it none are named.

    The first batch in the bytes is complete and contains the offset; the last one may be cut off. Call with ``step`` 0 first, and with
    1 more each time a partition was Unserved. Open requests ask for about 24 MB together, each for 8 MB at most or one larger batch.
    """
    partition_bytes, usual_bytes = _STEPS[min(step, len(_STEPS) - 1)]
    response_bytes = min(_RESPONSE_BYTES, _BYTES_IN_FLIGHT // len(channel.brokers))

    def build(keys: Sequence[TopicPartition]) -> Message:
        entry = FetchRequest.FetchTopic
        topics = [
            entry(
                topic=topic,
                partitions=[
                    entry.FetchPartition(
                        partition=index, fetch_offset=offsets[topic, index], log_start_offset=-1, partition_max_bytes=partition_bytes
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(keys)
        ]
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=0,
            min_bytes=0,
            max_bytes=response_bytes,
            isolation_level=READ_COMMITTED if committed_only else READ_UNCOMMITTED,
            session_id=0,
            session_epoch=-1,  # no session
            topics=topics,
            forgotten_topics_data=[],
            min_version=OLDEST_FETCH,
            max_version=_NEWEST_FETCH,
        )

    def parse(request: Message, response: Message) -> Iterator[Parsed[TopicPartition, V | Failure | Unserved]]:
        asked = [(topic.topic, partition.partition) for topic in request.topics for partition in topic.partitions]
        if response.error_code or (response.throttle_time_ms and not response.responses):
            # A broker whose quota is used up answers without partitions; the channel waits before it sends again (KIP-219).
            for key in asked:
                yield Parsed(key, response.error_code or 0, None, Unserved.TOKEN)
            return
        answers = {(topic.topic, p.partition_index): p for topic in response.responses for p in topic.partitions}
        whole = next((key for key in asked if key in answers and answers[key].error_code == 0), None)
        for key in asked:
            if key not in answers:
                continue
            code, records = answers[key].error_code, answers[key].records
            found: V | Failure | Unserved | None = None
            if code == 0 and records:
                left_out = [
                    AbortedTransaction(first_offset=one.first_offset, producer_id=one.producer_id)
                    for one in answers[key].aborted_transactions or ()
                ]
                found = read(key, bytes(records), left_out)
            elif code == 0 and key == whole:
                found = failure_of(key, NO_BATCH, f"the leader holds no record at offset {offsets[key]} or above any more")
            elif code == 0:
                found = Unserved.TOKEN
            yield Parsed(key, code, None, found)

    chunk = max(1, response_bytes // usual_bytes)
    question = Question(api=API, chunk=chunk, build=build, parse=parse, retriable=LEADER_MOVING, one_by_one=True)
    return ask_each(channel, question, sorted(offsets), leaders)


def failure_of(key: TopicPartition, error: str, message: str) -> Failure:
    """The failure of one fetched partition."""
    return Failure(api=API, error=error, message=message, topic=key[0], partition=key[1])


@dataclass(frozen=True, kw_only=True, slots=True)
class LastBatch:
    """Header of a record batch; a producer id, epoch or sequence of -1 says that the producer had none."""

    base_offset: int
    last_offset: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    is_transactional: bool
    is_control: bool
    max_timestamp_ms: int | None


def read_last_batches(
    channel: Channel, leaders: Leaders, last_offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, LastBatch | Failure]:
    """The batch that holds the given offset of each partition; needs Read on the topic.

    NO_BATCH where the leader has no record there any more, OLD_FORMAT where the batch is older than format 2 and so knows no producer.
    """
    results: dict[TopicPartition, LastBatch | Failure] = {}
    pending = dict(last_offsets)
    for step in count():
        if not pending:
            break
        found = fetch(channel, leaders, pending, step=step, read=lambda key, records, _: _last_batch(key, records, last_offsets[key]))
        results |= {key: value for key, value in found.items() if not isinstance(value, Unserved)}
        pending = {key: offset for key, offset in pending.items() if key not in results}
    return results


def _last_batch(key: TopicPartition, records: bytes, offset: int) -> LastBatch | Failure:
    position = 0
    while position + MAGIC_BYTE < len(records):
        magic = records[position + MAGIC_BYTE]
        if magic < MAGIC:
            return failure_of(key, OLD_FORMAT, f"the last records are of message format {magic}, which names no producer")
        if magic > MAGIC or position + HEADER.size > len(records):
            break
        base, length, _, _, _, attributes, delta, _, newest, producer_id, epoch, sequence, _ = HEADER.unpack_from(records, position)
        if length <= 0:
            break
        if base + delta >= offset:
            return LastBatch(
                base_offset=base,
                last_offset=base + delta,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                is_transactional=bool(attributes & TRANSACTIONAL),
                is_control=bool(attributes & CONTROL),
                max_timestamp_ms=newest if newest >= 0 else None,
            )
        position += LENGTH_AND_OFFSET_BYTES + length
    return failure_of(key, INVALID_RESPONSE, f"the answer has no record batch that reaches offset {offset}")
