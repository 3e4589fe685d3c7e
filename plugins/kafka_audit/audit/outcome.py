"""The steps of an audit, what each writes to the audit's folder, and the one outcome that is read from what they left behind."""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafka_audit.audit.formats import not_written, once_more, shown_file
from kafka_audit.audit.gate_result import GateResult, read_gate
from kafka_audit.audit.previous import COMPARISON, FIGURES
from kafka_audit.errors import AuditError, GateFailedError, IncompleteError, IntegrityError
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import Audit, Snapshot
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.mirrors import where

STEPS = ("snapshot", "evidence_gate", "verify", "findings_gate", "report")
FAILURES = "failures"
INDEX = "index"

RESULTS: Mapping[str, tuple[str, ...]] = {
    "snapshot": ("gate", "settings", "lag", COMPARISON, "report", INDEX),
    "evidence_gate": ("gate", COMPARISON, "report", INDEX),
    "verify": ("settings", "lag", "gate/findings.json", COMPARISON, "report", INDEX),
    "findings_gate": ("gate/findings.json", COMPARISON, "report", INDEX),
    "report": (FIGURES, "report", INDEX),
}
"""What a step makes, with everything that later steps make from it. A step that runs again removes these first: if it fails this time,
nothing that an earlier try left behind can pass for its result. The report keeps the choice of the audit that the gate compared with."""

PASSED = "PASSED"
FAILED = "FAILED"
INCOMPLETE = "INCOMPLETE"
VOID = "VOID"
ERROR = "ERROR"
VERDICTS = (PASSED, FAILED, INCOMPLETE, VOID, ERROR)

_GATE_FAILED = GateFailedError.exit_code
_GATE_INCOMPLETE = IncompleteError.exit_code
_INTERNAL = AuditError.exit_code
# skipped and upstream_failed follow from another step, which is named.
_BAD_STATES = frozenset({"failed", "removed", "None"})
_MOST_OF_NOTE = 4 << 20
"""The longest note of a failed step, in bytes: web pages read those of many audits."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How an audit ended: PASSED, FAILED, INCOMPLETE, VOID or ERROR; the exit code; why, in sentences; its report, if there is one.

    ``report``: the page, or report.json if the page could not be written. ``notices``: formats of the report that are missing, and how to
    write them; they do not change the verdict.
    """

    verdict: str
    exit_code: int
    reasons: tuple[str, ...]
    report: Path | None = None
    notices: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [f"The audit ended {self.verdict} (exit code {self.exit_code}).", *(f"- {reason}" for reason in self.reasons)]
        lines += [f"Not complete: {notice}" for notice in self.notices]
        return "\n".join([*lines, f"Report: {where(self.report)}" if self.report else "There is no report."])


def failures_of(audit: Path) -> list[Mapping[str, Any]]:
    """The failures that steps of this audit left behind, in the order of the steps: {step, exit_code, error, message}."""
    return read_failures(lambda *names: note if (note := audit.joinpath(*names)).is_file() else None)


def read_failures(find: Callable[..., Path | None]) -> list[Mapping[str, Any]]:
    """The same; ``find`` takes the parts of a note's name and gives its file, None where there is none."""
    notes = (find(FAILURES, f"{step}.json") for step in STEPS)
    return [read_json(note, _MOST_OF_NOTE) for note in notes if note]


def why_unsealed(audit: Audit) -> str:
    """What happened to an audit that ended and is not sealed; empty if it is sealed."""
    if (audit.path / MANIFEST).is_file():
        return ""
    try:
        failed = [f"step {one.get('step')} failed: {one.get('message')}" for one in failures_of(audit.path)]
    except IntegrityError as problem:
        failed = [str(problem)]
    return f"audit {audit.path.name} ended without a sealed report; {'; '.join(failed) or 'the logs of its tasks say why'}"


def judge(evidence: GateResult, findings: GateResult, missing: Sequence[str]) -> Outcome:
    """The audit's verdict from its two gates; ``missing`` names results that are not there, which never leaves a PASSED standing."""
    if not evidence.passed:
        return Outcome(verdict=VOID, exit_code=evidence.exit_code or _GATE_INCOMPLETE, reasons=(*evidence.reasons, *missing))
    if findings.exit_code == _GATE_FAILED:
        return Outcome(verdict=FAILED, exit_code=_GATE_FAILED, reasons=(*findings.reasons, *missing))
    if findings.passed and not missing:
        return Outcome(verdict=PASSED, exit_code=0, reasons=findings.reasons)
    return Outcome(verdict=INCOMPLETE, exit_code=findings.exit_code or _GATE_INCOMPLETE, reasons=(*findings.reasons, *missing))


def audit_outcome(audit: Audit, snapshot: Snapshot | None, states: Mapping[str, Any]) -> Outcome:
    """Combine the gates, the failures, the report and the task states (task id -> state) into one result.

    A void evidence gate comes first (whatever failed after it failed on unfit evidence), then a failed step, then what gates and
    report say. Nothing that is missing ends in PASSED: not a step's success, not the report, not the seal.
    """
    failures = failures_of(audit.path)
    crashed = [f"Step {failure['step']} failed: {failure['message']}" for failure in failures]
    crashed += _silent_failures(states, {str(failure["step"]) for failure in failures})
    report = shown_file(audit.report)
    notices = _missing_formats(audit)
    judged = None
    if snapshot is not None:
        evidence, findings = (read_gate(audit.gate, name, snapshot) for name in ("evidence", "findings"))
        judged = judge(evidence, findings, crashed)
        if evidence.ran and not evidence.passed:
            return replace(judged, report=report, notices=notices)
    if crashed:
        code = int(failures[0]["exit_code"]) if failures else _INTERNAL
        return Outcome(verdict=ERROR, exit_code=code, reasons=tuple(crashed), report=report)
    if judged is None or report is None or not (audit.path / MANIFEST).is_file():
        unfinished = f"{audit.path} has no sealed report: clear the task report and run it again"
        return Outcome(verdict=ERROR, exit_code=_INTERNAL, reasons=(unfinished,), report=report)
    reported = read_json(audit.report / "report.json")
    if reported.get("exit_code") != judged.exit_code:
        differ = f"the report says exit code {reported.get('exit_code')!r} and the gates say {judged.exit_code}: report this as a bug"
        return Outcome(verdict=ERROR, exit_code=_INTERNAL, reasons=(differ,), report=report)
    return replace(judged, report=report, notices=notices)


def _missing_formats(audit: Audit) -> tuple[str, ...]:
    """Which formats the report is missing, and why; empty when there is no report."""
    file = audit.report / "report.json"
    missing = not_written(read_json(file).get("not_written")) if file.is_file() else ()
    return (*(f"{one}." for one in missing), once_more(missing, str(audit.path))) if missing else ()


def _silent_failures(states: Mapping[str, Any], noted: Container[str]) -> list[str]:
    """Steps that did not end well and left no note, such as a worker that was killed."""
    bad = [step for step in STEPS if str(states.get(step)) in _BAD_STATES and step not in noted]
    return [f"Step {step} did not succeed (state: {states.get(step)}) and left no message: see its log" for step in bad]
