"""What a gate says: the status of each rule, the verdict over all of them, and how much could be assessed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kafka_audit.errors import AuditError, GateFailedError, IncompleteError
from kafka_audit.findings import Verdict

SCHEMA_VERSION = 1
INTERNAL = AuditError.exit_code
GATE_FAILED = GateFailedError.exit_code
INCOMPLETE = IncompleteError.exit_code
# Which failing rule decides the exit code when several fail: a known failure, then an untrustworthy audit, then a thin one.
_PRECEDENCE = (GATE_FAILED, INTERNAL, INCOMPLETE)
_ROWS_IN_FULL = 2


@dataclass(frozen=True, kw_only=True)
class RuleResult:
    """One expectation of a suite, judged. ``exit_code`` is what the gate ends with when this rule blocks.

    ``rows`` are the short names of failing rows, as far as Great Expectations lists them; ``more`` counts the ones it does not.
    """

    rule_id: str
    severity: str
    status: Verdict
    description: str
    expected: str
    observed: str
    detail: str
    exit_code: int
    rows: tuple[str, ...] = ()
    more: int = 0

    @property
    def blocks(self) -> bool:
        """ERROR and VACUOUS block at every severity, because nothing was tested; FAIL blocks when critical."""
        return self.status in (Verdict.ERROR, Verdict.VACUOUS) or (self.status is Verdict.FAIL and self.severity == "critical")

    @property
    def reason(self) -> str:
        """One sentence for a person; starts with the rule's id. Many rows are only named here: ``detail`` has their values."""
        effect = "" if self.blocks else " (does not block)"
        named = ", ".join(self.rows) + (f" and {self.more} more" if self.more else "")
        detail = f"{self.observed}: {named}" if len(self.rows) > _ROWS_IN_FULL else self.detail
        return f"{self.rule_id} {self.status.value}{effect}: {self.description} {detail}".rstrip()

    def to_json(self) -> dict[str, str]:
        """The rule's row in ``results`` of gate/<gate>.json."""
        names = ("rule_id", "severity", "description", "expected", "observed", "detail")
        return {**{name: getattr(self, name) for name in names}, "status": self.status.value}


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """How many of the applicable things were assessed; ``ratio`` is None when nothing was applicable."""

    assessed: int
    applicable: int

    @property
    def ratio(self) -> float | None:
        return self.assessed / self.applicable if self.applicable else None

    def to_json(self) -> dict[str, Any]:
        return {"assessed": self.assessed, "applicable": self.applicable, "ratio": self.ratio}


@dataclass(frozen=True, kw_only=True)
class GateResult:
    """The outcome of one gate, with what it was judged by (suite, parameters) and what it judged (snapshot)."""

    gate: str
    verdict: Verdict
    exit_code: int
    reasons: tuple[str, ...]
    coverage: Coverage
    results: tuple[RuleResult, ...]
    suite_name: str
    suite_sha256: str
    snapshot_id: str
    snapshot_sha256: str
    parameters: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The object stored as gate/<gate>.json."""
        return {
            "schema_version": SCHEMA_VERSION,
            "gate": self.gate,
            "verdict": self.verdict.value,
            "exit_code": self.exit_code,
            "reasons": list(self.reasons),
            "coverage": self.coverage.to_json(),
            "suite": {"name": self.suite_name, "sha256": self.suite_sha256, "expectations": len(self.results)},
            "snapshot": {"snapshot_id": self.snapshot_id, "manifest_sha256": self.snapshot_sha256},
            "parameters": dict(self.parameters),
            "results": [result.to_json() for result in self.results],
        }


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
