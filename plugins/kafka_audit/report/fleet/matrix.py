"""Reads the newest sealed audit of each cluster: its verdict, and the counts of each control."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict

from kafka_audit.audit.outcome import ERROR
from kafka_audit.catalogue.rows import LAG, SETTINGS
from kafka_audit.errors import AuditError, IntegrityError
from kafka_audit.findings import COUNTED_AS, Status
from kafka_audit.report.control_results import read_summary
from kafka_audit.report.rows import exists
from kafka_audit.report.tally import rank
from kafka_audit.store.chain_state import read_state
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.sealed import AUDIT, Place, Sealed
from kafka_audit.times import is_id

_WORST_FIRST = (Status.FAIL, Status.ERROR, Status.NOT_ASSESSED, Status.PASS, Status.NOT_APPLICABLE)


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True)


class Cell(_Frozen):
    """One control in one audit: the status that counts, and how many results have it.

    The status is the worst of its results: fail, error, not_assessed, pass, not_applicable, in this order. A failure that is waived is
    a failure. ``results``: how many of the control's results have the status.
    """

    status: Status
    results: int


class FleetControl(_Frozen):
    """A control that at least one of the audits has; ``severity`` is the catalogue's."""

    code: str
    title: str
    severity: str


class FleetCluster(_Frozen):
    """One cluster and its newest sealed audit. ``problem``: why there is none, or why it cannot be used; then ``cells`` is empty.

    ``coverage``: assessed / applicable, None if nothing applied. ``cells``: by the control's code; an absent one did not run.
    """

    name: str
    cluster_id: str | None = None
    audit_id: str | None = None
    started_at: str | None = None
    verdict: str | None = None
    coverage: float | None = None
    failed_by_severity: Mapping[str, int] = {}
    cells: Mapping[str, Cell] = {}
    problem: str | None = None


class Fleet(_Frozen):
    """All clusters by name, and all controls by severity and code."""

    clusters: tuple[FleetCluster, ...]
    controls: tuple[FleetControl, ...]


def read_fleet(root: EvidenceRoot, expected: Iterable[str] = ()) -> Fleet:
    """Read the newest sealed audit of each cluster below ``root``; ``expected`` are clusters that must be in the matrix in any case.

    Audits are checked against their manifest before they are read: one that was changed is a problem of its cluster, not of the fleet.
    """
    folder = root.path / "audits"
    found = {path.name for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")} if folder.is_dir() else set()
    clusters: list[FleetCluster] = []
    controls: dict[str, FleetControl] = {}
    for name in sorted({*found, *expected}):
        try:
            clusters.append(_cluster(root, name, controls))
        except (AuditError, OSError) as problem:
            clusters.append(FleetCluster(name=name, problem=f"its newest audit cannot be used: {problem}"))
    listed = sorted(controls.values(), key=lambda one: (rank(one.severity), one.code))
    return Fleet(clusters=tuple(clusters), controls=tuple(listed))


def _cluster(root: EvidenceRoot, name: str, controls: dict[str, FleetControl]) -> FleetCluster:
    audit_id = _newest(root.audits(name))
    if audit_id is None:
        return FleetCluster(name=name, problem="no audit of it is sealed")
    audit = Sealed.verified(root.audit(name, audit_id).path, Place(kind=AUDIT, cluster=name, root=root.path)).path
    report = read_json(audit / "report" / "report.json")
    verdict = report.get("verdict")
    if not isinstance(verdict, str):
        raise IntegrityError(f"{audit / 'report' / 'report.json'} has no verdict")
    cells: dict[str, Cell] = {}
    for part in (SETTINGS, LAG):
        summary = audit / part / "summary.parquet"
        for row in read_summary(summary).values() if exists(summary) else ():
            controls.setdefault(row["code"], FleetControl(code=row["code"], title=row["title"], severity=row["severity"]))
            cells[row["code"]] = _cell(row)
    reasons = " ".join(str(one) for one in report.get("reasons", ())) if not cells or verdict == ERROR else ""
    failed = report.get("totals", {}).get("failed_by_severity", {})
    return FleetCluster(
        name=name,
        cluster_id=report.get("collection", {}).get("cluster_id"),
        audit_id=audit_id,
        started_at=report.get("started_at"),
        verdict=verdict,
        coverage=report.get("coverage", {}).get("ratio"),
        failed_by_severity={severity: int(counts["results"]) for severity, counts in failed.items()},
        cells=cells,
        problem=f"nothing was judged: {reasons}" if not cells else None,
    )


def _newest(audits: Path) -> str | None:
    """The id of the audit that was sealed last."""
    if not audits.is_dir():
        return None
    state = read_state(audits)
    if state and state.head:
        return state.head.audit_id
    return max((path.parent.name for path in audits.glob(f"*/{MANIFEST}") if is_id(path.parent.name)), default=None)


def _cell(row: Mapping[str, Any]) -> Cell:
    counts = {status: int(row[COUNTED_AS[status]] or 0) for status in _WORST_FIRST}
    status = next((one for one in _WORST_FIRST if counts[one]), Status.NOT_APPLICABLE)
    return Cell(status=status, results=counts[status])
