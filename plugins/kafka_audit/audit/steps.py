"""The steps of an audit, the files that each writes to the audit's folder, and the notes of failed steps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kafka_audit.store.durable_files import read_json

STEPS = ("snapshot", "evidence_gate", "verify", "findings_gate", "report")
FAILURES = "failures"

RESULTS: Mapping[str, tuple[str, ...]] = {
    "snapshot": ("gate", "settings", "lag", "report"),
    "evidence_gate": ("gate", "report"),
    "verify": ("settings", "lag", "gate/findings.json", "report"),
    "findings_gate": ("gate/findings.json", "report"),
    "report": ("report",),
}
"""What a step makes, with everything that later steps make from it. A step that runs again removes these first: if it fails this time,
nothing that an earlier try left behind can pass for its result."""


def failures_of(audit: Path) -> list[Mapping[str, Any]]:
    """The failures that steps of this audit left behind, in the order of the steps: {step, exit_code, error, message}."""
    notes = ((audit / FAILURES / f"{step}.json") for step in STEPS)
    return [read_json(note) for note in notes if note.is_file()]
