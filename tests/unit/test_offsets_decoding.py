"""Decoding of records of the offsets topic: every version as Kafka wrote it, and bytes that are not valid records."""

import random
import struct
from collections import Counter
from datetime import datetime, timezone

import pyarrow as pa
import pytest
from coordinator_records import key, raw_rows, recorded_rows, tables, text, values
from pyspark.sql import Row

from spark_jobs.commit_history.decode.commits import SCHEMA
from spark_jobs.commit_history.decode.records import GROUP_RECORDS, OFFSETS_RECORDS, decode_record

ORDERS = "U9CpafulTVqvC0H8rKsSsA"
COMMIT = key(1, "group", "orders", 3)


def decoded(rows: pa.Table) -> list[list[Row]]:
    """Commits, group records and what could not be decoded."""
    return list(tables(rows).values())


def key_of(name: str) -> bytes:
    kinds = {"offset": COMMIT, "group": key(2, "group"), "consumer_group_member": key(5, "group", "m")}
    kinds |= {"consumer_group_partition": key(4, "g"), "streams_group_member": key(19, "g", "m"), "streams_group_topology": key(23, "g")}
    return next(found for prefix, found in kinds.items() if name.startswith(prefix))


@pytest.fixture(scope="module")
def made() -> dict[tuple[str, int], Row]:
    """What becomes of each value of values(), by name and version: one pass for all of them."""
    names = list(values())
    commits, groups, undecoded = decoded(raw_rows(*((key_of(name), values()[name, version]) for name, version in names)))
    assert undecoded == []
    return {names[row.log_offset]: row for row in [*commits, *groups]}


def one_commit(value: bytes | None, key_: bytes = COMMIT) -> Row:
    commits, groups, undecoded = decoded(raw_rows((key_, value)))
    assert (len(commits), groups, undecoded) == (1, [], [])
    return commits[0]


def test_every_recorded_record_is_decoded_to_its_last_byte() -> None:
    commits, groups, undecoded = decoded(recorded_rows())
    assert undecoded == []
    assert (len(commits), len(groups)) == (3942, 227)
    kinds = Counter((row.record_type, row.tombstone) for row in groups)
    assert kinds[2, False] == 105 and kinds[8, True] == 6 and kinds[23, False] == 1
    assert len({kind for kind, _ in kinds}) == 20
    for row in groups:
        filled = {record.name for record in GROUP_RECORDS if row[record.name] is not None}
        assert filled == (set() if row.tombstone else {row.record_name})
        for member in row.group_metadata.members if row.group_metadata else []:
            assert not any(part and part.undecoded_bytes for part in (member.subscription, member.assignment))


def test_the_positions_of_regular_commits_and_the_field_by_field_reading_agree() -> None:
    fast = [row for row in decoded(recorded_rows())[0] if not row.tombstone]
    raw = {(row["partition"], row["offset"]): (row["key"], row["value"]) for row in recorded_rows().to_pylist()}
    assert len(fast) == 3897
    for row in fast:
        slow = decode_record(OFFSETS_RECORDS, *raw[row.log_partition, row.log_offset])
        assert slow.key == {name: row[name] for name in ("group_id", "topic", "partition")}
        shared = {name: row[name] for name in ("committed", "leader_epoch", "metadata", "topic_id")}
        assert {name: (slow.value or {}).get(name) for name in shared} == shared


@pytest.mark.parametrize("version", range(5))
def test_each_version_of_an_offset_commit_is_read(made: dict[tuple[str, int], Row], version: int) -> None:
    row = made["offset_commit", version]
    assert tuple(row) and list(row.asDict()) == SCHEMA.names
    assert (row.group_id, row.topic, row.partition, row.tombstone, row.version) == ("group", "orders", 3, False, version)
    assert row.committed == -3 + 1000 * version
    assert row.leader_epoch == (7 if version >= 3 else None)
    assert row.metadata == ("" if version == 2 else f'note é"\\\n{version}')
    assert row.commit_time.astimezone(timezone.utc) == datetime(2026, 11, 20, 20, 18, 34, 91000 + 1000 * version, timezone.utc)
    assert (row.expire_time is not None) == (version == 1)
    assert row.topic_id == (ORDERS if version == 4 else None)


@pytest.mark.parametrize(("name", "metadata"), [("long", "x" * 300), ("126", "y" * 126), ("127", "z" * 127), ("unknown_tag", "")])
def test_commits_of_an_unusual_shape_are_commits_too(made: dict[tuple[str, int], Row], name: str, metadata: str) -> None:
    row = made[f"offset_commit_{name}", 4]
    assert (row.metadata, row.topic_id) == (metadata, None if name == "long" else ORDERS)


