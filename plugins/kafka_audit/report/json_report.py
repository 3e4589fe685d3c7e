"""Writes the report as JSON for programs: the report model's own JSON, whose form ``report.schema.json`` defines."""

from typing import Any

from pydantic import TypeAdapter

from kafka_audit.report.json_text import json_text
from kafka_audit.report.model import Report

_LEVELS = 2
REPORT = TypeAdapter(Report)


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain JSON values, valid against ``report.schema.json``."""
    value: dict[str, Any] = REPORT.dump_python(report, mode="json", by_alias=True)
    return value


def render(report: Report) -> str:
    """Render the JSON text in ASCII, a finding on each line.

    Control and bidi characters in names are ``\\u`` escapes, so the file can be printed safely.
    """
    return json_text(as_json(report), _LEVELS)
