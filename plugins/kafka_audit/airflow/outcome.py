"""The one outcome of an audit run, read from what its steps left behind."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka_audit.airflow.step import STEPS, failures_of

if TYPE_CHECKING:
    from kafka_audit.evidence import Audit

ERROR = "ERROR"
_INTERNAL = 1  # exit codes of errors.py


@dataclass(frozen=True, kw_only=True)
class AuditResult:
    """How an audit ended: PASSED, FAILED, INCOMPLETE, VOID or ERROR; the exit code; why, in sentences; its report, if there is one."""

    verdict: str
    exit_code: int
    reasons: tuple[str, ...]
    report: Path | None

    def __str__(self) -> str:
        lines = [f"The audit ended {self.verdict} (exit code {self.exit_code}).", *(f"- {reason}" for reason in self.reasons)]
        return "\n".join([*lines, f"Report: {self.report}" if self.report else "There is no report."])


def audit_result(audit: "Audit", states: Mapping[str, Any]) -> AuditResult:
    """Combine the gates, the failures and the task states (task id -> state) into one result.

    A void evidence gate comes first (whatever failed after it failed on unfit evidence), then a failed step, then the findings.
    Nothing that is missing ends in PASSED: not a step's success, not the report, not the seal.
    """
    from kafka_audit.evidence import MANIFEST  # noqa: PLC0415  (pyarrow: not at DAG parse)
    from kafka_audit.report.gates import judge, read_gate  # noqa: PLC0415  (heavy)

    failures = failures_of(audit.path)
    noted = {str(failure["step"]) for failure in failures}
    crashed = [f"Step {failure['step']} failed: {failure['message']}" for failure in failures]
    crashed += [
        f"Step {step} ended {str(states.get(step) or 'without a state')!r} and left no message: see its log"
        for step in STEPS
        if str(states.get(step)) in ("failed", "None", "removed") and step not in noted
    ]
    report = audit.report / "report.html"
    found = report if report.is_file() else None
    evidence, findings = read_gate(audit.gate, "evidence"), read_gate(audit.gate, "findings")
    if evidence.ran and not evidence.passed:
        judged = judge(evidence, findings, crashed)
        return AuditResult(verdict=judged.verdict, exit_code=judged.exit_code, reasons=judged.reasons, report=found)
    if crashed:
        code = int(failures[0]["exit_code"]) if failures else _INTERNAL
        return AuditResult(verdict=ERROR, exit_code=code, reasons=tuple(crashed), report=found)
    if found is None or not (audit.path / MANIFEST).is_file():
        unfinished = f"{audit.path} has no sealed report: clear the task report and run it again"
        return AuditResult(verdict=ERROR, exit_code=_INTERNAL, reasons=(unfinished,), report=found)
    judged = judge(evidence, findings, ())
    return AuditResult(verdict=judged.verdict, exit_code=judged.exit_code, reasons=judged.reasons, report=found)
