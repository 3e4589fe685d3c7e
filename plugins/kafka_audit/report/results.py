"""Reads the results of the controls: counts per control from the summaries, and a limited number of findings per control."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.errors import IntegrityError
from kafka_audit.findings import COUNTED_AS, EvidenceClass, Status
from kafka_audit.report.rows import all_rows, batches, first_rows
from kafka_audit.report.tally import SEVERITIES, Kind, Results, Tally, by_severity, rank, results_of

if TYPE_CHECKING:
    from kafka_audit.catalogue.control import Control
    from kafka_audit.catalogue.load import Catalogue

_COUNTS = ("population", "findings", *COUNTED_AS.values())
_OF_TALLY = ("waived", "loosened")
_SUMMARY = ("control_id", "code", "title", "subject", "severity", "evidence_class", *_COUNTS)
LISTED = (Status.FAIL, Status.ERROR, Status.NOT_ASSESSED)
"""The statuses whose findings a report lists one by one; results in other statuses are only counted."""

_EXAMPLES = 3
_RANK = "rank"


@dataclass(frozen=True, kw_only=True)
class Counts(Results):
    """The number of results of a control in each status, and the number of resources.

    ``still_open``: those of not_assessed that only a person can attest, and nobody has; they do not count in the coverage.
    """

    population: int = 0
    findings: int = 0
    still_open: int = 0

    @property
    def applicable(self) -> int:
        return super().applicable - self.still_open


def total(counts: Iterable[Counts]) -> Counts:
    """Add up counts, field by field."""
    listed = list(counts)
    return Counts(**{name: sum(getattr(one, name) for one in listed) for name in (*_COUNTS, *_OF_TALLY, "still_open")})


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One result of one control on one resource, as the job wrote it; None: not known, or does not apply."""

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
    catalogue_severity: str
    loosened: str | None
    waiver: str | None
    remediation: str | None

    @property
    def values(self) -> dict[str, str]:
        """The values that were computed for the remediation's commands; those that are NULL are left out."""
        try:
            computed = json.loads(self.remediation) if self.remediation else {}
            if not isinstance(computed, dict) or any(not isinstance(value, str | None) for value in computed.values()):
                raise ValueError("not a text for each name")
        except (ValueError, RecursionError) as problem:
            raise IntegrityError(
                f"the findings of {self.code} have values for commands that this release does not write ({problem}): run verify again"
            ) from problem
        return {name: value for name, value in computed.items() if value is not None}

    @property
    def placeholders(self) -> dict[str, str]:
        """What fills the placeholders of the remediation's commands; for a result of a group or broker, its name is the resource."""
        known = {"topic": self.topic, "partition": self.partition, "group": self.group_id, "broker": self.broker_id}
        return {**self.values, **{key: str(value) for key, value in known.items() if value is not None}}


FINDING_COLUMNS = tuple(one.name for one in fields(Finding))
"""The columns of findings.parquet that a finding is made of."""


@dataclass(frozen=True, kw_only=True)
class ControlResult:
    """One control, its counts, and the first of its failures, errors and unassessed resources: worst first, then by resource.

    ``severity`` is the catalogue's; ``tally`` counts the results by their own severity. ``counts`` is None if the control did not run;
    ``control`` is None if the given catalogue does not contain it. ``set_aside``: how many of its results do not apply because the audit
    took the baseline or nobody declared what they judge.
    """

    control_id: str
    code: str
    title: str
    subject: str
    severity: str
    evidence_class: str
    counts: Counts | None
    tally: Tally
    control: "Control | None"
    failures: tuple[Finding, ...]
    errors: tuple[Finding, ...]
    not_assessed: tuple[Finding, ...]
    set_aside: int = 0

    @property
    def counted(self) -> Counts:
        """The counts; all 0 if the control did not run."""
        return self.counts or Counts()

    @cached_property
    def by_severity(self) -> dict[str, Results]:
        """Its results by the severity that their tier sets, worst first; with the catalogue's severity if there are no results."""
        return by_severity(self.tally) or {self.severity: Results()}

    @property
    def failing_severities(self) -> dict[str, Results]:
        """The severities at which it fails."""
        return {name: results for name, results in self.by_severity.items() if results.failed}

    @property
    def worst(self) -> str:
        """The worst severity of its failures; the catalogue's if nothing fails."""
        return next(iter(self.failing_severities), self.severity)


@dataclass(frozen=True, kw_only=True)
class Reason:
    """One reason why results are missing or do not apply: how many results it concerns, of which controls, and example resources."""

    status: str
    reason: str
    count: int = 0
    codes: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()

    def with_more(self, code: str, resources: Sequence[str]) -> "Reason":
        examples = sorted({*self.resources, *resources})[:_EXAMPLES]
        codes = tuple(sorted({*self.codes, code}))
        return replace(self, count=self.count + len(resources), codes=codes, resources=tuple(examples))


def read_summary(path: Path) -> dict[str, dict[str, Any]]:
    """The summary's rows by control id; IntegrityError if a control has two rows."""
    found: dict[str, dict[str, Any]] = {}
    for row in all_rows(path, _SUMMARY):
        if row["control_id"] in found:
            raise IntegrityError(f"{path}: holds control {row['control_id']!r} twice; run the job that writes it again")
        found[row["control_id"]] = row
    return found


