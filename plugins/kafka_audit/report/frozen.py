"""How the parts of a report are declared: frozen pydantic dataclasses, from which ``report.json`` and its schema are made."""

import json
from typing import Annotated

from pydantic import ConfigDict, Field, JsonValue, PlainSerializer

EXACT = ConfigDict(extra="forbid", use_attribute_docstrings=True)
"""The configuration of every part: a field that it does not have is an error, and what is said below a field is in the schema."""

IN_JSON_ELSEWHERE = Field(exclude=True)
"""A field that is no part of ``report.json``, because its content is there in another form or must not be there."""


def _or_null(text: str) -> str | None:
    return text or None


def _parsed(text: str | None) -> JsonValue:
    """Evidence as JSON if it can be parsed, else as text."""
    try:
        value: JsonValue = json.loads(text) if text else text
    except ValueError:
        value = text
    return value


KnownText = Annotated[str, PlainSerializer(_or_null, return_type=str | None)]
"""A text that is empty if it is not known; null in JSON."""

Evidence = Annotated[str | None, PlainSerializer(_parsed, return_type=JsonValue)]
"""The JSON text that a job wrote as evidence; its value in ``report.json``."""

IntByName = Annotated[tuple[tuple[str, int], ...], PlainSerializer(dict, return_type=dict[str, int])]
"""Pairs of a name and a number in their order; an object in JSON."""
