"""Offsets and timestamps of records equal those that kafka-python decodes; memory and time are bounded for every batch."""

import gzip
import struct
import subprocess
import sys
from itertools import islice
from pathlib import Path

import lz4.frame
import pytest
import snappy
import zstandard
from fake_records import records
from hypothesis import given, settings
from hypothesis import strategies as st
from kafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder
from kafka.record.util import calc_crc32c, encode_varint

from kafka_audit.cluster.codecs import UnreadableBatchError
from kafka_audit.cluster.record_batches import HEADER, RecordBatch

CODECS = {"none": 0, "gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
BASE, FIRST = 1000, 1_700_000_000_000
MB = 1024 * 1024


def varint(number: int) -> bytes:
    found = bytearray()
    encode_varint(number, found.append)
    return bytes(found)


def record(number: int, value: bytes = b"v", *, time: int = 0) -> bytes:
    body = b"\0" + varint(time) + varint(number) + varint(-1) + varint(len(value)) + value + varint(0)
    return varint(len(body)) + body


def batch(
    codec: int, data: bytes, count: int, *, last: int | None = None, base: int = BASE, first: int = FIRST, append_time: int | None = None
) -> RecordBatch:
    """A batch with these bytes after its header, and a checksum that is right."""
    attributes = codec | (8 if append_time is not None else 0)
    delta = count - 1 if last is None else last
    header = (
        base,
        HEADER.size - 12 + len(data),
        0,
        2,
        0,
        attributes,
        delta,
        first,
        first if append_time is None else append_time,
        -1,
        -1,
        -1,
        count,
    )
    whole = bytearray(HEADER.pack(*header) + data)
    struct.pack_into(">I", whole, 17, calc_crc32c(bytes(whole[21:])))
    return RecordBatch.of(memoryview(bytes(whole)))


def read(found: RecordBatch, most: int | None = None) -> list[tuple[int, int]]:
    return list(islice(found.records(lambda: True), most))


def error_of(found: RecordBatch) -> str:
    with pytest.raises(UnreadableBatchError) as caught:
        read(found)
    return caught.value.error


def raw_snappy(data: bytes) -> bytes:
    return bytes(snappy.compress(data))


def xerial(*blocks: bytes) -> bytes:
    return b"\x82SNAPPY\0" + b"\0\0\0\1" * 2 + b"".join(struct.pack(">i", len(block)) + block for block in blocks)


some_records = st.lists(
    st.tuples(
        st.integers(min_value=0, max_value=2**40),  # timestamp
        st.integers(min_value=1, max_value=3),  # step to the next offset: compaction leaves holes
        st.none() | st.binary(max_size=40),
        st.none() | st.binary(max_size=300) | st.integers(min_value=0, max_value=200_000).map(lambda size: b"z" * size),
        st.lists(st.tuples(st.text(max_size=5), st.none() | st.binary(max_size=20)), max_size=3),
    ),
    min_size=1,
    max_size=25,
)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(content=some_records, append_time=st.none() | st.integers(min_value=0, max_value=2**40))
def test_every_codec_gives_the_offsets_and_timestamps_that_kafka_python_decodes(codec, content, append_time):
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=False, producer_id=-1, producer_epoch=-1, base_sequence=-1, batch_size=8 * MB
    )
    offset = 0
    for timestamp, step, key, value, headers in content:
        builder.append(offset, timestamp, key, value, headers)
        offset += step
    data = bytearray(builder.build())
    if append_time is not None:
        struct.pack_into(">h", data, 21, struct.unpack_from(">h", data, 21)[0] | 8)
        struct.pack_into(">q", data, 35, append_time)
        struct.pack_into(">I", data, 17, calc_crc32c(bytes(data[21:])))
    expected = [(one.offset, one.timestamp) for one in DefaultRecordBatch(data)]

    assert read(RecordBatch.of(memoryview(bytes(data)))) == expected


