"""Decodes offset commits by byte positions, a batch of rows at a time with numpy: nearly all records are such commits.

Layouts: OffsetCommitKey v0 and OffsetCommitValue v0-v4 of Kafka 4.3. A commit of another shape (a long metadata text, a tagged
field of a later release, damage) is not regular: ``records.decode_record`` decodes it field by field.
"""

import base64

import numpy as np
import pyarrow as pa

from spark_jobs.commit_history.decode.buffers import Buffer, Flags, Ints, flags, masked, split_rows
from spark_jobs.commit_history.decode.messages import Row
from spark_jobs.commit_history.decode.records import PLACE, Decoded

SCHEMA = pa.schema(
    [
        *PLACE,
        pa.field("group_id", pa.string()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("tombstone", pa.bool_()),
        pa.field("version", pa.int16()),
        pa.field("committed", pa.int64()),
        pa.field("leader_epoch", pa.int32()),
        pa.field("metadata", pa.string()),
        pa.field("commit_time", pa.timestamp("us", "UTC")),
        pa.field("expire_time", pa.timestamp("us", "UTC")),
        pa.field("topic_id", pa.string()),
    ]
)
"""version is the value's; leader_epoch is NULL
before v3 and -1 where the client gave none; expire_time is of v1 only; topic_id is as Kafka prints it, of v4 only."""

_FIRST_MS, _LAST_MS = -62_135_596_800_000, 253_402_300_799_999  # years 1 to 9999, what every reader of Parquet can show
_TOPIC_ID_TAG = 0x010010  # one tagged field, number 0, 16 bytes


def regular_commits(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Raw rows (RAW, the key may be a dictionary) -> the regular offset commits and their tombstones (SCHEMA), and all other rows."""
    return split_rows(batch, SCHEMA, _keys, _values)


def irregular_commit(record: Decoded) -> Row:
    """The columns of SCHEMA, but for the record's place, of a commit or a tombstone that was decoded field by field."""
    value = record.value or {}
    return {
        **record.key,
        **{name: value.get(name) for name in ("committed", "leader_epoch", "metadata", "topic_id")},
        "tombstone": record.value is None,
        "version": record.version,
        "commit_time": time(value.get("commit_ms")),
        "expire_time": time(value.get("expire_ms")),
    }


def _keys(key: pa.BinaryArray) -> tuple[Flags, list[pa.Array]]:
    """Which keys are those of regular commits, and group_id, topic and partition."""
    bytes_ = Buffer(key)
    kind, group = bytes_.integers(0, 2), bytes_.integers(2, 2)
    topic = bytes_.integers(4 + group, 2)
    regular = (kind >= 0) & (kind <= 1) & (group >= 0) & (topic >= 0) & (bytes_.lengths == group + topic + 10)
    groups, sound_group = bytes_.texts(4, group, regular)
    topics, sound_topic = bytes_.texts(6 + group, topic, regular)
    partition = masked(bytes_.integers(6 + group + topic, 4), pa.int32(), regular)
    return sound_group & sound_topic, [groups, topics, partition]


def _values(value: pa.BinaryArray) -> tuple[Flags, list[pa.Array]]:
    """Which values are those of regular commits or tombstones, and the columns of SCHEMA after ``tombstone``."""
    bytes_ = Buffer(value)
    present = flags(value.is_valid())
    version = bytes_.integers(0, 2)
    four, three = version == 4, version == 3
    # 126 bytes of metadata are the most whose length is one byte of a varint; a first bit that is set makes the number negative here.
    length = np.where(four, bytes_.integers(14, 1) - 1, bytes_.integers(np.where(three, 14, 10), 2))
    text = np.where(four, 15, np.where(three, 16, 12))
    time = text + length
    rest = bytes_.lengths - time
    plain = four & (rest == 9) & (bytes_.integers(time + 8, 1) == 0)
    with_topic = four & (rest == 27) & (bytes_.integers(time + 8, 4) >> 8 & 0xFFFFFF == _TOPIC_ID_TAG)
    expiring = (version == 1) & (rest == 16)
    early = ((version == 0) | (version == 2) | three) & (rest == 8)
    regular = present & (length >= 0) & (plain | with_topic | expiring | early)
    metadata, regular = bytes_.texts(text, length, regular)
    fields = [
        masked(version, pa.int16(), regular),
        masked(bytes_.integers(2, 8), pa.int64(), regular),
        masked(bytes_.integers(10, 4), pa.int32(), regular & (four | three)),
        metadata,
        times(bytes_.integers(time, 8), regular),
        times(bytes_.integers(time + 8, 8), regular & expiring)
        if expiring.any()
        else pa.nulls(len(value), SCHEMA.field("expire_time").type),
        _topic_ids(bytes_.fixed(time + 11, 16, regular & with_topic)),
    ]
    return regular | ~present, fields


def time(milliseconds: int | None) -> int | None:
    """Epoch milliseconds as epoch microseconds, which Arrow takes for a timestamp; None outside the years 1 to 9999."""
    return milliseconds * 1000 if milliseconds is not None and _FIRST_MS <= milliseconds <= _LAST_MS else None


def times(milliseconds: Ints, rows: Flags) -> pa.TimestampArray:
    """Timestamps of epoch milliseconds; NULL where ``rows`` is false and outside the years 1 to 9999."""
    shown = rows & (milliseconds >= _FIRST_MS) & (milliseconds <= _LAST_MS)
    return masked(np.where(shown, milliseconds, 0) * 1000, SCHEMA.field("commit_time").type, shown)


def _topic_ids(sixteen_bytes: pa.FixedSizeBinaryArray) -> pa.StringArray:
    """Kafka's Uuid as Kafka prints it: URL-safe base64 without padding."""
    ids = sixteen_bytes.dictionary_encode()
    texts = [base64.urlsafe_b64encode(each).decode().rstrip("=") for each in ids.dictionary.to_pylist()]  # one for each topic
    return pa.array(texts, pa.string()).take(ids.indices)
