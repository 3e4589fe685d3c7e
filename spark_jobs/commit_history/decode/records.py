"""The record types of the coordinators' topics, and one raw record of any type decoded field by field."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from types import ModuleType

import pyarrow as pa

from spark_jobs.commit_history.decode.definitions import group_coordinator, transaction_coordinator
from spark_jobs.commit_history.decode.messages import DAMAGE, MOST_ELEMENTS, Message, Row, TooManyElementsError

PLACE = [("log_partition", pa.int32()), ("log_offset", pa.int64()), ("append_time", pa.timestamp("us", "UTC"))]
"""Where a record lies in its topic: the first columns of every table."""


@dataclass(frozen=True, kw_only=True)
class RecordType:
    """A record type: the int16 with which its keys begin, Kafka's name for it in snake case, and the definitions of key and value."""

    number: int
    name: str
    key: Message
    value: Message


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """One record. ``value`` is None for a tombstone; ``problem`` says why the record could not be decoded, else None.

    ``type`` and ``version`` are what key and value begin with, None where they are too short; also of a record with a problem.
    """

    type: int | None
    version: int | None
    name: str | None = None
    key: Row = field(default_factory=dict)
    value: Row | None = None
    problem: str | None = None


def _types(package: ModuleType) -> dict[int, RecordType]:
    """The record types for which ``package`` has definitions, by their numbers."""
    names = [file.name.removesuffix("Value.json") for file in files(package).iterdir() if file.name.endswith("Value.json")]
    found = [(name, Message(f"{name}Key", package), Message(f"{name}Value", package)) for name in names]
    types = [RecordType(number=key.type, name=_snake_case(name), key=key, value=value) for name, key, value in found]
    return {each.number: each for each in sorted(types, key=lambda each: each.number)}


def _snake_case(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).removeprefix("_")


_GROUP_COORDINATOR = _types(group_coordinator)
COMMIT_TYPES = (0, 1)
OFFSETS_RECORDS: Mapping[int, RecordType] = {
    # Brokers from before Kafka 0.9 wrote commits under type 0; their values differ from others by the version alone.
    0: replace(_GROUP_COORDINATOR[1], number=0, name="legacy_offset_commit"),
    **_GROUP_COORDINATOR,
}
"""Of ``__consumer_offsets``, by the number of the type."""
TRANSACTION_RECORDS: Mapping[int, RecordType] = _types(transaction_coordinator)
"""Of ``__transaction_state``, by the number of the type."""

GROUP_RECORDS = tuple(each for each in OFFSETS_RECORDS.values() if each.number not in COMMIT_TYPES)
GROUP_RECORD_FIELDS = [pa.field(each.name, pa.struct(each.value.columns)) for each in GROUP_RECORDS]
"""A struct column for each record type of a group, named like the type."""


class _UndecodableError(Exception):
    """Why a record cannot be decoded."""


def decode_record(types: Mapping[int, RecordType], key: bytes | None, value: bytes | None) -> Decoded:
    """Decode a raw record of the topic that holds ``types``; never raises because of what the bytes are."""
    number, version = _int16(key), _int16(value)
    try:
        if key is None:
            raise _UndecodableError("the record has no key")
        if number is None:
            raise _UndecodableError("the key is shorter than a record type")
        if number not in types:
            raise _UndecodableError("unknown record type")
        of_type = types[number]
        key_row = _whole(of_type.key, key, 0, "key")
        value_row = None if value is None else _value_of(of_type, value, version)
    except _UndecodableError as problem:
        return Decoded(type=number, version=version, problem=str(problem))
    return Decoded(type=number, version=version, name=of_type.name, key=key_row, value=value_row)


def _value_of(of_type: RecordType, value: bytes, version: int | None) -> Row:
    if version is None:
        raise _UndecodableError("the value is shorter than a version")
    if not 0 <= version <= of_type.value.last_version:
        raise _UndecodableError("unknown version of the value")
    return _whole(of_type.value, value, version, "value")


def _whole(message: Message, data: bytes, version: int, what: str) -> Row:
    """Decode all bytes after the first two, which are the record type or the version."""
    try:
        row, left = message.decode(data[2:], version)
    except DAMAGE:
        raise _UndecodableError(f"the {what} is truncated or damaged") from None
    except TooManyElementsError:
        raise _UndecodableError(f"the arrays of the {what} have more than {MOST_ELEMENTS:,} elements") from None
    if left:
        raise _UndecodableError(f"bytes are left over after the {what}")
    return row


def _int16(data: bytes | None) -> int | None:
    return int.from_bytes(data[:2], "big", signed=True) if data is not None and len(data) >= 2 else None
