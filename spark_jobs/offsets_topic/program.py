"""A message layout as a list of reading steps: the table that :mod:`spark_jobs.offsets_topic.reader` walks.

Each step reads at most one number and writes a piece of JSON; loops, optional structs, tagged fields and embedded messages are jumps.
"""

import json
from dataclasses import dataclass, field
from enum import IntEnum

from spark_jobs.offsets_topic.layout import Array, Embedded, Field, Integer, Plain, Struct, Type


class Op(IntEnum):
    """What a step does with the number that it read, called n."""

    STOP = 0
    INTEGER = 1
    UNSIGNED = 2  # n as 16 bits without sign
    STRING = 3  # n bytes of UTF-8
    BYTES = 4  # n bytes, as base64
    SKIP = 5  # n bytes that are not decoded, as null
    UUID = 6
    INTEGERS = 7  # n integers of `size` bytes
    ARRAY = 8  # begins a loop over n elements
    END = 9  # goes back for the next element, or ends the loop
    OPTIONAL = 10  # n = 1: a struct follows; n = size: null
    TAGS = 11  # begins a loop over n tagged fields
    TAG = 12  # n is the tag
    TAG_SIZE = 13  # n is its size; jumps to the reading of a known tag
    TAG_END = 14
    EMBEDDED = 15  # n bytes hold a message that begins with its version
    EMBEDDED_END = 16
    TEXT = 17  # only writes


VARINT = -1
"""As the width of n: an unsigned varint that holds n + 1, as compact lengths do; TAGS, TAG and TAG_SIZE take it as it is."""


@dataclass(kw_only=True)
class Step:
    """One step: ``width`` is that of n (0: reads none), ``text`` the JSON before what it writes, ``to`` where it may jump."""

    op: Op
    width: int = 0
    text: str = ""
    to: int = 0
    size: int = 0
    nullable: bool = False
    tags: list[int] = field(default_factory=list)
    targets: list[int] = field(default_factory=list)

    def sql(self) -> str:
        """A struct literal."""
        lists = (f"cast(array({', '.join(map(str, values))}) as array<int>)" for values in (self.tags, self.targets))
        text = "'" + self.text.replace("\\", "\\\\").replace("'", "\\'") + "'"
        tags, targets = lists
        return (
            f"named_struct('op', {int(self.op)}, 'width', {self.width}, 'text', {text}, 'to', {self.to}, 'size', {self.size}, "
            f"'nullable', {str(self.nullable).lower()}, 'tags', {tags}, 'targets', {targets})"
        )


class Program:
    """The steps that read ``layout`` in one version. ``embedded`` False passes over embedded messages."""

    def __init__(self, layout: Struct, *, version: int, flexible: bool, embedded: bool = True) -> None:
        self.steps: list[Step] = []
        self._version = version
        self._flexible = flexible
        self._embedded = embedded
        self._text = ""
        self._struct(layout)
        self._add(Op.STOP)

    def sql(self) -> str:
        """An array literal of the steps."""
        return f"array({', '.join(step.sql() for step in self.steps)})"

    def _add(self, op: Op, width: int = 0, **more: object) -> Step:
        step = Step(op=op, width=width, text=self._text, **more)  # type: ignore[arg-type]
        self._text = ""
        self.steps.append(step)
        return step

    def _length(self, width: int) -> int:
        return VARINT if self._flexible else width

    def _read(self, kind: Type, *, nullable: bool = False, null: int = -1) -> None:
        match kind:
            case Integer():
                self._add(Op.UNSIGNED if kind.unsigned else Op.INTEGER, kind.width)
            case Plain(name="uuid"):
                self._add(Op.UUID)
            case Plain(name="string"):
                self._add(Op.STRING, self._length(2), nullable=nullable)
            case Plain():
                self._add(Op.BYTES, self._length(4), nullable=nullable)
            case Array(of=Integer() as item):
                self._add(Op.INTEGERS, self._length(4), size=item.width, nullable=nullable)
            case Array():
                begin = self._add(Op.ARRAY, self._length(4), nullable=nullable)
                body = len(self.steps)
                self._read(kind.of)
                self._add(Op.END, to=body, size=1)  # size 1: writes the comma and the bracket
                begin.to = len(self.steps)
            case Struct() if nullable:
                optional = self._add(Op.OPTIONAL, 1, size=null)
                self._struct(kind)
                self._add(Op.TEXT)
                optional.to = len(self.steps)
            case Struct():
                self._struct(kind)
            case Embedded():
                self._message(kind)

    def _struct(self, kind: Struct) -> None:
        self._text += "{"
        self._fields(kind.fields)
        tagged = [each for each in kind.fields if each.tag is not None]
        if self._flexible:
            self._tags(tagged)
        self._text += "}"

    def _fields(self, fields: tuple[Field, ...], comma: str = "") -> None:
        for each in fields:
            if each.tag is None and each.since <= self._version and (each.until is None or self._version <= each.until):
                self._text += f"{comma}{json.dumps(each.name)}:"
                self._read(each.type, nullable=each.nullable)
                comma = ","

    def _tags(self, tagged: list[Field]) -> None:
        begin = self._add(Op.TAGS, VARINT)
        first = len(self.steps)
        self._add(Op.TAG, VARINT)
        size = self._add(Op.TAG_SIZE, VARINT, tags=[each.tag for each in tagged])
        ends = []
        for each in tagged:
            size.targets.append(len(self.steps))
            self._text = f",{json.dumps(each.name)}:"
            self._read(each.type, nullable=each.nullable, null=0)
            ends.append(self._add(Op.TAG_END))
        for step in [size, *ends]:
            step.to = len(self.steps)
        self._add(Op.END, to=first)
        begin.to = len(self.steps)

    def _message(self, kind: Embedded) -> None:
        if not self._embedded:
            self._add(Op.SKIP, self._length(4))
            return
        begin = self._add(Op.EMBEDDED, self._length(4))
        outer = self._version, self._flexible
        self._flexible = False  # the consumer protocol never is
        ends = []
        for version in range(1 + max(each.since for each in kind.body.fields)):
            self._version = version
            begin.targets.append(len(self.steps))
            self._fields(kind.body.fields, comma=",")
            ends.append(self._add(Op.EMBEDDED_END))
        self._version, self._flexible = outer
        for step in [begin, *ends]:
            step.to = len(self.steps)
