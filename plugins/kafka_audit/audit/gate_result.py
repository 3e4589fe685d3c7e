"""The result of a gate: what expectations/ writes as ``gate/<gate>.json``, and what the report and the outcome read from there."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, computed_field

from kafka_audit.errors import IntegrityError
from kafka_audit.findings import Verdict
from kafka_audit.store.layout import Snapshot

_ROWS_IN_FULL = 2
MOST_COUNTED = 2**53
"""The largest count that every reader of JSON reads as it is written."""


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True)


class RuleResult(_Stored):
    """One expectation of a suite, judged.

    ``exit_code`` is what the gate ends with when this rule blocks. ``rows`` are the short names of failing rows, as far as Great
    Expectations lists them; ``more`` counts the ones it does not. These three are not stored.
    """

    rule_id: str
    severity: str
    status: Verdict
    description: str
    expected: str
    observed: str
    detail: str
    exit_code: int = Field(default=0, exclude=True)
    rows: tuple[str, ...] = Field(default=(), exclude=True)
    more: int = Field(default=0, exclude=True)

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


class Coverage(_Stored):
    """How many of the applicable things were assessed; ``ratio`` is None when nothing was applicable."""

    assessed: int
    applicable: int

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ratio(self) -> float | None:
        return self.assessed / self.applicable if self.applicable else None


class SuiteUsed(_Stored):
    """The suite that a gate ran: its name, the sha256 of its file, and how many expectations it has."""

    name: str
    sha256: str
    expectations: int


class Judged(_Stored):
    """The snapshot that a gate judged."""

    snapshot_id: str
    manifest_sha256: str


class OldFailures(_Stored):
    """The failures that an earlier audit had, too: what a gate lets through that blocks on new failures only.

    ``baseline``: the audit whose failures count as old; None if there is none. ``previous``: the one that the report compares with.
    ``not_previous``: why its failures do not count as old; None if the two are the same. ``counts``: the number of failures that are
    unchanged since the baseline and have no waiver, by (control id, severity). ``why_none``: why none is known, so that every failure
    counts as new; None if the comparison was possible.
    """

    previous: str | None
    baseline: str | None
    not_previous: str | None = None
    counts: dict[tuple[str, str], int] = Field(default_factory=dict)
    why_none: str | None = None


class LetThrough(_Stored):
    """What a gate that blocks on new failures only did not block on: ``failures`` at or above the limit that ``baseline`` had, too.

    ``previous``: the audit that the report compares with. ``not_previous``: why its failures do not count as old; None if it is the
    baseline. ``why_none``: why every failure counts as new; None if some could be old.
    """

    previous: str | None
    baseline: str | None
    not_previous: str | None
    failures: int
    why_none: str | None


class GateResult(_Stored):
    """The result of one gate; ``verdict`` and ``exit_code`` are None when it did not run on the snapshot in question.

    ``let_through`` is None unless the gate blocks on new failures only.
    """

    schema_version: int = 1
    gate: str
    verdict: Verdict | None
    exit_code: int | None
    reasons: tuple[str, ...] = ()
    coverage: Coverage | None = None
    suite: SuiteUsed | None = None
    snapshot: Judged | None = None
    parameters: dict[str, Any] = Field(default_factory=dict)
    let_through: LetThrough | None = None
    results: tuple[RuleResult, ...]

    @property
    def ran(self) -> bool:
        return self.exit_code is not None

    @property
    def passed(self) -> bool:
        """Only a gate that ran, said PASS and exited with 0 has passed."""
        return self.verdict is Verdict.PASS and self.exit_code == 0

    @property
    def parameter_texts(self) -> tuple[tuple[str, str], ...]:
        """The parameters by name, as texts for people."""
        return tuple((key, _text(value)) for key, value in sorted(self.parameters.items()))

    def is_about(self, snapshot: Snapshot) -> bool:
        """Whether it is this snapshot that the gate judged, byte for byte."""
        return self.snapshot == Judged(snapshot_id=snapshot.snapshot_id, manifest_sha256=snapshot.manifest_sha256)


def read_result(path: Path) -> GateResult:
    """The result in a gate's file; IntegrityError (exit 5) when it is not one."""
    try:
        result = GateResult.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as problem:
        raise IntegrityError(f"{path}: is not a gate's result ({str(problem)[:300]}): run the gate again") from problem
    if result.exit_code is None or result.verdict is None:
        raise IntegrityError(f"{path}: has no verdict and exit_code: it is not a gate's result; run the gate again")
    if result.coverage and max(abs(result.coverage.assessed), abs(result.coverage.applicable)) > MOST_COUNTED:
        raise IntegrityError(f"{path}: counts more results than there can be: it is not a gate's result; run the gate again")
    return result


def read_gate(folder: Path, name: str, snapshot: Snapshot) -> GateResult:
    """The result of the gate ``name`` below ``gate/``; one that did not run when there is no file, or one about another snapshot.

    IntegrityError (exit 5) when the file is broken.
    """
    path = folder / f"{name}.json"
    if not path.is_file():
        return _did_not_run(name, f"The {name} gate did not run.")
    result = read_result(path)
    if result.snapshot is not None and not result.is_about(snapshot):
        return _did_not_run(name, f"The {name} gate's result is about other evidence ({result.snapshot.snapshot_id}): run it again.")
    return result


def _text(value: object) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)


def _did_not_run(gate: str, reason: str) -> GateResult:
    return GateResult(gate=gate, verdict=None, exit_code=None, reasons=(reason,), results=())
