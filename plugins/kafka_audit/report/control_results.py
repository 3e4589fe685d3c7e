"""Reads the results of the controls: counts per control from the summaries, and a limited number of findings per control."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.rule import rule_of
from kafka_audit.errors import IntegrityError
from kafka_audit.findings import EvidenceClass, Status
from kafka_audit.report.results import COUNTS, FINDING_COLUMNS, ControlResult, Counts, Finding, Reason
from kafka_audit.report.rows import all_rows, batches, first_rows
from kafka_audit.report.tally import SEVERITIES, Kind, Tally, results_of

if TYPE_CHECKING:
    from kafka_audit.catalogue.load import Catalogue

_SUMMARY = ("control_id", "code", "title", "subject", "severity", "evidence_class", "rule_sha256", *COUNTS)
LISTED = (Status.FAIL, Status.ERROR, Status.NOT_ASSESSED)
"""The statuses whose findings a report lists one by one; results in other statuses are only counted."""

_RANK = "rank"


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
    control_id: str, control: Control | None, row: Mapping[str, Any] | None, findings: FindingReader, tally: Tally
) -> ControlResult:
    if row is not None:
        words = {name: str(row[name]) for name in ("code", "title", "subject", "severity", "evidence_class", "rule_sha256")}
        counted = results_of(tally.items())
        numbers = {name: int(row[name] or 0) for name in COUNTS}
        still_open = numbers["not_assessed"] if words["evidence_class"] == EvidenceClass.MANUAL.value else 0
        counts = Counts(**numbers, waived=counted.waived, loosened=counted.loosened, still_open=still_open)
    elif control is not None:
        words = {"code": control.code, "title": control.title, "subject": control.subject, "severity": control.severity.value}
        words |= {"evidence_class": control.evidence.value, "rule_sha256": rule_of(control).sha256}
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
