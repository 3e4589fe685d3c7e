"""Decodes records of ``__transaction_state`` by byte positions, a batch of rows at a time with numpy.

Layouts: TransactionLogKey v0 and TransactionLogValue v0-v1 of Kafka 4.3. A record of another shape (lengths that need two bytes of a
varint, very many topics, a tagged field of a later release, damage) is not regular: ``records.decode_record`` decodes it field by field.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from spark_jobs.commit_history.decode.buffers import Buffer, Flags, Ints, flags, masked, split_rows
from spark_jobs.commit_history.decode.commits import time, times
from spark_jobs.commit_history.decode.messages import Row
from spark_jobs.commit_history.decode.records import PLACE, Decoded

STATES = ("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort", "Dead", "PrepareEpochFence")
"""The names that Kafka's tools print, by the number in the record."""

_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))]))
_TAGS = (
    ("previous_producer_id", pa.int64()),
    ("next_producer_id", pa.int64()),
    ("client_version", pa.int16()),
    ("next_producer_epoch", pa.int16()),
)
"""Tagged fields, by their numbers."""

SCHEMA = pa.schema(
    [
        *PLACE,
        pa.field("transactional_id", pa.string()),
        pa.field("tombstone", pa.bool_()),
        pa.field("version", pa.int16()),
        pa.field("producer_id", pa.int64()),
        pa.field("producer_epoch", pa.int16()),
        pa.field("timeout_ms", pa.int32()),
        pa.field("state_number", pa.int8()),
        pa.field("state", pa.string()),
        pa.field("partitions", _PARTITIONS),
        pa.field("last_update", pa.timestamp("us", "UTC")),
        pa.field("start", pa.timestamp("us", "UTC")),
        *(pa.field(name, kind) for name, kind in _TAGS),
    ]
)
"""``state`` is NULL for a number that STATES does not have;
``last_update`` and ``start`` where the record has no such time; tagged fields where it leaves them out."""

NO_TIME_MS = -1
_FIXED = 17  # bytes before the partitions
_MOST_TOPICS = 32


def regular_transactions(batch: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch]:
    """Raw rows (commits.RAW, the key may be a dictionary) -> the regular records and tombstones (SCHEMA), and all other rows."""
    return split_rows(batch, SCHEMA, _keys, _values)


def irregular_transaction(record: Decoded) -> Row:
    """The columns of SCHEMA, but for the record's place, of a record or a tombstone that was decoded field by field."""
    value = record.value or {}
    state = value.get("state_number")
    moments = {name: value.get(f"{name}_ms") for name in ("last_update", "start")}
    return {
        **record.key,
        **value,
        "tombstone": record.value is None,
        "version": record.version,
        "state": STATES[state] if state is not None and 0 <= state < len(STATES) else None,
        **{name: None if moment == NO_TIME_MS else time(moment) for name, moment in moments.items()},
    }


def _keys(key: pa.BinaryArray) -> tuple[Flags, list[pa.Array]]:
    """Which keys are those of regular records, and transactional_id."""
    bytes_ = Buffer(key)
    length = bytes_.integers(2, 2)
    regular = (bytes_.integers(0, 2) == 0) & (length >= 0) & (bytes_.lengths == 4 + length)
    ids, regular = bytes_.texts(4, length, regular)
    return regular, [ids]


