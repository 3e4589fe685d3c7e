"""Reads offsets and timestamps of the records in a batch; keys, values and headers are skipped."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from struct import Struct

from crc32c import crc32c

from kafka_audit.cluster.codecs import UnreadableBatchError, corrupt, decompressed
from kafka_audit.cluster.failures import DEADLINE_EXCEEDED, RECORD_BATCH_TOO_LARGE

# https://kafka.apache.org/documentation/#recordbatch: base offset, batch length, leader epoch, magic, crc, attributes, last offset
# delta, base timestamp, max timestamp, producer id, producer epoch, base sequence, number of records.
HEADER = Struct(">qiibIhiqqqhii")
TRANSACTIONAL, CONTROL = 0x10, 0x20
MOST_RECORDS = 1_000_000
"""So many records of a batch are looked at; Kafka's default limit of 1 MB holds 150,000 of the smallest ones."""

_CODEC, _LOG_APPEND_TIME = 0x07, 0x08
_CHECKED_FROM = 21  # the checksum covers the attributes and all that follows them
_INT32, _INT64 = 1 << 31, 1 << 63
# A record begins with its length, attributes, timestamp delta and offset delta: at most 5 + 1 + 10 + 5 bytes. The lengths of key and
# value and the number of headers take a byte each at least.
_START_BYTES, _LEAST_REST = 21, 3


@dataclass(frozen=True, kw_only=True, slots=True)
class RecordBatch:
    """A record batch of format 2 as the broker stored it. ``data`` holds all of it, ``timestamp_type`` is Kafka's name."""

    base_offset: int
    last_offset: int
    attributes: int
    checksum: int
    producer_id: int
    base_timestamp: int
    max_timestamp: int
    count: int
    data: memoryview

    @classmethod
    def of(cls, data: memoryview) -> "RecordBatch":
        """The batch in these bytes, which must hold its header."""
        base, _, _, _, checksum, attributes, last, base_timestamp, max_timestamp, producer_id, _, _, count = HEADER.unpack_from(data)
        return cls(
            base_offset=base,
            last_offset=base + last,
            attributes=attributes,
            checksum=checksum,
            producer_id=producer_id,
            base_timestamp=base_timestamp,
            max_timestamp=max_timestamp,
            count=count,
            data=data,
        )

    @property
    def is_control(self) -> bool:
        """Whether it holds the end of a transaction instead of records."""
        return bool(self.attributes & CONTROL)

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction, as its records or as its end."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def has_append_time(self) -> bool:
        """Whether the timestamps are the broker's (LogAppendTime) and not the producer's (CreateTime)."""
        return bool(self.attributes & _LOG_APPEND_TIME)

    def records(self, in_time: Callable[[], bool]) -> Iterator[tuple[int, int]]:
        """Offset and timestamp in milliseconds of each record, ascending; -1 stands for no timestamp.

        Decompresses no further than the records that are taken. UnreadableBatchError for damage, for too much to decompress
        (RECORD_BATCH_TOO_LARGE), and once ``in_time`` says no while it is decompressed. What came without compression is as short as the
        answer that held it.
        """
        if crc32c(self.data[_CHECKED_FROM:]) != self.checksum:
            raise corrupt("it does not match its checksum")
        if self.count < 0:
            raise corrupt(f"it claims to hold {self.count} records")
        codec = self.attributes & _CODEC
        pieces = decompressed(codec, self.data[HEADER.size :])
        stream = _Stream(_while_in_time(pieces, in_time) if codec else pieces)
        latest = self.base_offset - 1
        for number in range(self.count):
            if number == MOST_RECORDS:
                text = f"the record that is sought lies behind {MOST_RECORDS:,} others, which is the most that is looked at in a batch"
                raise UnreadableBatchError(RECORD_BATCH_TOO_LARGE, text)
            offset_delta, timestamp_delta = stream.next_record()
            offset = self.base_offset + offset_delta
            timestamp = self.max_timestamp if self.has_append_time else self.base_timestamp + timestamp_delta
            if not latest < offset <= min(self.last_offset, _INT64 - 1) or not -_INT64 <= timestamp < _INT64:
                raise corrupt(f"record {number + 1} of it has an impossible offset or timestamp")
            latest = offset
            yield offset, timestamp
        if not stream.is_at_end():
            raise corrupt(f"it goes on after its {self.count} records")


class _Stream:
    """Bytes that arrive in pieces, of which only the current one is held."""

    def __init__(self, pieces: Iterator[bytes | memoryview]) -> None:
        self._pieces = pieces
        self._piece: bytes | memoryview = b""
        self._position = 0

    def next_record(self) -> tuple[int, int]:
        """Offset delta and timestamp delta of the next record; skips the rest of the record before it."""
        self._pass_over()
        self._hold(_START_BYTES)
        try:
            length, start = _varint(self._piece, self._position, _INT32)
            timestamp_delta, position = _varint(self._piece, start + 1, _INT64)
            offset_delta, position = _varint(self._piece, position, _INT32)
        except IndexError as problem:
            raise corrupt("it ends before its last record") from problem
        if length < position - start + _LEAST_REST:
            raise corrupt(f"a record of it has a length of {length}")
        self._position = start + length
        return offset_delta, timestamp_delta

    def is_at_end(self) -> bool:
        """Whether nothing follows the last record."""
        self._pass_over()
        self._hold(1)
        return self._position >= len(self._piece)

    def _hold(self, size: int) -> None:
        """Make the next ``size`` bytes available in one piece, or all bytes that are left."""
        while len(self._piece) - self._position < size and (more := next(self._pieces, None)) is not None:
            rest = bytes(self._piece[self._position :])
            self._piece, self._position = (b"".join((rest, more)) if rest else more), 0

    def _pass_over(self) -> None:
        """Drop pieces until the position lies in the current piece or at its end."""
        while self._position > len(self._piece):
            self._position -= len(self._piece)
            self._piece = b""
            more = next(self._pieces, None)
            if more is None:
                raise corrupt("it ends within a record")
            self._piece = more


def _varint(data: bytes | memoryview, position: int, limit: int) -> tuple[int, int]:
    """A zigzag-encoded number below ``limit`` and the position after it; IndexError where the bytes end."""
    result = shift = 0
    while True:
        byte = data[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            break
        shift += 7
        if shift > 63:
            raise corrupt("a number in it has no end")
    value = (result >> 1) ^ -(result & 1)
    if not -limit <= value < limit:
        raise corrupt("a number in it is out of range")
    return value, position


def _while_in_time(pieces: Iterator[bytes | memoryview], in_time: Callable[[], bool]) -> Iterator[bytes | memoryview]:
    for piece in pieces:
        if not in_time():
            raise UnreadableBatchError(DEADLINE_EXCEEDED, "the time for decompressing record batches is used up")
        yield piece
