"""Measure a snapshot of a cluster with one huge, highly compressed record that a group has not read.

    .venv/bin/python bench/large_record.py                    900 MB of zeros, zstd
    .venv/bin/python bench/large_record.py --megabytes 300

The commit of one group is at the huge record, that of another at a small record behind it in the same batch. The batch is built and sent
in pieces, so that this process does not need the memory; the brokers' limits are at their defaults.
"""

import argparse
import socket
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

import pyarrow.parquet as pq
import zstandard
from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError, NoError
from kafka.record.util import calc_crc32c, encode_varint
from processes import run
from run import machine

from kafka_audit.sandbox.lifecycle import start

TOPIC = "bench-large-record"
TARGET_MB = 400
_MB = 1024 * 1024
_ZSTD = 4
_PRODUCE_VERSION = 9
_HEADER = struct.Struct(">qiibIhiqqqhii")


def varint(number: int) -> bytes:
    found = bytearray()
    encode_varint(number, found.append)
    return bytes(found)


def record(number: int, size: int) -> Iterator[bytes]:
    start = b"\0" + varint(0) + varint(number) + varint(-1) + varint(size)
    yield varint(len(start) + size + 1) + start
    for left in range(size, 0, -_MB):
        yield bytes(min(left, _MB))
    yield varint(0)


def batch(megabytes: int) -> bytes:
    """A record batch of two records: ``megabytes`` of zeros, and one byte."""
    packer = zstandard.ZstdCompressor(level=3).compressobj()
    data = b"".join(packer.compress(piece) for number, size in enumerate((megabytes * _MB, 1)) for piece in record(number, size))
    data += packer.flush()
    now = int(time.time() * 1000)
    whole = bytearray(_HEADER.pack(0, _HEADER.size - 12 + len(data), -1, 2, 0, _ZSTD, 1, now, now, -1, -1, -1, 2) + data)
    struct.pack_into(">I", whole, 17, calc_crc32c(bytes(whole[21:])))
    return bytes(whole)


def produce(address: tuple[str, int], records: bytes) -> None:
    """Send one Produce request, version 9 (https://kafka.apache.org/protocol#The_Messages_Produce); RuntimeError if it is refused."""

    def text(value: str) -> bytes:
        return bytes([len(value) + 1]) + value.encode()

    length, rest = bytearray(), len(records) + 1
    while rest > 0x7F:
        length.append(rest & 0x7F | 0x80)
        rest >>= 7
    length.append(rest)
    partition = struct.pack(">i", 0) + bytes(length) + records + b"\0"
    body = b"\0" + struct.pack(">hi", -1, 60_000) + b"\2" + text(TOPIC) + b"\2" + partition + b"\0\0"
    request = struct.pack(">hhi", 0, _PRODUCE_VERSION, 1) + struct.pack(">h", 5) + b"bench" + b"\0" + body
    with socket.create_connection(address, timeout=120) as connection, connection.makefile("rb") as answers:
        connection.sendall(struct.pack(">i", len(request)) + request)
        answer = answers.read(struct.unpack(">i", answers.read(4))[0])
    # The answer: correlation id, tagged fields, one topic, its name, one partition, its index; then the error.
    error = struct.unpack_from(">h", answer, 4 + 1 + 1 + 1 + len(TOPIC) + 1 + 4)[0]
    if error:
        raise RuntimeError(f"the broker refused the batch with error {error}")


def patiently(what: str, attempt: Callable[[], object]) -> None:
    for number in range(50):
        try:
            attempt()
            return
        except (KafkaError, RuntimeError) as problem:
            last = problem
        time.sleep(0.1 * (number + 1))
    raise RuntimeError(f"{what}: {last}")


def commit(admin: KafkaAdminClient, group: str, offset: int) -> None:
    answer = admin.alter_group_offsets(group, {TopicPartition(TOPIC, 0): OffsetAndMetadata(offset, "", -1)})
    if not all(error in {None, NoError} for error in answer.values()):
        raise RuntimeError(str(answer))


def measure(work: Path, megabytes: int) -> None:
    with start(seed="none", directory=work / "brokers", progress=lambda line: print(f"  {line}", flush=True)) as sandbox:
        records = batch(megabytes)
        with closing(KafkaAdminClient(bootstrap_servers=sandbox.bootstrap)) as admin:
            admin.create_topics([NewTopic(TOPIC, -1, -1, replica_assignments={0: [1, 2, 3]})])
            leader = next(broker for broker in admin.describe_cluster()["brokers"] if broker["broker_id"] == 1)
            patiently("produce", lambda: produce((leader["host"], leader["port"]), records))
            for offset in (0, 1):
                patiently("commit", partial(commit, admin, f"bench-{offset}", offset))
        print(f"snapshot of a {megabytes} MB record, {len(records) / 1000:.0f} kB compressed (zstd), {machine()}")
        command = [str(Path(sys.executable).with_name("kafka-audit")), "snapshot", "--offsets-only", "--bootstrap", sandbox.bootstrap]
        used = run([*command, "--root", str(work / "root")], log=work / "log")
        (table,) = (work / "root").glob("offsets/*/*/first_unread.parquet")
        for row in pq.read_table(table).to_pylist():
            print(f"  offset {row['offset']}: timestamp {row['timestamp_ms']} {row['timestamp_type']}, error {row['error']}")
        print(f"  {used.wall_s:.2f} s wall, {used.cpu_s:.2f} s CPU, {used.peak_mb:.0f} MB peak, target {TARGET_MB} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=900)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder:
        measure(Path(folder), asked.megabytes)


if __name__ == "__main__":
    main()
