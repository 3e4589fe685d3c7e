"""How the parts of a report are declared: frozen pydantic dataclasses, from which ``report.json`` and its schema are made."""

import json
from math import isfinite
from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue, PlainSerializer

EXACT = ConfigDict(extra="forbid", use_attribute_docstrings=True, json_schema_serialization_defaults_required=True)
"""The configuration of every part: a field that it does not have is an error, and what is said below a field is in the schema."""

IN_JSON_ELSEWHERE = Field(exclude=True)
"""A field that is no part of ``report.json``, because its content is there in another form or must not be there."""

_DEEPEST = 32
"""The deepest nesting of evidence that is JSON in ``report.json``; rules write two levels."""


def _or_null(text: str) -> str | None:
    return text or None


def _parsed(text: str | None) -> JsonValue:
    """Evidence as JSON if every program can read it as such, else as text."""
    try:
        value: JsonValue = json.loads(text) if text else text
        _refuse_unreadable(value, _DEEPEST)
    except (ValueError, RecursionError):
        return text
    return value


def _refuse_unreadable(value: JsonValue, deeper: int) -> None:
    """ValueError for what Python reads and others do not: numbers that are not finite, half characters, deep nesting."""
    if isinstance(value, float) and not isfinite(value):
        raise ValueError(value)
    if isinstance(value, str):
        value.encode()
    elif isinstance(value, dict | list):
        if not deeper:
            raise ValueError("nested too deeply")
        for one in [*value, *value.values()] if isinstance(value, dict) else value:
            _refuse_unreadable(one, deeper - 1)


KnownText = Annotated[str, PlainSerializer(_or_null, return_type=str | None)]
"""A text that is empty if it is not known; null in JSON."""

Evidence = Annotated[str | None, PlainSerializer(_parsed, return_type=JsonValue)]
"""The JSON text that a job wrote as evidence; its value in ``report.json``."""

IntByName = Annotated[tuple[tuple[str, int], ...], PlainSerializer(dict, return_type=dict[str, int])]
"""Pairs of a name and a number in their order; an object in JSON."""
