"""Decoding of records of ``__transaction_state``: as Kafka's own serializer writes them, and bytes that are not valid records."""

import random
import struct
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from coordinator_records import raw_rows, tables, text, values
from pyspark.sql import Row

from spark_jobs.commit_history.decode.batch import TRANSACTIONS
from spark_jobs.commit_history.decode.records import TRANSACTION_RECORDS, decode_record
from spark_jobs.commit_history.decode.transactions import STATES

VALUES = values("transaction")
PARTITIONS = [Row(topic="orders", partitions=[0, 2]), Row(topic="__consumer_offsets", partitions=[5])]
TIMES_MS = range(-62_135_596_800_000, 253_402_300_800_000)  # years 1 to 9999
STARTED = datetime(2026, 11, 20, 20, 32, 57, tzinfo=timezone.utc)


def key(transactional_id: str | bytes) -> bytes:
    return struct.pack(">h", 0) + text(transactional_id)


def decoded(rows: pa.Table) -> list[list[Row]]:
    """Transactions, and what could not be decoded."""
    return list(tables(rows, TRANSACTIONS).values())


@pytest.fixture(scope="module")
def made() -> dict[tuple[str, int], Row]:
    names = [name for name in VALUES if name[0] != "key"]
    rows, undecoded = decoded(raw_rows(*((key(name), VALUES[name, version]) for name, version in names)))
    assert undecoded == []
    return {names[row.log_offset]: row for row in rows}


@pytest.mark.parametrize("version", [0, 1])
def test_each_version_of_a_transaction_is_read(made: dict[tuple[str, int], Row], version: int) -> None:
    row = made["ongoing", version]
    assert (row.transactional_id, row.version, row.tombstone) == ("ongoing", version, False)
    assert (row.producer_id, row.producer_epoch, row.timeout_ms) == (4711, 3, 60_000)
    assert (row.state, row.state_number, row.partitions) == ("Ongoing", 1, PARTITIONS)
    assert row.start.astimezone(timezone.utc) == STARTED
    assert row.last_update.astimezone(timezone.utc) == STARTED.replace(microsecond=313_000)
    assert (row.previous_producer_id, row.next_producer_id, row.next_producer_epoch, row.client_version) == (None,) * 4


def test_tagged_fields_are_read_and_those_of_a_later_release_passed_over(made: dict[tuple[str, int], Row]) -> None:
    row = made["tagged", 1]
    assert (row.previous_producer_id, row.next_producer_id, row.next_producer_epoch, row.client_version) == (4710, 4712, 0, 2)
    assert (made["unknown_tag", 1].client_version, made["unknown_tag", 1].partitions) == (2, PARTITIONS)


@pytest.mark.parametrize("version", [0, 1])
def test_what_a_transaction_does_not_have_is_null(made: dict[tuple[str, int], Row], version: int) -> None:
    assert (made["empty", version].partitions, made["empty", version].start) == (None, None)
    assert made["empty", version].last_update is not None
    assert made["no_partitions", version].partitions == []


def test_states_have_kafkas_names_and_an_unknown_number_stays(made: dict[tuple[str, int], Row]) -> None:
    assert [made[f"state_{number}", 1].state for number in range(8)] == list(STATES)
    assert (made["other_state", 1].state, made["other_state", 1].state_number) == (None, 42)


def test_a_transactional_id_is_any_text_and_its_tombstone_a_record() -> None:
    ids = ["", "=cmd|' /C calc'!A0\n\"\\", "t\u0000\U0001f600é", "x" * 5000]
    rows, undecoded = decoded(raw_rows((VALUES["key", 0], None), *((key(each), None) for each in ids)))
    assert undecoded == []
    assert [row.transactional_id for row in rows] == ["pay é", *ids]
    assert {(row.tombstone, row.version, row.producer_id, row.state, row.partitions) for row in rows} == {(True, None, None, None, None)}


