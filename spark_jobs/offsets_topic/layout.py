"""The words in which Kafka describes a message: types and fields, as in the schema files of its protocol generator."""

from dataclasses import dataclass
from typing import TypeAlias

_INTEGERS = {1: "tinyint", 2: "smallint", 4: "int", 8: "bigint"}


@dataclass(frozen=True)
class Integer:
    """A big-endian two's complement integer of 1, 2, 4 or 8 bytes; one that is ``unsigned`` has 2."""

    width: int
    unsigned: bool = False


@dataclass(frozen=True)
class Plain:
    """A type without parameters: string, bytes, uuid (16 bytes)."""

    name: str


@dataclass(frozen=True)
class Array:
    """A sequence of one type."""

    of: "Type"


@dataclass(frozen=True)
class Struct:
    """Fields one after another; in a flexible version its tagged fields follow them."""

    fields: tuple["Field", ...]


@dataclass(frozen=True)
class Embedded:
    """Bytes that hold a message of the consumer protocol: its int16 version, then ``body``, never flexible."""

    body: Struct


Type: TypeAlias = Integer | Plain | Array | Struct | Embedded


@dataclass(frozen=True, kw_only=True)
class Field:
    """A named part of a struct; ``since`` is the first version that has it, ``tag`` its number where it is a tagged field."""

    name: str
    type: Type
    nullable: bool = False
    since: int = 0
    until: int | None = None
    tag: int | None = None


INT8, INT16, UINT16, INT32, INT64 = Integer(1), Integer(2), Integer(2, unsigned=True), Integer(4), Integer(8)
STRING, BYTES, UUID = Plain("string"), Plain("bytes"), Plain("uuid")


def ddl(kind: Type) -> str:
    """The Spark type of a decoded value."""
    match kind:
        case Integer():
            return "int" if kind.unsigned else _INTEGERS[kind.width]
        case Plain():
            return "binary" if kind.name == "bytes" else "string"
        case Array():
            return f"array<{ddl(kind.of)}>"
        case Struct():
            return f"struct<{', '.join(f'{field.name}: {ddl(field.type)}' for field in kind.fields)}>"
        case Embedded():
            fields = (Field(name="version", type=INT16), *kind.body.fields, Field(name="undecoded_bytes", type=INT32))
            return ddl(Struct(fields))
