"""What the controls found: counts per control from the summaries, and a bounded number of findings per control."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.errors import IntegrityError
from kafka_audit.findings import Severity, Status
from kafka_audit.report.rows import all_rows, batches, first_rows

if TYPE_CHECKING:
    from kafka_audit.catalogue import Catalogue, Control

_COUNTS = ("population", "findings", "passed", "failed", "errored", "not_assessed", "not_applicable")
_SUMMARY = ("control_id", "code", "title", "subject", "severity", "evidence_class", *_COUNTS)
_FINDING = (
    *("control_id", "code", "subject", "resource", "topic", "partition", "broker_id", "group_id"),
    *("severity", "evidence_class", "status", "reason", "observed", "expected", "evidence", "tier"),
)
LISTED = (Status.FAIL, Status.ERROR, Status.NOT_ASSESSED)
"""The statuses whose findings a report lists one by one; the others are counted."""

_EXAMPLES = 3


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many results a control has in each status."""

    population: int = 0
    findings: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0
    not_assessed: int = 0
    not_applicable: int = 0

    @property
    def assessed(self) -> int:
        return self.passed + self.failed

    @property
    def applicable(self) -> int:
        return self.passed + self.failed + self.errored + self.not_assessed


def total(counts: Iterable[Counts]) -> Counts:
    """The sum of counts, field by field."""
    listed = list(counts)
    return Counts(**{name: sum(getattr(one, name) for one in listed) for name in _COUNTS})


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One result of one control on one resource, as the job wrote it; None is "not known" or "does not apply"."""

    control_id: str
    code: str
    subject: str
    resource: str
    topic: str | None
    partition: int | None
    broker_id: int | None
    group_id: str | None
    severity: str
    evidence_class: str
    status: str
    reason: str | None
    observed: str | None
    expected: str | None
    evidence: str | None
    tier: str | None

    @property
    def names(self) -> dict[str, str]:
        """The names that a remediation's placeholders stand for; a group's or a broker's result names its own resource."""
        known = {"topic": self.topic, "partition": self.partition, "group": self.group_id, "broker": self.broker_id}
        return {key: str(value) for key, value in known.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class ControlResult:
    """One control, what it counted and the first of its failures, errors and unassessed resources in resource order.

    ``counts`` is None when the control did not run; ``control`` is None when the catalogue at hand does not hold it.
    """

    control_id: str
    code: str
    title: str
    subject: str
    severity: str
    evidence_class: str
    counts: Counts | None
    control: "Control | None"
    failures: tuple[Finding, ...]
    errors: tuple[Finding, ...]
    not_assessed: tuple[Finding, ...]

    @property
    def counted(self) -> Counts:
        """The counts, all 0 when the control did not run."""
        return self.counts or Counts()


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Why results are missing: one reason, once, with how many results it covers, of which controls, and examples."""

    status: str
    reason: str
    count: int
    codes: tuple[str, ...]
    resources: tuple[str, ...]


def rank(severity: str) -> int:
    """Order of a severity's name, 0 for critical; unknown names come last."""
    names = [one.value for one in Severity]
    return names.index(severity) if severity in names else len(names)


def read_summary(path: Path) -> dict[str, dict[str, Any]]:
    """The summary's rows by control id; IntegrityError when a control has two."""
    found: dict[str, dict[str, Any]] = {}
    for row in all_rows(path, _SUMMARY):
        if row["control_id"] in found:
            raise IntegrityError(f"{path}: holds control {row['control_id']!r} twice; run the job that writes it again")
        found[row["control_id"]] = row
    return found


class FindingReader:
    """Reads findings folders in one pass each: the first ``limit`` per control and status, and all reasons with their counts."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: dict[tuple[str, str], pa.Table] = {}
        self._reasons: Counter[tuple[str, str, str]] = Counter()
        self._examples: dict[tuple[str, str], list[str]] = {}

    def read(self, path: Path) -> None:
        """Take in one findings folder (columns as in the findings contract); IntegrityError when it cannot be read."""
        wanted = pc.field("status").isin([status.value for status in LISTED])
        for table in batches(path, _FINDING, wanted):
            for control_id in pc.unique(table["control_id"]).to_pylist():
                of_control = table.filter(pc.equal(table["control_id"], control_id))
                for status in pc.unique(of_control["status"]).to_pylist():
                    rows = of_control.filter(pc.equal(of_control["status"], status))
                    self._keep(control_id, status, rows)

    def _keep(self, control_id: str, status: str, rows: pa.Table) -> None:
        key = (control_id, status)
        self._kept[key] = first_rows(self._kept.get(key), rows, [("resource", "ascending")], self._limit)
        if status == Status.FAIL.value:
            return
        code = rows["code"][0].as_py()
        for row in rows.group_by("reason").aggregate([("resource", "list")]).to_pylist():
            reason = row["reason"] or "no reason was recorded"
            self._reasons[(status, reason, code)] += len(row["resource_list"])
            examples = self._examples.setdefault((status, reason), [])
            examples[:] = sorted({*examples, *row["resource_list"]})[:_EXAMPLES]

    def findings(self, control_id: str, status: Status) -> tuple[Finding, ...]:
        """The first findings of one control in one status, in resource order."""
        table = self._kept.get((control_id, status.value))
        return tuple(Finding(**row) for row in table.to_pylist()) if table is not None else ()

    def reasons(self) -> tuple[Reason, ...]:
        """Why results are missing, most results first, each reason once over all controls; errors before not assessed."""
        counts: Counter[tuple[str, str]] = Counter()
        codes: dict[tuple[str, str], set[str]] = {}
        for (status, reason, code), count in self._reasons.items():
            counts[(status, reason)] += count
            codes.setdefault((status, reason), set()).add(code)
        made = [
            Reason(
                status=status,
                reason=reason,
                count=count,
                codes=tuple(sorted(codes[(status, reason)])),
                resources=tuple(self._examples[(status, reason)]),
            )
            for (status, reason), count in counts.items()
        ]
        return tuple(sorted(made, key=lambda one: (one.status, -one.count, one.reason)))


def control_results(
    catalogue: "Catalogue", summaries: Mapping[str, Mapping[str, Any]], findings: FindingReader
) -> tuple[ControlResult, ...]:
    """One result per control of the catalogue or of the summaries, in code order."""
    known = {control.id: control for control in catalogue.controls}
    results = [_result(control_id, known.get(control_id), summaries.get(control_id), findings) for control_id in {*known, *summaries}]
    return tuple(sorted(results, key=lambda one: (one.code, one.control_id)))


def _word(value: object) -> str:
    """The plain text of a word that may be an enum's member."""
    return str(getattr(value, "value", value))


def _result(control_id: str, control: "Control | None", row: Mapping[str, Any] | None, findings: FindingReader) -> ControlResult:
    if row is not None:
        words = {name: str(row[name]) for name in ("code", "title", "subject", "severity", "evidence_class")}
        counts = Counts(**{name: int(row[name] or 0) for name in _COUNTS})
    elif control is not None:
        words = {name: _word(getattr(control, name)) for name in ("code", "title", "subject", "severity")}
        words["evidence_class"] = _word(control.evidence)
        counts = None
    else:
        raise AssertionError(control_id)
    return ControlResult(
        control_id=control_id,
        **words,
        counts=counts,
        control=control,
        failures=findings.findings(control_id, Status.FAIL),
        errors=findings.findings(control_id, Status.ERROR),
        not_assessed=findings.findings(control_id, Status.NOT_ASSESSED),
    )


def worst_first(results: Sequence[ControlResult]) -> tuple[ControlResult, ...]:
    """Results by severity, then code."""
    return tuple(sorted(results, key=lambda one: (rank(one.severity), one.code, one.control_id)))
