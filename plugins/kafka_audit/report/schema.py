"""Writes ``report.schema.json``, the JSON Schema of ``report.json``, from the report model: ``python -m kafka_audit.report.schema``."""

import json
from pathlib import Path

from kafka_audit.report.json_report import REPORT

FILE = Path(__file__).with_name("report.schema.json")


def schema() -> str:
    """The schema as text, as it lies in FILE."""
    value = REPORT.json_schema(mode="serialization", by_alias=True)
    return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema", **value}, indent=2, sort_keys=True) + "\n"


if __name__ == "__main__":
    FILE.write_text(schema(), encoding="utf-8")
