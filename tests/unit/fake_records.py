"""Builds record batches in their format on disk, and Fetch answers that contain them."""

import struct
from collections.abc import Callable, Sequence
from typing import Any

from kafka.protocol.consumer.fetch import FetchResponse
from kafka.record.default_records import DefaultRecordBatchBuilder
from kafka.record.util import calc_crc32c


def batch(
    base: int, last: int | None = None, *, attributes: int = 0, producer: tuple[int, int, int] = (-1, -1, -1), size: int = 61
) -> bytes:
    """A record batch of format 2 of ``size`` bytes, whose records are zeros; ``producer`` is its id, epoch and base sequence."""
    delta = (base if last is None else last) - base
    header = struct.pack(">qiibIhiqqqhii", base, size - 12, 0, 2, 0, attributes, delta, 1, 1700000000000, *producer, delta + 1)
    return header + bytes(size - len(header))


def records(
    offsets: Sequence[int],
    *,
    last: int | None = None,
    codec: int = 0,
    timestamps: Sequence[int] | None = None,
    append_time: int | None = None,
    attributes: int = 0,
    producer_id: int = -1,
    value: bytes = b"v",
) -> bytes:
    """A record batch as a producer sends it (``codec``: 0 none, 1 gzip, 2 snappy, 3 lz4) with records at ``offsets``, which may have holes.

    ``append_time`` is the broker's timestamp of the whole batch; ``last`` is its last offset where compaction took the record, ``attributes`` are bits to set.
    """
    base = offsets[0]
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1, batch_size=1 << 20
    )
    for offset, timestamp in zip(offsets, timestamps or [1700000000000] * len(offsets), strict=True):
        builder.append(offset - base, timestamp, None, value, [])
    data = bytearray(builder.build())
    struct.pack_into(">q", data, 0, base)
    attributes |= struct.unpack_from(">h", data, 21)[0] | (0x08 if append_time is not None else 0)
    newest = struct.unpack_from(">q", data, 35)[0] if append_time is None else append_time
    struct.pack_into(">h", data, 21, attributes)
    struct.pack_into(">i", data, 23, (offsets[-1] if last is None else last) - base)
    struct.pack_into(">q", data, 35, newest)
    struct.pack_into(">q", data, 43, producer_id)
    struct.pack_into(">I", data, 17, calc_crc32c(bytes(data[21:])))
    return bytes(data)


def records_of(request: Any, records: Callable[[str, Any], bytes | int], aborted: Sequence[tuple[int, int, int]] = ()) -> Any:
    """A Fetch answer with the bytes, or the error code, that ``records`` gives for each topic and partition asked.

    ``aborted``: producer id, first and last offset of aborted transactions; a read_committed consumer is told those that end later.
    """
    transaction = FetchResponse.FetchableTopicResponse.PartitionData.AbortedTransaction
    topic = FetchResponse.FetchableTopicResponse
    answers = []
    for t in request.topics:
        partitions = []
        for p in t.partitions:
            found = records(t.topic, p)
            told = [transaction(producer_id=who, first_offset=first) for who, first, last in aborted if last >= p.fetch_offset]
            code, data = (found, b"") if isinstance(found, int) else (0, found)
            partitions.append(
                topic.PartitionData(
                    partition_index=p.partition,
                    error_code=code,
                    high_watermark=100,
                    aborted_transactions=told if request.isolation_level else None,
                    records=data,
                )
            )
        answers.append(topic(topic=t.topic, partitions=partitions))
    return FetchResponse(throttle_time_ms=0, error_code=0, session_id=0, responses=answers)