class FindingReader:
    """Reads findings folders, each in one pass: the first ``limit`` findings per control and status, and all reasons with their counts.

    Results that do not apply are read for their reasons only; most have none, because the control says when it applies.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._kept: dict[tuple[str, str], pa.Table] = {}
        self._reasons: dict[tuple[str, str], Reason] = {}
        self._set_aside: Counter[str] = Counter()

    def read(self, path: Path) -> None:
        """Read one findings folder (with the columns of the findings contract); IntegrityError if it cannot be read."""
        set_aside = (pc.field("status") == Status.NOT_APPLICABLE.value) & pc.field("reason").is_valid()
        wanted = pc.field("status").isin([status.value for status in LISTED]) | set_aside
        for table in batches(path, FINDING_COLUMNS, wanted):
            for control_id in pc.unique(table["control_id"]).to_pylist():
                of_control = table.filter(pc.equal(table["control_id"], control_id))
                for status in pc.unique(of_control["status"]).to_pylist():
                    rows = of_control.filter(pc.equal(of_control["status"], status))
                    if status == Status.NOT_APPLICABLE.value:
                        self._set_aside[control_id] += rows.num_rows
                    else:
                        self._keep(control_id, status, rows)
                    if status != Status.FAIL.value:
                        self._count_reasons(status, rows)

    def _keep(self, control_id: str, status: str, rows: pa.Table) -> None:
        key = (control_id, status)
        ranks = pc.index_in(rows["severity"], value_set=pa.array(SEVERITIES))  # an unknown severity becomes NULL, which sorts last
        order = [(_RANK, "ascending"), ("resource", "ascending")]
        self._kept[key] = first_rows(self._kept.get(key), rows.append_column(_RANK, ranks), order, self._limit)

    def _count_reasons(self, status: str, rows: pa.Table) -> None:
        code = rows["code"][0].as_py()
        for row in rows.group_by("reason").aggregate([("resource", "list")]).to_pylist():
            reason = row["reason"] or "no reason was recorded"
            known = self._reasons.get((status, reason), Reason(status=status, reason=reason))
            self._reasons[(status, reason)] = known.with_more(code, row["resource_list"])

    def findings(self, control_id: str, status: Status) -> tuple[Finding, ...]:
        """The first findings of one control with one status: worst first, then by resource."""
        table = self._kept.get((control_id, status.value))
        return tuple(Finding(**row) for row in table.drop_columns([_RANK]).to_pylist()) if table is not None else ()

    def reasons(self) -> tuple[Reason, ...]:
        """The reasons why results are missing, each once over all controls: errors before not assessed, then most results first."""
        return self._sorted(one for one in self._reasons.values() if one.status != Status.NOT_APPLICABLE.value)

    def number_set_aside(self, control_id: str) -> int:
        """How many results of a control do not apply for a reason that was recorded."""
        return self._set_aside[control_id]

    def set_aside(self) -> tuple[Reason, ...]:
        """The reasons that say why results do not apply, each once over all controls; most results first."""
        return self._sorted(one for one in self._reasons.values() if one.status == Status.NOT_APPLICABLE.value)

    @staticmethod
    def _sorted(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
        return tuple(sorted(reasons, key=lambda one: (one.status, -one.count, one.reason)))


def control_results(
    catalogue: "Catalogue", summaries: Mapping[str, Mapping[str, Any]], findings: FindingReader, tally: Tally
) -> tuple[ControlResult, ...]:
    """One result per control of the catalogue or of the summaries, in code order."""
    known = {control.id: control for control in catalogue.controls}
    tallies: dict[str, dict[Kind, int]] = {}
    for kind, number in tally.items():
        tallies.setdefault(kind.control_id, {})[kind] = number
    results = [
        _result(control_id, known.get(control_id), summaries.get(control_id), findings, tallies.get(control_id, {}))
        for control_id in {*known, *summaries}
    ]
    return tuple(sorted(results, key=lambda one: (one.code, one.control_id)))


def _result(
    control_id: str, control: "Control | None", row: Mapping[str, Any] | None, findings: FindingReader, tally: Tally
) -> ControlResult:
    if row is not None:
        words = {name: str(row[name]) for name in ("code", "title", "subject", "severity", "evidence_class")}
        counted = results_of(tally.items())
        numbers = {name: int(row[name] or 0) for name in _COUNTS}
        still_open = numbers["not_assessed"] if words["evidence_class"] == EvidenceClass.MANUAL.value else 0
        counts = Counts(**numbers, waived=counted.waived, loosened=counted.loosened, still_open=still_open)
    elif control is not None:
        words = {"code": control.code, "title": control.title, "subject": control.subject, "severity": control.severity.value}
        words["evidence_class"] = control.evidence.value
        counts = None
    else:
        raise AssertionError(control_id)
    return ControlResult(
        control_id=control_id,
        **words,
        counts=counts,
        tally=tally,
        control=control,
        failures=findings.findings(control_id, Status.FAIL),
        errors=findings.findings(control_id, Status.ERROR),
        not_assessed=findings.findings(control_id, Status.NOT_ASSESSED),
        set_aside=findings.number_set_aside(control_id),
    )


def worst_first(results: Sequence[ControlResult]) -> tuple[ControlResult, ...]:
    """Sort results by their worst failure, then by code."""
    return tuple(sorted(results, key=lambda one: (rank(one.worst), one.code, one.control_id)))
