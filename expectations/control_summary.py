"""Boil an audit's findings down to two small tables: one row per control, and one row of totals.

The counts are Spark's; the findings are counted a second time here, batch by batch, so that the summary is not taken on trust.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as pads

from expectations.recount import FindingKind, Recount, count_findings, unreadable
from expectations.suites import Table, Value, kinds
from kafka_audit.audit.gate_result import Coverage, OldFailures
from kafka_audit.errors import IntegrityError
from kafka_audit.findings import COUNTED_AS, EvidenceClass, Severity, Status
from kafka_audit.policy.waivers import Waiver
from kafka_audit.store.layout import Audit

_COUNTS = ("population", "findings", "distinct_resources", *COUNTED_AS.values(), "waived")
_SEVERITIES = {severity.value for severity in Severity}

Row = dict[str, Value]


@dataclass(frozen=True, kw_only=True)
class ControlSummary:
    """Tables ``controls`` and ``totals`` of one audit, and its coverage."""

    controls: Table
    totals: Table
    coverage: Coverage

    @property
    def old_failures(self) -> int:
        """How many failures at or above the limit do not block because the baseline had them, too."""
        return sum(found for row in self.controls.rows if isinstance(found := row.get("old_fails"), int))


def summarise(
    audit: Audit,
    *,
    snapshot_id: str,
    controls: Mapping[str, Severity],
    waivers: Sequence[Waiver],
    fail_on: Severity,
    evidence_verdict: str,
    old: OldFailures | None = None,
) -> ControlSummary:
    """Read ``settings`` and ``lag`` of an audit; ``controls`` is the catalogue as id -> severity, ``waivers`` those in force.

    ``old``: the failures that do not block, because the baseline had them, too; None if every failure blocks.

    A column that both summaries lack is left out of table ``controls``, so that the rules on it end in ERROR.
    IntegrityError when a table cannot be read.
    """
    steps = {"settings": audit.settings, "lag": audit.lag}
    read = {f"{name}/{kind}": _open(folder / f"{kind}.parquet") for name, folder in steps.items() for kind in ("summary", "findings")}
    rows, present = _summary_rows([read[f"{name}/summary"] for name in steps])
    recount = count_findings([read[f"{name}/findings"] for name in steps], waivers)
    table = [{**row, **_derived(row, recount, fail_on, old)} for row in rows]
    names = ["control", *(name for name in _COUNTS if name in present), *_derived_names(present, recount)]
    coverage = _coverage(rows)
    totals: Row = {
        "audit": audit.path.name,
        "missing_tables": _names(name for name, found in read.items() if found is None),
        "missing_controls": _names(set(controls) - {str(row.get("control_id")) for row in rows}),
        "unknown_controls": _unknown_controls(rows, recount, controls),
        "changed_severities": _names(
            f"{row['control_id']}: {row.get('severity')} where the catalogue says {controls[str(row['control_id'])].value}"
            for row in rows
            if row.get("control_id") in controls and row.get("severity") != controls[str(row["control_id"])].value
        ),
        "unknown_words": _names(recount.unknown_words) if recount.known else None,
        "foreign_findings": recount.foreign(snapshot_id) if recount.known else None,
        "unfounded_waivers": _names(recount.unfounded) if recount.known else None,
        "coverage_ratio": coverage.ratio,
        "evidence_verdict": evidence_verdict,
        "not_compared": (old.why_none if old else None) or "none",
        "older_baseline": _older_baseline(old),
    }
    of_totals = kinds(totals, texts=totals.keys() - {"foreign_findings", "coverage_ratio"}, numbers=("coverage_ratio",))
    return ControlSummary(
        controls=Table(name="controls", key="control", columns=kinds(names, texts=("control",)), rows=table),
        totals=Table(name="totals", key="audit", columns=of_totals, rows=[totals], single=True),
        coverage=coverage,
    )


def _open(folder: Path) -> pads.Dataset | None:
    """A folder of Parquet files as Spark leaves it; None when it is missing or holds none."""
    if not folder.exists():
        return None
    try:
        found = pads.dataset(str(folder), format="parquet")
        return found if found.files else None
    except (pa.ArrowException, OSError) as problem:
        raise unreadable(str(folder), problem) from problem


def _summary_rows(summaries: Sequence[pads.Dataset | None]) -> tuple[list[Row], set[str]]:
    rows: list[Row] = []
    present: set[str] = set()
    for summary in summaries:
        if summary is None:
            continue
        names = [name for name in ("control_id", "code", "severity", "evidence_class", *_COUNTS) if name in summary.schema.names]
        wrong = [name for name in names if name in _COUNTS and not pa.types.is_integer(summary.schema.field(name).type)]
        if wrong:
            raise IntegrityError(f"{summary.files[0]}: {', '.join(wrong)} should be whole numbers; run the verification job again")
        present.update(names)
        try:
            rows += summary.to_table(columns=names).to_pylist()
        except (pa.ArrowException, OSError) as problem:
            raise unreadable(summary.files[0], problem) from problem
    if all(summary is None for summary in summaries):
        present = {"control_id", "code", "severity", *_COUNTS}  # without any table no column is known to be missing
    for row in rows:
        row["control"] = " ".join(str(row[name]) for name in ("code", "control_id") if row.get(name) is not None) or "unnamed"
    return sorted(rows, key=lambda row: str(row["control"])), present


def _derived_names(present: set[str], recount: Recount) -> list[str]:
    whole = set(COUNTED_AS.values()) <= present
    counted = recount.known and "control_id" in present
    return [
        *(["counted"] if whole else []),
        *(["blocking_fails", "old_fails", "waived_fails", "critical_unassessed"] if counted else []),
        *(["recount_difference"] if whole and counted else []),
    ]


def _derived(row: Row, recount: Recount, fail_on: Severity, old: OldFailures | None) -> Row:
    """The columns computed here; :func:`_derived_names` says which of them the table keeps."""
    by_status = {status: row.get(column) for status, column in COUNTED_AS.items()}
    found = recount.of(row.get("control_id"))
    unknown = any(value is None for value in by_status.values())
    known = {status.value: value for status, value in by_status.items() if isinstance(value, int)}
    again: Counter[str | None] = Counter()
    for kind, number in found.items():
        again[kind.status] += number
    fails = {kind: n for kind, n in found.items() if kind.status == Status.FAIL.value and _at_least(kind.severity, fail_on)}
    unwaived = sum(n for kind, n in fails.items() if not kind.waived)
    let_through = min(unwaived, _old(row.get("control_id"), fail_on, old))
    open_questions = (Status.NOT_ASSESSED.value, Status.ERROR.value)
    waived = row.get("waived")
    difference = sum(abs(known.get(str(status), 0) - again[status]) for status in {*known, *again})
    return {
        "counted": None if unknown else sum(known.values()),
        "blocking_fails": unwaived - let_through,
        "old_fails": let_through,
        "waived_fails": sum(n for kind, n in fails.items() if kind.waived),
        "critical_unassessed": sum(
            n for kind, n in found.items() if kind.status in open_questions and _at_least(kind.severity, Severity.CRITICAL)
        ),
        "recount_difference": None if unknown or not isinstance(waived, int) else difference + abs(waived - _waived(found)),
    }


def _old(control_id: Value, fail_on: Severity, old: OldFailures | None) -> int:
    """How many failures of a control at or above the limit the baseline had, too; those of an unknown severity always block."""
    found = old.counts if old else {}
    known = ((severity, n) for (control, severity), n in found.items() if control == control_id and severity in _SEVERITIES)
    return sum(n for severity, n in known if Severity(severity).at_least(fail_on))


def _older_baseline(old: OldFailures | None) -> str:
    if old is None or old.baseline is None or old.not_previous is None:
        return "none"
    return f"audit {old.baseline}, not the previous audit {old.previous}: {old.not_previous}"


def _waived(found: Mapping[FindingKind, int]) -> int:
    return sum(number for kind, number in found.items() if kind.waived)


def _at_least(severity: str | None, limit: Severity) -> bool:
    """A word outside the set counts as the worst: it must not slip below the limit."""
    return severity not in _SEVERITIES or Severity(severity).at_least(limit)


def _coverage(rows: Sequence[Row]) -> Coverage:
    def total(column: str) -> int:
        return sum(value for row in rows if isinstance(value := row.get(column), int))

    # What no machine can see, and nobody has attested yet, is open, and no gap in what the audit could have assessed.
    manual = [row for row in rows if row.get("evidence_class") == EvidenceClass.MANUAL.value]
    still_open = sum(value for row in manual if isinstance(value := row.get("not_assessed"), int))
    return Coverage(assessed=total("passed") + total("failed"), applicable=total("findings") - total("not_applicable") - still_open)


def _unknown_controls(rows: Sequence[Row], recount: Recount, controls: Mapping[str, Severity]) -> str:
    times = Counter(str(row.get("control_id")) for row in rows)
    repeated = [f"{name} ({number} times)" for name, number in times.items() if number > 1]
    return _names([*((set(times) | recount.controls) - set(controls)), *repeated])


def _names(names: Iterable[str]) -> str:
    return ", ".join(sorted(set(names))) or "none"