def test_what_cannot_be_decoded_is_kept_with_its_bytes_and_a_reason() -> None:
    value, plain = VALUES["ongoing", 1], VALUES["ongoing", 0]
    cases: list[tuple[bytes | None, bytes | None, str]] = [
        (None, value, "the record has no key"),
        (b"\x00", value, "the key is shorter than a record type"),
        (struct.pack(">h", 1) + text("t"), value, "unknown record type"),
        (b"user-4711", b"{}", "unknown record type"),
        (key("t")[:-1], value, "the key is truncated or damaged"),
        (key(b"\xff"), value, "the key is truncated or damaged"),
        (key("t") + b"\x00", None, "bytes are left over after the key"),
        (key("t"), b"", "the value is shorter than a version"),
        (key("t"), b"\x00\x02" + value[2:], "unknown version of the value"),
        (key("t"), value[:-1], "the value is truncated or damaged"),
        (key("t"), plain[:30], "the value is truncated or damaged"),
        (key("t"), plain + b"\x00", "bytes are left over after the value"),
    ]
    rows, undecoded = decoded(raw_rows(*((k, v) for k, v, _ in cases)))
    assert rows == []
    assert [(row.key, row.value, row.problem) for row in undecoded] == cases


def transaction(version: int, pick: random.Random) -> bytes:
    """A value with any number of topics and partitions, and tagged fields in any order."""

    def length(number: int, kind: str) -> bytes:
        if version == 0:
            return struct.pack(kind, number)
        number += 1
        return bytes([number]) if number < 128 else bytes([number & 127 | 128, number >> 7])

    many = pick.choice([(0, 0), (1, 3), (2, 1), (4, 2), (2, 0), (1, 130) if pick.random() < 0.1 else (40, 1)])
    topics = [(pick.choice(["t", "orders-é", "x" * 130 if pick.random() < 0.1 else "y"]), many[1])] * many[0]
    parts = length(len(topics), ">i") if pick.random() < 0.9 else length(-1, ">i")
    for name, count in topics if len(parts) and parts != length(-1, ">i") else []:
        parts += length(len(name.encode()), ">h") + name.encode() + length(count, ">i") + struct.pack(f">{count}i", *range(count))
        parts += b"\x00" * version
    tags = pick.sample(
        [b"\x00\x08" + b"\x00" * 7 + b"\x01", b"\x01\x08" + b"\xff" * 8, b"\x02\x02\x00\x02", b"\x07\x01\x01"], pick.randint(0, 4)
    )
    end = struct.pack(">qq", 1_795_206_777_313, pick.choice([-1, 1_795_206_777_000, 1 << 62]))
    return (
        struct.pack(">hqhib", version, 4711, 3, 60_000, pick.randint(-2, 9)) + parts + end + (bytes([len(tags)]) + b"".join(tags)) * version
    )


def test_reading_by_position_and_field_by_field_agree_on_sound_and_damaged_values() -> None:
    pick, values_ = random.Random(6), []
    for number in range(400):
        value = bytearray(transaction(number % 2, pick))
        for _ in range(pick.choice([0, 0, 1, 2])):
            value[pick.randrange(len(value))] = pick.choice([0, 1, 127, 128, 255, pick.randrange(256)])
        values_.append(bytes(value[: len(value) - pick.choice([0, 0, 0, 1, 9])]))
    rows = raw_rows(*((key("t"), value) for value in values_))
    transactions, undecoded = decoded(rows)
    slow = {at: decode_record(TRANSACTION_RECORDS, key("t"), value) for at, value in enumerate(values_)}
    assert {row.log_offset: row.problem for row in undecoded} == {at: row.problem for at, row in slow.items() if row.problem}
    assert len(transactions) > 100 and len(undecoded) > 100
    for row in transactions:
        value = slow[row.log_offset].value or {}
        theirs = {column.name: value.get(column.name) for column in TRANSACTION_RECORDS[0].value.columns}
        ours = row.asDict(recursive=True)
        shared = theirs.keys() & ours.keys()
        assert len(shared) == 9
        assert {name: ours[name] for name in shared} == {name: theirs[name] for name in shared}
        known = 0 <= theirs["state_number"] < len(STATES)
        assert row.state == (STATES[theirs["state_number"]] if known else None)
        assert (row.start is not None) == (theirs["start_ms"] in TIMES_MS and theirs["start_ms"] != -1)
