"""Messages as Kafka's JSON definitions describe them, decoded by kafka-python into rows with the column names of our tables."""

import base64
import struct
from dataclasses import dataclass
from io import BytesIO
from types import ModuleType
from typing import Any

import pyarrow as pa
from kafka.protocol.schemas import StructField, load_json

Row = dict[str, Any]

DAMAGE = (ValueError, struct.error)
"""What decoding raises where bytes are not a message of the definition: truncated, no UTF-8, NULL where no NULL may be."""

MOST_ELEMENTS = 100_000
"""How many elements the arrays of one value may have in all: one of three bytes takes up to 500 bytes of memory while it is decoded."""


class TooManyElementsError(Exception):
    """The arrays of a value have more than MOST_ELEMENTS elements."""


_COLUMNS = {
    "group": "group_id",
    "offset": "committed",
    "commitTimestamp": "commit_ms",
    "expireTimestamp": "expire_ms",
    "currentStateTimestamp": "state_ms",
    "groupInstanceId": "instance_id",
    "rebalanceTimeout": "rebalance_timeout_ms",
    "sessionTimeout": "session_timeout_ms",
    "GenerationId": "generation",
    "RackId": "rack",
    "SubscribedTopicNames": "subscribed_topics",
    "SubscribedTopicRegex": "subscribed_regex",
    "ClassicMemberMetadata": "classic_member",
    "SupportedProtocols": "protocols",
    "ClassicProtocol.Metadata": "subscription",
    "Timestamp": "resolved_ms",
    "AssignmentTimestamp": "assignment_ms",
    "TopicPartitions": "partitions",
    "AssignedPartitions": "assigned",
    "ConsumerProtocolAssignment.AssignedPartitions": "partitions",
    "PartitionsPendingRevocation": "pending_revocation",
    "TopicName": "topic",
    "NumPartitions": "partition_count",
    "PartitionMetadata": "partition_racks",
    "InitializingTopics": "initializing",
    "InitializedTopics": "initialized",
    "DeletingTopics": "deleting",
    "SubtopologyId": "subtopology",
    "TopicInfo.Name": "topic",
    "TopicInfo.Partitions": "partition_count",
    "TopicConfigs": "configs",
    "TransactionTimeoutMs": "timeout_ms",
    "TransactionStatus": "state_number",
    "TransactionPartitions": "partitions",
    "PartitionIds": "partitions",
    "TransactionLastUpdateTimestampMs": "last_update_ms",
    "TransactionStartTimestampMs": "start_ms",
    "ClientTransactionVersion": "client_version",
}
"""Kafka's name of a field -> our column. Where a name has two columns, the name of its struct stands before it. All other names only change
to snake case."""

_ARROW = {
    "int8": pa.int8(),
    "int16": pa.int16(),
    "uint16": pa.int32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "string": pa.string(),
    "bytes": pa.binary(),
    "uuid": pa.string(),
}
_NO_UUID = bytes(16)


class Message:
    """One message definition. ``type``: the record type (Kafka's apiKey), ``last_version``: the newest version that can be decoded."""

    def __init__(self, name: str, package: ModuleType | None = None) -> None:
        """Load ``<name>.json`` from ``package``, or from the definitions that kafka-python ships."""
        definition = load_json(name, package=package)
        self.type: int = definition.get("apiKey", -1)
        self.last_version: int = StructField.parse_versions(definition["validVersions"])[1]
        self._flexible_from: int = StructField.parse_versions(definition["flexibleVersions"])[0]
        fields = [_with_columns(field, name) for field in definition["fields"]]
        self._struct = StructField({**definition, "fields": fields})
        _count_elements(self._struct)

    @property
    def columns(self) -> list[pa.Field]:
        """The columns of a decoded row, in the order of the definition."""
        return _arrow_fields(self._struct)

    def decode(self, data: bytes, version: int) -> tuple[Row, int]:
        """The fields that ``data`` holds, by column, and how many bytes are left over after them.

        Fields that the version does not have, and tagged fields that the writer left out, are not in the row. A uuid is text as Kafka
        prints it (URL-safe base64). A member's subscription and assignment are decoded where the group's protocol type is "consumer".
        They are None for other protocol types, whose bytes have another form, and where their bytes are damaged.

        Raises one of DAMAGE, or TooManyElementsError.
        """
        return self._decode(data, version, _Elements())

    def decode_member(self, data: bytes, elements: "_Elements") -> Row | None:
        """A message of the consumer protocol, which begins with its version; None where ``data`` is not such a message.

        Clients write these bytes, and brokers store them unread. A version that is newer is read like the newest known, as Kafka does.
        """
        version = int.from_bytes(data[:2], "big", signed=True)
        if len(data) < 2 or version < 0:
            return None
        try:
            found, left = self._decode(data[2:], min(version, self.last_version), elements)
        except DAMAGE:
            return None
        return {"version": version, **found, "undecoded_bytes": left}

    def _decode(self, data: bytes, version: int, elements: "_Elements") -> tuple[Row, int]:
        unread = _Exact(data, elements)
        flexible = 0 <= self._flexible_from <= version
        found = self._struct.decode(unread, version=version, compact=flexible, tagged=flexible)
        # kafka-python takes every negative length for NULL or for an empty array; Kafka writes no other than -1.
        if not flexible and self._struct.encode(found, version=version) != data[: unread.tell()]:
            raise ValueError("a negative length")
        consumer = found.get("protocol_type", "consumer") == "consumer"
        return _row(self._struct, found, _Reading(version, consumer, elements)), len(data) - unread.tell()