def _values(value: pa.BinaryArray) -> tuple[Flags, list[pa.Array]]:
    """Which values are those of regular records or tombstones, and the columns of SCHEMA after ``tombstone``."""
    bytes_, present = Buffer(value), flags(value.is_valid())
    version, state = bytes_.integers(0, 2), bytes_.integers(16, 1)
    flexible = version == 1
    lists_end, sound, lists = _partitions(bytes_, flexible, present & (flexible | (version == 0)))
    end = lists_end + 16
    left = np.where(flexible, bytes_.integers(end, 1), 0)
    end = end + flexible
    tags = []
    for number, (_, kind) in enumerate(_TAGS):
        width = kind.bit_width // 8
        here = (left > 0) & (bytes_.integers(end, 1) == number) & (bytes_.integers(end + 1, 1) == width)
        tags.append((here, bytes_.integers(end + 2, width), kind))
        end, left = np.where(here, end + 2 + width, end), left - here
    regular = sound & (left == 0) & (end == bytes_.lengths)
    named = regular & (state >= 0) & (state < len(STATES))
    moments = (bytes_.integers(lists_end + at, 8) for at in (0, 8))
    fields = [
        masked(version, pa.int16(), regular),
        masked(bytes_.integers(2, 8), pa.int64(), regular),
        masked(bytes_.integers(10, 2), pa.int16(), regular),
        masked(bytes_.integers(12, 4), pa.int32(), regular),
        masked(state, pa.int8(), regular),
        pa.array(STATES).take(masked(state, pa.int64(), named)),
        lists,
        *(times(moment, regular & (moment != NO_TIME_MS)) for moment in moments),
        *(masked(tag, kind, regular & here) for here, tag, kind in tags),
    ]
    return regular | ~present, fields


def _partitions(bytes_: Buffer, flexible: Flags, rows: Flags) -> tuple[Ints, Flags, pa.ListArray]:
    """Where the partitions of each row end, whether they are sound, and the topics with their partitions.

    Reads the first topic of all rows, then the second, and so on: few transactions write to many topics.
    """
    count, end, sound = _length(bytes_, np.full(len(rows), _FIXED), flexible, 4)
    sound &= rows & (count >= -1)
    left = np.where(sound, count, 0)
    found: list[npt.NDArray[np.int64]] = []
    while len(found) < _MOST_TOPICS and (left > 0).any():
        name, name_at, whole_name = _length(bytes_, end, flexible, 2)
        size, size_at, whole_size = _length(bytes_, name_at + np.maximum(name, 0), flexible, 4)
        behind = size_at + 4 * size + flexible  # in a flexible version a count of tagged fields follows
        untagged = ~flexible | (bytes_.integers(behind - 1, 1) == 0)
        good = (left > 0) & whole_name & whole_size & (name >= 0) & (size >= 0) & untagged & (behind <= bytes_.lengths)
        found.append(np.array([np.flatnonzero(good), *(each[good] for each in (name_at, name, size_at, size))]))
        sound &= good | (left <= 0)
        end, left = np.where(good, behind, end), np.where(good, left - 1, 0)
    sound &= (left <= 0) & (end <= bytes_.lengths)
    row, name_at, name, size_at, size = np.concatenate(found, axis=1) if found else np.zeros((5, 0), np.int64)
    topics, is_text = bytes_.take(row).texts(name_at, name, np.ones(len(row), bool))
    sound[row[~is_text]] = False
    order = np.argsort(row, kind="stable")  # by row, and in each row by topic
    order = order[sound[row[order]]]
    numbers, ends = bytes_.take(row[order]).runs(size_at[order], 4 * size[order])
    partitions = pa.ListArray.from_arrays((ends // 4).astype(np.int32), pa.array(numbers.view(">i4").astype(np.int32)))
    structs = pa.StructArray.from_arrays([topics.take(pa.array(order)), partitions], fields=list(_PARTITIONS.value_type))
    offsets = np.concatenate([[0], np.cumsum(np.bincount(row[order], minlength=len(rows)))]).astype(np.int32)
    lists = pa.ListArray.from_arrays(offsets, structs, mask=pa.array(~sound | (count < 0)))
    return end, sound, lists


def _length(bytes_: Buffer, position: Ints, flexible: Flags, width: int) -> tuple[Ints, Ints, Flags]:
    """A length (-1: NULL), the position after it, and whether it is whole: a varint of more than one byte is not read here."""
    short = bytes_.integers(position, 1)
    length = np.where(flexible, short - 1, bytes_.integers(position, width))
    return length, position + np.where(flexible, 1, width), ~flexible | (short >= 0)
