"""Reads the header of the last record batch of partitions, and nothing of the records in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain, repeat
from struct import Struct

from kafka.protocol.consumer.fetch import FetchRequest

from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.failures import INVALID_RESPONSE, LEADER_MOVING, NO_BATCH, OLD_FORMAT, Failure
from kafka_audit.cluster.leaders import Leaders, TopicPartition
from kafka_audit.cluster.offsets import READ_UNCOMMITTED, by_topic
from kafka_audit.cluster.routing import Parsed, Question, ask_each
from kafka_audit.cluster.wire import Message

FETCH: int = FetchRequest.API_KEY
OLDEST_FETCH = 4  # knows record batches of format 2
# Version 11 lets a leader send the reader to a follower (KIP-392), and version 13 names topics by id.
_NEWEST_FETCH = 10

_API = "Fetch"
_KIB, _MIB = 1024, 1024 * 1024
_RESPONSE_BYTES = 8 * _MIB
_BYTES_IN_FLIGHT = 24 * _MIB  # shared by all brokers, because they answer at the same time
# The most that is asked of a partition, and the size of a batch that is reckoned with. A batch that does not fit comes back empty,
# unless it is the first that the broker finds: that one is always whole (KIP-74). So every request serves a partition, and the last
# step is repeated until all are served.
_STEPS = ((64 * _KIB, 16 * _KIB), (2 * _MIB, 256 * _KIB), (_RESPONSE_BYTES, _MIB))

# https://kafka.apache.org/documentation/#recordbatch: base offset, batch length, leader epoch, magic, crc, attributes, last offset
# delta, base timestamp, max timestamp, producer id, producer epoch, base sequence, number of records.
_HEADER = Struct(">qiibIhiqqqhii")
_LENGTH_AND_OFFSET_BYTES = 12
_MAGIC_BYTE = 16  # in every format
_MAGIC = 2
_TRANSACTIONAL, _CONTROL = 0x10, 0x20


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


class _Unserved(Enum):
    """The answer had no room for the partition, so it is asked for again."""

    TOKEN = 0


_Found = LastBatch | Failure | _Unserved


def read_last_batches(
    channel: Channel, leaders: Leaders, last_offsets: Mapping[TopicPartition, int]
) -> dict[TopicPartition, LastBatch | Failure]:
    """The batch that holds the given offset of each partition; needs Read on the topic.

    All answers under way hold about 24 MB, each 8 MB at most. NO_BATCH where the leader has no record there any more, OLD_FORMAT
    where the batch is older than format 2 and so knows no producer.
    """
    results: dict[TopicPartition, LastBatch | Failure] = {}
    pending = sorted(last_offsets)
    response_bytes = min(_RESPONSE_BYTES, _BYTES_IN_FLIGHT // len(channel.brokers))
    for partition_bytes, usual_bytes in chain(_STEPS, repeat(_STEPS[-1])):
        if not pending:
            break
        question = _question(last_offsets, partition_bytes, response_bytes, chunk=max(1, response_bytes // usual_bytes))
        found = ask_each(channel, question, pending, leaders)
        results |= {key: value for key, value in found.items() if not isinstance(value, _Unserved)}
        pending = [key for key in pending if key not in results]
    return results


def _question(
    last_offsets: Mapping[TopicPartition, int], partition_bytes: int, response_bytes: int, *, chunk: int
) -> Question[TopicPartition, _Found]:
    def build(keys: Sequence[TopicPartition]) -> Message:
        entry = FetchRequest.FetchTopic
        topics = [
            entry(
                topic=topic,
                partitions=[
                    entry.FetchPartition(
                        partition=index, fetch_offset=last_offsets[topic, index], log_start_offset=-1, partition_max_bytes=partition_bytes
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
            isolation_level=READ_UNCOMMITTED,
            session_id=0,
            session_epoch=-1,  # no session
            topics=topics,
            forgotten_topics_data=[],
            min_version=OLDEST_FETCH,
            max_version=_NEWEST_FETCH,
        )

    def parse(request: Message, response: Message) -> Iterator[Parsed[TopicPartition, _Found]]:
        asked = [(topic.topic, partition.partition) for topic in request.topics for partition in topic.partitions]
        if response.error_code or (response.throttle_time_ms and not response.responses):
            # A broker whose quota is used up answers without partitions; the channel waits before it sends again (KIP-219).
            for key in asked:
                yield Parsed(key, response.error_code or 0, None, _Unserved.TOKEN)
            return
        answers = {(topic.topic, p.partition_index): p for topic in response.responses for p in topic.partitions}
        whole = next((key for key in asked if key in answers and answers[key].error_code == 0), None)
        for key in asked:
            if key in answers:
                code, records = answers[key].error_code, answers[key].records
                found = _found(key, records, last_offsets[key], is_whole=key == whole) if code == 0 else None
                yield Parsed(key, code, None, found)

    return Question(api=_API, chunk=chunk, build=build, parse=parse, retriable=LEADER_MOVING)


def _found(key: TopicPartition, records: bytes | None, offset: int, *, is_whole: bool) -> _Found:
    if not records:
        if not is_whole:
            return _Unserved.TOKEN
        return _failure(key, NO_BATCH, f"the leader holds no record at offset {offset} or above any more")
    position = 0
    while position + _MAGIC_BYTE < len(records):
        magic = records[position + _MAGIC_BYTE]
        if magic < _MAGIC:
            return _failure(key, OLD_FORMAT, f"the last records are of message format {magic}, which names no producer")
        if magic > _MAGIC or position + _HEADER.size > len(records):
            break
        base, length, _, _, _, attributes, delta, _, newest, producer_id, epoch, sequence, _ = _HEADER.unpack_from(records, position)
        if length <= 0:
            break
        if base + delta >= offset:
            return LastBatch(
                base_offset=base,
                last_offset=base + delta,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=sequence,
                is_transactional=bool(attributes & _TRANSACTIONAL),
                is_control=bool(attributes & _CONTROL),
                max_timestamp_ms=newest if newest >= 0 else None,
            )
        position += _LENGTH_AND_OFFSET_BYTES + length
    return _failure(key, INVALID_RESPONSE, f"the answer has no record batch that reaches offset {offset}")


def _failure(key: TopicPartition, error: str, message: str) -> Failure:
    return Failure(api=_API, error=error, message=message, topic=key[0], partition=key[1])