class _Elements:
    """Counts the array elements of one value, those in the bytes of its members included."""

    def __init__(self) -> None:
        self._left = MOST_ELEMENTS

    def count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise TooManyElementsError


@dataclass(frozen=True)
class _Reading:
    """What the fields of one message share: its version, whether members follow the consumer protocol, and the elements of its value."""

    version: int
    consumer: bool
    elements: _Elements


class _Exact(BytesIO):
    """Bytes that can only be read in full: kafka-python would take a tagged field that is cut off for a whole one."""

    def __init__(self, data: bytes, elements: _Elements) -> None:
        super().__init__(data)
        self.elements = elements

    def read(self, size: int | None = -1) -> bytes:
        found = super().read(size)
        if len(found) != size:
            raise ValueError("the bytes end within a field")
        return found


class _Counted:
    """The definition of an array's elements; each element is counted before it is decoded."""

    def __init__(self, definition: Any) -> None:  # noqa: ANN401  (kafka-python has no types)
        self._definition = definition
        self.encode = definition.encode  # more quickly found than by __getattr__

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._definition, name)

    def decode(self, data: _Exact, **form: Any) -> Any:  # noqa: ANN401
        data.elements.count()
        return self._definition.decode(data, **form)


def _count_elements(parent: Any) -> None:  # noqa: ANN401
    """Let the arrays of a struct, and of all structs in it, count their elements."""
    for field in parent.fields.values():
        if field.is_struct() or field.is_struct_array():
            _count_elements(field)
        if field.is_array():
            field.array_of = _Counted(field.array_of)


def _with_columns(field: Row, parent: str) -> Row:
    """The definition of a field of the struct ``parent``, with our column names."""
    name = field["name"]
    column = _COLUMNS.get(f"{parent}.{name}") or _COLUMNS.get(name, name)
    # A tagged field is unknown to kafka-python, which then leaves its bytes to _tagged: it would not look at the size of a field that it
    # knows, and takes a struct that is NULL for one that is there.
    named = {**field, "name": column, "versions": "none" if "tag" in field else field["versions"]}
    if "fields" in field:
        named["fields"] = [_with_columns(each, field["type"].removeprefix("[]")) for each in field["fields"]]
    return named


def _arrow_fields(parent: Any) -> list[pa.Field]:  # noqa: ANN401  (kafka-python has no types)
    return [pa.field(name, _arrow_type(field)) for name, field in parent.fields.items()]


def _arrow_type(field: Any) -> pa.DataType:  # noqa: ANN401
    if field.is_struct_array():
        return pa.list_(pa.struct(_arrow_fields(field)))
    if field.is_array():
        return pa.list_(_ARROW[field.array_of.type_str])
    if field.is_struct():
        return pa.struct(_arrow_fields(field))
    if field.name in _CONSUMER_PROTOCOL:
        fields = _CONSUMER_PROTOCOL[field.name].columns
        return pa.struct([pa.field("version", pa.int16()), *fields, pa.field("undecoded_bytes", pa.int32())])
    return _ARROW[field.type_str]


def _row(parent: Any, found: Row, reading: _Reading) -> Row:  # noqa: ANN401
    row = {}
    for name, field in parent.fields.items():
        if name in found:
            row[name] = _value(field, found[name], reading)
        elif field.tag is not None and f"_{field.tag}" in found:
            row[name] = _tagged(field, found[f"_{field.tag}"], reading)
    return row


def _tagged(field: Any, data: bytes, reading: _Reading) -> Any:  # noqa: ANN401
    if field.is_struct() and data[:1] != b"\1":
        if data != b"\0":  # how Kafka writes that it is NULL
            raise ValueError(f"{field.name} is neither there nor NULL")
        return None
    unread = _Exact(data, reading.elements)
    value = field.decode(unread, version=reading.version, compact=True, tagged=True)
    if unread.tell() != len(data):
        raise ValueError(f"{field.name} ends before its size")
    return _value(field, value, reading)


def _value(field: Any, value: Any, reading: _Reading) -> Any:  # noqa: ANN401
    if field.type_str == "uuid":
        return base64.urlsafe_b64encode(value.bytes if value else _NO_UUID).decode().rstrip("=")
    if value is None:
        if not field.nullable_for_version_q(reading.version):
            raise ValueError(f"{field.name} is NULL")
        return None
    if field.is_struct_array():
        return [_row(field, each, reading) for each in value]
    if field.is_array() and None in value:
        raise ValueError(f"{field.name} holds a NULL")
    if field.is_struct():
        return _row(field, value, reading)
    if field.name in _CONSUMER_PROTOCOL:
        return _CONSUMER_PROTOCOL[field.name].decode_member(value, reading.elements) if reading.consumer and value else None
    return value


_CONSUMER_PROTOCOL = {column: Message(f"ConsumerProtocol{column.capitalize()}") for column in ("subscription", "assignment")}
"""Columns whose bytes are a message of their own."""