def test_a_tombstone_of_an_offset_has_no_value_fields() -> None:
    row = one_commit(None)
    assert (row.tombstone, row.version, row.committed, row.metadata, row.commit_time) == (True, None, None, None, None)


def test_a_legacy_commit_and_any_group_id_are_read() -> None:
    groups = ["", "=cmd|' /C calc'!A0\n\"\\", "g\u0000\U0001f600é", "x" * 5000]
    rows = raw_rows(*((key(0, group, "t", -1), values()["offset_commit", 0]) for group in groups))
    commits = decoded(rows)[0]
    assert [(row.group_id, row.partition) for row in commits] == [(group, -1) for group in groups]


@pytest.mark.parametrize("version", range(5))
@pytest.mark.parametrize("protocol", ["consumer", "connect"])
def test_each_version_of_group_metadata_is_read(made: dict[tuple[str, int], Row], version: int, protocol: str) -> None:
    name = "group_metadata_sub3" if protocol == "consumer" else "group_metadata_connect_sub3"
    row = made[name, version]
    group = row.group_metadata
    assert (row.group_id, group.protocol_type, group.generation, group.protocol, group.leader) == ("group", protocol, 4, "range", "m-1")
    assert group.state_ms == (1795206777313 if version >= 2 else None)
    first, second = group.members
    assert (first.member_id, second.member_id, first.session_timeout_ms) == ("m-1", "m-2", 45000)
    assert first.rebalance_timeout_ms == (300000 if version >= 1 else None)
    assert first.instance_id == ("static-1" if version >= 3 else None)
    assert second.assignment is None
    if protocol == "connect":  # a worker's bytes are another protocol's
        assert (first.subscription, first.assignment) == (None, None)
    else:
        assert first.assignment.partitions == [Row(topic="orders", partitions=[0, 1])]


@pytest.mark.parametrize("version", range(4))
def test_each_version_of_a_subscription_is_read(made: dict[tuple[str, int], Row], version: int) -> None:
    classic, upgraded = made[f"group_metadata_sub{version}", 3], made[f"consumer_group_member_metadata_classic_sub{version}", 0]
    protocols = upgraded.consumer_group_member_metadata.classic_member.protocols
    for subscription in (classic.group_metadata.members[0].subscription, protocols[0].subscription):
        assert (subscription.version, subscription.topics, subscription.undecoded_bytes) == (version, ["orders", "pay.events"], 0)
        assert subscription.user_data == bytearray(b"\x09\x08")
        assert subscription.owned_partitions == ([Row(topic="orders", partitions=[2])] if version >= 1 else None)
        assert subscription.generation == (11 if version >= 2 else None)
        assert subscription.rack == ("rack-a" if version >= 3 else None)


def test_fields_that_no_recorded_record_has_are_read(made: dict[tuple[str, int], Row]) -> None:
    names = ("consumer_group_partition_metadata", "streams_group_member_metadata", "streams_group_topology")
    partitions, member, topology = (made[name, 0] for name in names)
    assert partitions.consumer_group_partition_metadata.topics[0].partition_racks == [Row(partition=1, racks=["a", "b"])]
    assert member.streams_group_member_metadata.user_endpoint == Row(host="eh", port=65000)
    assert topology.streams_group_topology.subtopologies[0].copartition_groups[0].source_topics == [0, 1]


def test_what_cannot_be_decoded_is_kept_with_its_bytes_and_a_reason() -> None:
    value = values()["offset_commit", 4]
    cases: list[tuple[bytes | None, bytes | None, str]] = [
        (None, value, "the record has no key"),
        (b"", value, "the key is shorter than a record type"),
        (b"\x01", value, "the key is shorter than a record type"),
        (key(9, "g"), value, "unknown record type"),
        (key(18, "g"), None, "unknown record type"),
        (key(24, "g"), value, "unknown record type"),
        (b"user-4711", b"{}", "unknown record type"),
        (COMMIT[:-1], value, "the key is truncated or damaged"),
        (COMMIT + b"\x00", value, "bytes are left over after the key"),
        (key(1, b"\xff\xfe", "t", 0), value, "the key is truncated or damaged"),
        (struct.pack(">hh", 1, -1), value, "the key is truncated or damaged"),
        (COMMIT, b"\x00", "the value is shorter than a version"),
        (COMMIT, b"\x00\x05" + value[2:], "unknown version of the value"),
        (COMMIT, b"\xff\xff" + value[2:], "unknown version of the value"),
        (COMMIT, value[:-1], "the value is truncated or damaged"),
        (COMMIT, value + b"\x00", "bytes are left over after the value"),
        (COMMIT, values()["offset_commit", 3] + b"\x00", "bytes are left over after the value"),
        (key(2, "g"), values()["group_metadata_sub3", 3][:-3], "the value is truncated or damaged"),
        (key(2, "g"), struct.pack(">hhihhqi", 3, 0, 1, -1, -1, 0, 2**31 - 1), "the value is truncated or damaged"),
        (key(3, "g"), bytes.fromhex("0000 00000001 ffffffff0f"), "the value is truncated or damaged"),
    ]
    commits, groups, undecoded = decoded(raw_rows(*((k, v) for k, v, _ in cases)))
    assert (commits, groups) == ([], [])
    kept = [(row.key, row.value, row.problem) for row in sorted(undecoded, key=lambda row: row.log_offset)]
    assert kept == cases