@pytest.mark.parametrize("codec", ["gzip", "zstd", "lz4"])
def test_streams_of_several_members_or_frames_are_read_on(codec):
    pack = {"gzip": gzip.compress, "zstd": zstandard.ZstdCompressor().compress, "lz4": lz4.frame.compress}[codec]
    data = b"".join(pack(record(number, b"x" * 100_000)) for number in range(3))

    assert read(batch(CODECS[codec], data, 3)) == [(BASE + number, FIRST) for number in range(3)]


def test_snappy_is_read_with_and_without_the_framing_of_javas_library():
    whole = record(0, b"x" * 1000) + record(1, b"y" * 1000)

    for data in (raw_snappy(whole), xerial(raw_snappy(whole[:700]), raw_snappy(whole[700:]))):
        assert read(batch(2, data, 2)) == [(BASE, FIRST), (BASE + 1, FIRST)]


LARGE = 80 * MB
STREAMS = {
    "gzip": lambda data: gzip.compress(data, 1),
    "lz4": lz4.frame.compress,
    "zstd": zstandard.ZstdCompressor().compress,
    "snappy": lambda data: xerial(*(raw_snappy(data[start : start + 32_768]) for start in range(0, len(data), 32_768))),
}


@pytest.mark.parametrize("codec", STREAMS)
def test_a_huge_value_does_not_stand_before_its_own_record_but_before_the_next_one(codec):
    data = STREAMS[codec](record(0, bytes(LARGE)) + record(1))
    found = batch(CODECS[codec], data, 2)

    assert read(found, 1) == [(BASE, FIRST)]
    with pytest.raises(UnreadableBatchError, match="64 MB") as caught:
        read(found)
    assert caught.value.error == "RECORD_BATCH_TOO_LARGE"


def test_a_block_that_declares_more_than_the_cap_is_not_decompressed():
    assert error_of(batch(2, b"\xff\xff\xff\xff\x0f" + b"x" * 20, 1)) == "RECORD_BATCH_TOO_LARGE"
    assert error_of(batch(2, xerial(b"\x81\x80\x80\x20x"), 1)) == "RECORD_BATCH_TOO_LARGE"


def test_pieces_that_hold_nothing_count_as_well():
    nothing = xerial(*[raw_snappy(b"")] * 70_000)
    members = gzip.compress(b"") * 70_000

    assert error_of(batch(2, nothing, 1)) == error_of(batch(1, members, 1)) == "RECORD_BATCH_TOO_LARGE"


def test_no_more_than_so_many_records_are_passed_on_the_way_to_one(monkeypatch):
    monkeypatch.setattr("kafka_audit.cluster.record_batches.MOST_RECORDS", 1000)
    data = zstandard.ZstdCompressor().compress(b"".join(record(number, b"") for number in range(1001)))

    assert len(read(batch(4, data, 1001), 1000)) == 1000
    assert error_of(batch(4, data, 1001)) == "RECORD_BATCH_TOO_LARGE"


def test_reading_ends_when_its_time_is_used_up():
    found = batch(4, STREAMS["zstd"](record(0, bytes(MB)) + record(1)), 2)
    answers = iter([True, True, False])
    with pytest.raises(UnreadableBatchError) as caught:
        list(found.records(lambda: next(answers)))

    assert caught.value.error == "DEADLINE_EXCEEDED"


ONE = record(0, b"x" * 200)
DAMAGED = {
    "an endless number": b"\xff" * 30,
    "a length out of range": varint(1 << 31) + ONE,
    "a negative length": varint(-5) + ONE,
    "a length of nothing": varint(0) + ONE,
    "a length that ends before the offset": varint(5) + ONE[2:],
    "a length beyond the end": varint(5000) + ONE[2:],
    "fewer records than claimed": b"",
    "cut within the first numbers": ONE[:4],
    "cut within a value": ONE[:100],
    "bytes after the last record": ONE + b"more",
    "a second record that is not claimed": ONE + record(1),
    "a negative offset delta": record(-1),
    "an offset beyond the batch": record(1),
}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("data", DAMAGED.values(), ids=DAMAGED)
def test_damage_in_the_records_is_a_corrupt_message(codec, data):
    pack = {**STREAMS, "none": bytes}[codec]

    assert error_of(batch(CODECS[codec], pack(data), 1)) == "CORRUPT_MESSAGE"


