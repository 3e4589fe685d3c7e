"""Types of wide-row columns, read from their Spark DDL without Spark: which fields exist, and whether a written value fits."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from sqlglot import exp

from kafka_audit.catalogue.rows import Subject

_INTEGERS = {exp.DataType.Type.INT: 32, exp.DataType.Type.BIGINT: 64}


@lru_cache(maxsize=256)
def parse_type(ddl: str) -> exp.DataType:
    """The type behind a Spark DDL string such as ``array<int>``."""
    return exp.DataType.build(ddl, dialect="spark")


def fields_of(kind: exp.DataType) -> dict[str, exp.DataType] | None:
    """Field names and types of a struct; None for any other type."""
    if kind.this != exp.DataType.Type.STRUCT:
        return None
    return {part.name: part.args["kind"] for part in kind.expressions}


def element_of(kind: exp.DataType) -> exp.DataType | None:
    """Type of an array's elements or a map's values; None for any other type."""
    if kind.this in (exp.DataType.Type.ARRAY, exp.DataType.Type.MAP):
        last: exp.DataType = kind.expressions[-1]
        return last
    return None


def is_map(kind: exp.DataType) -> bool:
    """Whether it is a map."""
    return bool(kind.this == exp.DataType.Type.MAP)


def expand_row(subject: Subject, row: Mapping[str, Any]) -> dict[str, Any]:
    """A full wide row from the columns an example writes: every other column is None, ``errors`` an empty map, ``resource`` a name.

    A configuration entry may be written as its value alone (``min.insync.replicas: "2"``).
    """
    full: dict[str, Any] = dict.fromkeys(subject.columns)
    full.update({"resource": "example", "errors": {}})
    for name, value in row.items():
        kind = parse_type(subject.columns[name].type)
        full[name] = {key: _entry(kind, part) for key, part in value.items()} if is_map(kind) and isinstance(value, dict) else value
    return full


def _entry(kind: exp.DataType, value: object) -> object:
    fields = fields_of(kind.expressions[-1])
    return {**dict.fromkeys(fields), "value": value} if fields and "value" in fields and isinstance(value, str) else value


def row_problems(subject: Subject, row: Mapping[str, Any]) -> list[str]:
    """What is wrong with the columns and values of an example row, as sentences; empty when all fit."""
    found = []
    for name, value in row.items():
        if name not in subject.columns:
            found.append(f"{name}: is not a column of subject {subject.name}; write one of {', '.join(subject.columns)}")
            continue
        kind = parse_type(subject.columns[name].type)
        if is_map(kind) and isinstance(value, dict):
            value = {key: _entry(kind, part) for key, part in value.items()}  # noqa: PLW2901 - the short form is checked as the long one
        found += _value_problems(kind, value, name)
    return found


def _value_problems(kind: exp.DataType, value: object, where: str) -> list[str]:
    if value is None:
        return []
    fields, element = fields_of(kind), element_of(kind)
    if fields is not None:
        return _struct_problems(fields, value, where)
    if element is not None:
        return _parts_problems(kind, element, value, where)
    return _scalar_problems(kind, value, where)


def _parts_problems(kind: exp.DataType, element: exp.DataType, value: object, where: str) -> list[str]:
    if not is_map(kind):
        if not isinstance(value, list):
            return [f"{where}: write a list"]
        return [line for index, part in enumerate(value) for line in _value_problems(element, part, f"{where}[{index}]")]
    if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
        return [f"{where}: write a mapping with text keys"]
    return [line for key, part in value.items() for line in _value_problems(element, part, f"{where}[{key!r}]")]


def _struct_problems(fields: Mapping[str, exp.DataType], value: object, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: write a mapping with the fields {', '.join(fields)}"]
    found = [f"{where}.{key}: is not a field; write one of {', '.join(fields)}" for key in value if key not in fields]
    return found + [line for key, part in value.items() if key in fields for line in _value_problems(fields[key], part, f"{where}.{key}")]


def _scalar_problems(kind: exp.DataType, value: object, where: str) -> list[str]:
    bits = _INTEGERS.get(kind.this)
    if bits:
        fits = isinstance(value, int) and not isinstance(value, bool) and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1)
        wanted = f"a whole number of {bits} bits"
    elif kind.this == exp.DataType.Type.BOOLEAN:
        fits, wanted = isinstance(value, bool), "true or false"
    elif kind.this == exp.DataType.Type.DOUBLE:
        fits, wanted = isinstance(value, int | float) and not isinstance(value, bool), "a number"
    else:
        fits, wanted = isinstance(value, str), "text (in quotes)"
    return [] if fits else [f"{where}: holds {value!r}; write {wanted}"]