def member(tags: bytes) -> bytes:
    """A ConsumerGroupMemberMetadataValue with these tagged fields."""
    return bytes.fromhex("0000 00 00 02 63 02 68 01 00 00000005 00") + tags


CLASSIC = bytes.fromhex("01 0000afc8 02 06 72616e6765 01")  # present, session timeout, one protocol: its name, no bytes


@pytest.mark.parametrize(
    ("tags", "session_timeout_ms"),
    [
        (b"\x00", None),
        (b"\x01\x00\x01\x00", None),  # as Kafka writes a member that is not classic
        (b"\x01\x00\x0f" + CLASSIC + b"\x00\x00", 45_000),
        (b"\x01\x00\x12" + CLASSIC + b"\x00\x01\x07\x01\xff", 45_000),  # a later release's field within the tagged struct
        (b"\x02\x00\x01\x00\x09\x02\xff\xff", None),
    ],
)
def test_tagged_structs_may_be_null_and_hold_tagged_fields_of_their_own(tags: bytes, session_timeout_ms: int | None) -> None:
    (row,) = decoded(raw_rows((key(5, "g", "m"), member(tags))))[1]
    classic = row.consumer_group_member_metadata.classic_member
    assert (classic.session_timeout_ms if classic else None) == session_timeout_ms


@pytest.mark.parametrize(
    ("key_", "value"),
    [
        (key(5, "g", "m"), member(b"\x01\x00\x02\x00\x00")),  # a NULL struct of two bytes
        (key(5, "g", "m"), member(b"\x01\x00\x10" + CLASSIC + b"\x00\x00\x00")),  # a size of one byte too many
        (key(5, "g", "m"), member(b"\x01\x09\x04\xff\xff")),  # an unknown field that is cut off
        (key(2, "g"), struct.pack(">hhihhqi", 3, 0, 1, -1, -1, 0, -2)),  # no array has -2 members
        (key(2, "g"), struct.pack(">hhihhqi", 3, 0, 1, -2, -1, 0, 0)),  # NULL is a length of -1 alone
        (key(2, "g"), struct.pack(">hhihhqi", 3, -1, 1, -1, -1, 0, 0)),  # a protocol type may not be NULL
    ],
)
def test_lengths_and_sizes_that_kafka_never_writes_are_damage(key_: bytes, value: bytes) -> None:
    _, _, (row,) = decoded(raw_rows((key_, value)))
    assert row.problem == "the value is truncated or damaged"


def group_of(*members: tuple[bytes, bytes]) -> bytes:
    """A GroupMetadataValue of version 3 whose members have these bytes as subscription and assignment."""
    value = (
        struct.pack(">h", 3) + text("consumer") + struct.pack(">i", 4) + text("range") + text("m-0") + struct.pack(">qi", -1, len(members))
    )
    for number, parts in enumerate(members):
        value += text(f"m-{number}") + struct.pack(">h", -1) + text("client") + text("host") + struct.pack(">ii", 300_000, 45_000)
        value += b"".join(struct.pack(">i", len(part)) + part for part in parts)
    return value


SUBSCRIPTION = struct.pack(">hi", 0, 1) + text("orders") + struct.pack(">i", -1)
ASSIGNMENT = struct.pack(">hi", 0, 1) + text("orders") + struct.pack(">iii", 1, 0, -1)


