"""The verdict of a gate over all its rules."""

from collections.abc import Sequence

from kafka_audit.audit.gate_result import RuleResult
from kafka_audit.errors import AuditError, GateFailedError, IncompleteError
from kafka_audit.findings import Verdict

INTERNAL = AuditError.exit_code
GATE_FAILED = GateFailedError.exit_code
INCOMPLETE = IncompleteError.exit_code
# Which failing rule decides the exit code when several fail: a known failure, then an untrustworthy audit, then a thin one.
_PRECEDENCE = (GATE_FAILED, INTERNAL, INCOMPLETE)


def decide(results: Sequence[RuleResult]) -> tuple[Verdict, int]:
    """The verdict and exit code over all rules: 0 only when no rule blocks.

    Exit 3 (a known failure) outranks 1 (the audit cannot be trusted), which outranks 4 (too little is known).
    """
    blocking = [result for result in results if result.blocks]
    if not results:
        return Verdict.VACUOUS, INCOMPLETE
    if not blocking:
        return Verdict.PASS, 0
    codes = {result.exit_code for result in blocking}
    code = next(code for code in _PRECEDENCE if code in codes)
    statuses = {result.status for result in blocking}
    if code == GATE_FAILED:
        return Verdict.FAIL, code
    return next(status for status in (Verdict.ERROR, Verdict.FAIL, Verdict.VACUOUS) if status in statuses), code
