"""Writes the report as JSON for programs: the report model's own JSON, whose form ``report.schema.json`` defines."""

import json
from typing import Any

from pydantic import TypeAdapter

from kafka_audit.report.model import Report

REPORT = TypeAdapter(Report)


def as_json(report: Report) -> dict[str, Any]:
    """The report as plain JSON values, valid against ``report.schema.json``."""
    value: dict[str, Any] = REPORT.dump_python(report, mode="json", by_alias=True)
    return value


def render(report: Report) -> str:
    """Render the JSON text in ASCII: control and bidi characters in names are ``\\u`` escapes, so the file can be printed safely."""
    return json.dumps(as_json(report), indent=2, sort_keys=True, ensure_ascii=True, allow_nan=False) + "\n"