@pytest.mark.parametrize(
    "damaged",
    [
        b"\x00",  # shorter than a version
        b"\xff\xff" + SUBSCRIPTION[2:],  # a version below 0
        SUBSCRIPTION[:-5],
        SUBSCRIPTION.replace(b"orders", b"ord\xffrs"),
        SUBSCRIPTION[:-4] + struct.pack(">i", 9),  # user data that is cut off
        SUBSCRIPTION[:-4] + struct.pack(">i", -2),  # user data of a length that Kafka never writes
        struct.pack(">hii", 0, -1, -1),  # NULL for the topics
        struct.pack(">hii", 0, -2, -1),
        struct.pack(">hii", 0, 2**31 - 1, -1),
    ],
)
def test_damage_in_the_bytes_of_a_member_is_not_known_and_leaves_the_rest_of_its_group(damaged: bytes) -> None:
    value = group_of((damaged, ASSIGNMENT), (SUBSCRIPTION, damaged), (SUBSCRIPTION, ASSIGNMENT))
    commits, (row,), undecoded = decoded(raw_rows((key(2, "g"), value)))
    assert (commits, undecoded) == ([], [])
    first, second, third = row.group_metadata.members
    assert (first.subscription, second.assignment) == (None, None)
    assert first.assignment == third.assignment and third.assignment.partitions == [Row(topic="orders", partitions=[0])]
    assert second.subscription == third.subscription and third.subscription.topics == ["orders"]
    assert [member.session_timeout_ms for member in row.group_metadata.members] == [45_000] * 3


def test_damage_in_a_classic_members_subscription_leaves_the_rest_of_a_consumer_groups_member() -> None:
    tag = CLASSIC[:-1] + b"\x02\xff" + b"\x00\x00"  # one byte that is no subscription
    commits, (row,), undecoded = decoded(raw_rows((key(5, "g", "m"), member(b"\x01\x00" + bytes([len(tag)]) + tag))))
    assert (commits, undecoded) == ([], [])
    assert row.consumer_group_member_metadata.classic_member.protocols == [Row(name="range", subscription=None)]


def partitions(count: int) -> bytes:
    """An assignment of ``count`` partitions of one topic: two array elements more, with the member who has it."""
    return struct.pack(">hi", 0, 1) + text("t") + struct.pack(">i", count) + bytes(4 * count) + struct.pack(">i", -1)


def test_a_value_with_more_array_elements_than_the_limit_is_kept_with_that_reason() -> None:
    empty_topics = struct.pack(">hi", 0, 170_000) + bytes(6 * 170_000) + struct.pack(">i", -1)
    empty_tags = bytes.fromhex("0000 00 00 02 63 02 68 00000005 00000000 02 70 ff a1e014") + b"\x01\x01\x00" * 340_000 + b"\x00"
    cases = [
        (key(2, "g"), group_of((b"", partitions(99_998)))),
        (key(2, "g"), group_of((b"", partitions(99_999)))),
        (key(2, "g"), group_of(*[(b"", partitions(50_000))] * 2)),  # the limit is for all members together
        (key(2, "g"), group_of((b"", empty_topics))),
        (key(19, "g", "m"), empty_tags),
    ]
    commits, (row,), undecoded = decoded(raw_rows(*cases))
    assert commits == [] and row.log_offset == 0
    assert len(row.group_metadata.members[0].assignment.partitions[0].partitions) == 99_998
    assert [(row.key, row.value) for row in undecoded] == cases[1:]
    assert {row.problem for row in undecoded} == {"the arrays of the value have more than 100,000 elements"}


def test_a_value_of_several_megabytes_is_decoded() -> None:
    subscription = SUBSCRIPTION[:-4] + struct.pack(">i", 3 << 20) + bytes(3 << 20)
    commits, (row,), undecoded = decoded(raw_rows((key(2, "g"), group_of((subscription, ASSIGNMENT)))))
    assert (commits, undecoded) == ([], [])
    assert row.group_metadata.members[0].subscription.user_data == bytes(3 << 20)


def test_damaged_bytes_never_raise_and_no_row_is_lost() -> None:
    pick = random.Random(7)
    originals = [(row["key"], row["value"]) for row in recorded_rows().to_pylist() if row["value"] is not None]
    rows = []
    for number in range(1500):
        key_, value = (bytearray(part) for part in pick.choice(originals))
        for part in (key_, value) if number % 3 else (value,):
            for _ in range(pick.randint(0, 3)):
                part[pick.randrange(len(part))] = pick.randrange(256)
            del part[len(part) - pick.choice((0, 0, 1, 5)) :]
        rows.append((bytes(key_), bytes(value)))
    commits, groups, undecoded = decoded(raw_rows(*rows))
    assert sorted(row.log_offset for row in [*commits, *groups, *undecoded]) == list(range(1500))
    assert all((bytes(row.key), bytes(row.value)) == rows[row.log_offset] for row in undecoded)