@pytest.mark.parametrize("codec", STREAMS)
@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[: len(data) // 2],
        lambda data: data[:20],
        lambda _: b"\1" * 40,
        lambda _: b"",
        lambda data: data + b"trailing bytes of no format",
    ],
)
def test_damage_in_the_compression_is_a_corrupt_message(codec, damage):
    data = damage(STREAMS[codec](record(0, bytes(range(256)) * 100)))

    assert error_of(batch(CODECS[codec], data, 1)) == "CORRUPT_MESSAGE"


@pytest.mark.parametrize("size", [b"\xff\xff\xff\xff", b"\0\0\0\0", b"\0\0\xff\xff", b"\0"])
def test_a_snappy_block_whose_length_lies_is_a_corrupt_message(size):
    assert error_of(batch(2, xerial() + size + raw_snappy(ONE), 1)) == "CORRUPT_MESSAGE"


def test_a_count_that_lies_offsets_that_do_not_rise_and_times_beyond_all_numbers_are_corrupt():
    assert error_of(batch(0, ONE, -1)) == "CORRUPT_MESSAGE"
    assert error_of(batch(0, record(1) + record(1), 2)) == "CORRUPT_MESSAGE"
    assert error_of(batch(0, record(0, time=100), 1, first=2**63 - 1)) == "CORRUPT_MESSAGE"
    assert read(batch(0, record(0, time=100), 1, first=2**63 - 1, append_time=7)) == [(BASE, 7)]


def test_a_bit_that_flipped_is_a_corrupt_message_before_anything_is_decompressed():
    data = bytearray(records([50, 51], codec=4, value=b"x" * 200))
    data[-1] ^= 1

    assert error_of(RecordBatch.of(memoryview(bytes(data)))) == "CORRUPT_MESSAGE"


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(data=st.data())
def test_whatever_the_bytes_are_the_answer_is_records_or_a_reason(codec, data):
    valid = STREAMS.get(next(name for name, number in CODECS.items() if number == codec), bytes)(ONE + record(1))
    changed = bytearray(valid)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(changed) - 1))] = data.draw(st.integers(0, 255))
    found = batch(codec, bytes(changed) if data.draw(st.booleans()) else data.draw(st.binary(max_size=200)), data.draw(st.integers(-3, 5)))
    try:
        read(found)
    except UnreadableBatchError as problem:
        assert problem.error in ("CORRUPT_MESSAGE", "RECORD_BATCH_TOO_LARGE")


MEMORY = """
import sys, resource
from pathlib import Path
from kafka_audit.cluster.record_batches import RecordBatch
from kafka_audit.cluster.codecs import UnreadableBatchError
import snappy, lz4.frame, zstandard
found = RecordBatch.of(memoryview(Path(sys.argv[1]).read_bytes()))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    list(found.records(lambda: True))
except UnreadableBatchError as problem:
    print(problem.error, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("codec", STREAMS)
def test_a_batch_of_hundreds_of_megabytes_takes_a_few(codec, tmp_path: Path):
    value = bytes(200 * MB) if codec != "snappy" else bytes(LARGE)
    (tmp_path / "batch").write_bytes(batch(CODECS[codec], STREAMS[codec](record(0, value) + record(1)), 2).data)
    done = subprocess.run([sys.executable, "-c", MEMORY, str(tmp_path / "batch")], capture_output=True, text=True, check=True)
    error, grown_mb = done.stdout.split()

    assert error == "RECORD_BATCH_TOO_LARGE"
    assert int(grown_mb) < 100
