"""What the two gates said, and the one verdict of the audit that follows from it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_audit.errors import GateFailedError, IncompleteError, IntegrityError
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import Snapshot

PASSED = "PASSED"
FAILED = "FAILED"
INCOMPLETE = "INCOMPLETE"
VOID = "VOID"

_GATE_FAILED = GateFailedError.exit_code
_GATE_INCOMPLETE = IncompleteError.exit_code


@dataclass(frozen=True, kw_only=True)
class GateRule:
    """One expectation of a gate and what came of it; ``status`` is PASS, FAIL, VACUOUS or ERROR."""

    rule_id: str
    severity: str
    status: str
    description: str
    expected: str
    observed: str
    detail: str


@dataclass(frozen=True, kw_only=True)
class Gate:
    """The result of one gate; ``verdict`` is empty and ``exit_code`` None when it did not run on this snapshot."""

    name: str
    verdict: str
    exit_code: int | None
    reasons: tuple[str, ...]
    suite: str
    suite_sha256: str
    expectations: int | None
    rules: tuple[GateRule, ...]
    assessed: int | None
    applicable: int | None
    parameters: tuple[tuple[str, str], ...]

    @property
    def ran(self) -> bool:
        return self.exit_code is not None

    @property
    def passed(self) -> bool:
        """Only a gate that ran, said PASS and exited with 0 has passed."""
        return self.verdict == "PASS" and self.exit_code == 0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The verdict of the audit: its word, its exit code and why, in short sentences."""

    verdict: str
    exit_code: int
    reasons: tuple[str, ...]


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _rule(value: Mapping[str, Any]) -> GateRule:
    fields = ("rule_id", "severity", "status", "description", "expected", "observed", "detail")
    return GateRule(**{field: _text(value.get(field)) for field in fields})


def _without_result(name: str, reason: str) -> Gate:
    return Gate(
        name=name,
        verdict="",
        exit_code=None,
        reasons=(reason,),
        suite="",
        suite_sha256="",
        expectations=None,
        rules=(),
        assessed=None,
        applicable=None,
        parameters=(),
    )


def read_gate(folder: Path, name: str, snapshot: Snapshot) -> Gate:
    """The result of the gate ``name`` below ``gate/``; one that did not run when there is no file, or one about another snapshot.

    IntegrityError (exit 5) when the file is broken.
    """
    path = folder / f"{name}.json"
    if not path.is_file():
        return _without_result(name, f"The {name} gate did not run.")
    value = read_json(path)
    about = _mapping(value.get("snapshot"))
    if about and (about.get("snapshot_id"), about.get("manifest_sha256")) != (snapshot.snapshot_id, snapshot.manifest_sha256):
        return _without_result(name, f"The {name} gate's result is about other evidence ({_text(about.get('snapshot_id'))}): run it again.")
    exit_code, results = _whole(value.get("exit_code")), value.get("results", [])
    if exit_code is None or not isinstance(results, list):
        raise IntegrityError(f"{path}: has no usable exit_code and results: it is not a gate's result; run the gate again")
    suite, coverage = _mapping(value.get("suite")), _mapping(value.get("coverage"))
    reasons = value.get("reasons") or []
    return Gate(
        name=name,
        verdict=_text(value.get("verdict")),
        exit_code=exit_code,
        reasons=tuple(_text(reason) for reason in reasons) if isinstance(reasons, list) else (_text(reasons),),
        suite=_text(suite.get("name")),
        suite_sha256=_text(suite.get("sha256")),
        expectations=_whole(suite.get("expectations")),
        rules=tuple(_rule(_mapping(result)) for result in results),
        assessed=_whole(coverage.get("assessed")),
        applicable=_whole(coverage.get("applicable")),
        parameters=tuple((key, _text(one)) for key, one in sorted(_mapping(value.get("parameters")).items())),
    )


def judge(evidence: Gate, findings: Gate, missing: Sequence[str]) -> Outcome:
    """The audit's verdict from its two gates; ``missing`` names results that are not there, which never leaves a PASSED standing."""
    if not evidence.ran:
        return Outcome(verdict=VOID, exit_code=_GATE_INCOMPLETE, reasons=(*evidence.reasons, *missing))
    if not evidence.passed:
        return Outcome(verdict=VOID, exit_code=evidence.exit_code or _GATE_INCOMPLETE, reasons=(*evidence.reasons, *missing))
    if not findings.ran:
        return Outcome(verdict=INCOMPLETE, exit_code=_GATE_INCOMPLETE, reasons=(*findings.reasons, *missing))
    if findings.exit_code == _GATE_FAILED:
        return Outcome(verdict=FAILED, exit_code=_GATE_FAILED, reasons=(*findings.reasons, *missing))
    if findings.passed and not missing:
        return Outcome(verdict=PASSED, exit_code=0, reasons=findings.reasons)
    return Outcome(verdict=INCOMPLETE, exit_code=findings.exit_code or _GATE_INCOMPLETE, reasons=(*findings.reasons, *missing))
