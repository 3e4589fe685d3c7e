"""The part of an audit's ``report.json`` that a fleet report is made of, checked when it is read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kafka_audit.audit.outcome import FAILED, INCOMPLETE, PASSED, VOID
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


def read_stored(audit: Path) -> StoredReport:
    """Read the report of the sealed audit in ``audit``; IntegrityError if it is of another audit or another form."""
    path = audit / "report" / "report.json"
    try:
        found = StoredReport.model_validate(read_json(path))
    except ValidationError as problem:
        first = problem.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise IntegrityError(f"{path}: has no form that this release reads ({where}: {first['msg']}): audit the cluster again") from problem
    if found.audit_id != audit.name or found.verdict not in _VERDICTS:
        raise IntegrityError(f"{path}: is the report of audit {found.audit_id!r:.80} with verdict {found.verdict!r:.80}")
    return found
