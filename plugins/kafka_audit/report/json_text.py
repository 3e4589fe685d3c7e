"""Writes JSON that people can read line by line and that is written quickly: Python's fast encoder knows no indentation.

The outer levels are indented, and what lies deeper is one line: a report's finding, a SARIF result, an OSCAL observation.
"""

import json
from collections.abc import Iterator

_LINE = json.JSONEncoder(sort_keys=True, ensure_ascii=True, allow_nan=False)


def json_text(value: object, levels: int) -> str:
    """The JSON text of plain values in ASCII, keys in order, with a line break at the end; the first ``levels`` levels are indented.

    ValueError for a number that is not finite.
    """
    return "".join(_lines(value, levels, "\n")) + "\n"


def _lines(value: object, levels: int, start: str) -> Iterator[str]:
    """``start``: a line break and the indentation of the line on which the value stands."""
    if not levels or not value or not isinstance(value, dict | list | tuple):
        yield _LINE.encode(value)
        return
    inner, of_object = start + " ", isinstance(value, dict)
    yield "{" if of_object else "["
    items = ((f"{_LINE.encode(key)}: ", value[key]) for key in sorted(value)) if isinstance(value, dict) else (("", one) for one in value)
    for number, (name, one) in enumerate(items):
        yield f"{',' if number else ''}{inner}{name}"
        yield from _lines(one, levels - 1, inner)
    yield start + ("}" if of_object else "]")
