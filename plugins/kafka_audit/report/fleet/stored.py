"""The part of an audit's ``report.json`` that a fleet report is made of, checked when it is read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kafka_audit.audit.outcome import ERROR, FAILED, INCOMPLETE, PASSED, VOID
from kafka_audit.errors import IntegrityError
from kafka_audit.report.results import Counts
from kafka_audit.report.totals import FailedAt
from kafka_audit.store.durable_files import read_json

_VERDICTS = (PASSED, FAILED, INCOMPLETE, VOID)


class _Stored(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class StoredControl(_Stored):
    """One control of the audit; ``severity`` is the catalogue's, ``counts`` is None if it did not run.

    ``set_aside``: how many of its results do not apply for a reason that was recorded.
    """

    control_id: str
    code: str
    title: str
    severity: str
    counts: Counts | None
    set_aside: int
    worst_failure: str | None


class _Share(_Stored):
    assessed: int
    applicable: int


class _Totals(_Stored):
    passed: int
    failed: int
    errored: int
    not_assessed: int
    not_applicable: int
    failed_by_severity: Mapping[str, FailedAt]


class _Collection(_Stored):
    cluster_id: str | None
    started_at: str | None


class _Gate(_Stored):
    exit_code: int | None


class StoredReport(_Stored):
    """What is read of one report: the verdict and why, the evidence it stands on, and the controls with their counts."""

    schema_version: Literal[1]
    kind: Literal["report"]
    audit_id: str
    verdict: str
    reasons: tuple[str, ...]
    missing: tuple[str, ...]
    gates: tuple[_Gate, _Gate]
    coverage: _Share
    totals: _Totals
    collection: _Collection
    controls: tuple[StoredControl, ...] = Field(min_length=1)


_Report = TypeVar("_Report", bound=StoredReport)


def verdict_of(report: StoredReport, step_failed: bool) -> str:
    """How the audit ended: a failed step decides, as in the audit's own outcome, unless its gate found the evidence unfit before."""
    unfit = report.verdict == VOID and report.gates[0].exit_code is not None
    return ERROR if step_failed and not unfit else report.verdict


def read_stored(audit: Path, model: type[_Report]) -> _Report:
    """Read the report of the sealed audit in ``audit`` as ``model``; IntegrityError if it is of another audit or another form."""
    path = audit / "report" / "report.json"
    try:
        found = model.model_validate(read_json(path))
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise IntegrityError(f"{path}: has no form that this release reads ({where}: {first['msg']}): audit the cluster again") from problem
    if found.audit_id != audit.name or found.verdict not in _VERDICTS:
        raise IntegrityError(f"{path}: is the report of audit {found.audit_id!r:.80} with verdict {found.verdict!r:.80}")
    return found
