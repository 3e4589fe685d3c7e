"""Reads the header of the last record batch of partitions, and nothing of the records in it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.failures import INVALID_RESPONSE, OLD_FORMAT, Failure
from kafka_audit.cluster.fetching import LENGTH_AND_OFFSET_BYTES, MAGIC, MAGIC_BYTE, Unserved, failure_of, fetch
from kafka_audit.cluster.places import Leaders, TopicPartition
from kafka_audit.cluster.record_batches import CONTROL, HEADER, TRANSACTIONAL


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
        found = fetch(channel, leaders, pending, step=step, read=lambda key, records: _found(key, records, last_offsets[key]))
        results |= {key: value for key, value in found.items() if not isinstance(value, Unserved)}
        pending = {key: offset for key, offset in pending.items() if key not in results}
    return results


def _found(key: TopicPartition, records: bytes, offset: int) -> LastBatch | Failure:
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
