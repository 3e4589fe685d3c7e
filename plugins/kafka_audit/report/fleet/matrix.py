"""Reads the newest sealed audit of each cluster below a root: its verdict, and the counts of each control."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from kafka_audit.audit.check import check_audit
from kafka_audit.audit.outcome import ERROR, FAILED, PASSED, VOID, failures_of
from kafka_audit.errors import AuditError, IntegrityError
from kafka_audit.report.control_status import Standing, standing_by
from kafka_audit.report.fleet.stored import StoredControl, StoredReport, read_stored, verdict_of
from kafka_audit.report.results import Counts
from kafka_audit.report.tally import rank
from kafka_audit.report.totals import FailedAt
from kafka_audit.store.chain_state import read_state
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import FileHashes
from kafka_audit.store.sealed import AUDIT, KINDS, placed
from kafka_audit.times import is_id

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

NO_AUDIT = "NO AUDIT"
UNUSABLE = "UNUSABLE"
"""What stands in place of a verdict where no audit is sealed, and where the newest one was changed or cannot be read."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One control in one audit: how it stands over all of its results, the worst first, and its counts; None if it did not run.

    A waived failure is a failure. ``worst``: the worst severity of its failures, which a tier may set.
    """

    standing: Standing
    counts: Counts | None
    worst: str | None

    @property
    def all_waived(self) -> bool:
        return self.counts is not None and 0 < self.counts.failed == self.counts.waived

    @property
    def number(self) -> int | None:
        """How many results stand so; None if the control did not run."""
        if self.counts is None:
            return None
        counts = self.counts
        return {
            Standing.FAIL: counts.failed,
            Standing.ERROR: counts.errored,
            Standing.NOT_ASSESSED: counts.not_assessed,
            Standing.NOT_APPLICABLE: counts.not_applicable,
        }.get(self.standing, counts.passed)


@dataclass(frozen=True, kw_only=True)
class FleetControl:
    """A control that at least one of the audits has, with the words of the newest of them; ``severity`` is the catalogue's."""

    control_id: str
    code: str
    title: str
    severity: str


@dataclass(frozen=True, kw_only=True)
class FleetCluster:
    """One cluster and its newest sealed audit.

    ``verdict``: the audit's, or ERROR if a step of it failed, NO AUDIT or UNUSABLE. ``audited``: whether the audit judged the cluster; if
    not, ``cells`` is empty and nothing is known of any control. ``why``: why there is no verdict, in sentences. ``assessed`` and
    ``applicable`` count results. ``cells``: by the control's id; one that is absent is not in the audit's catalogue. ``evidence_at``: when
    the snapshot was taken, ISO time.
    """

    name: str
    verdict: str
    audited: bool = False
    why: tuple[str, ...] = ()
    cluster_id: str | None = None
    audit_id: str | None = None
    evidence_at: str | None = None
    assessed: int = 0
    applicable: int = 0
    failed: Mapping[str, FailedAt] = field(default_factory=dict)
    cells: Mapping[str, Cell] = field(default_factory=dict)

    @property
    def not_run(self) -> int:
        """How many controls did not run, as when a part of the audit is missing; ``assessed`` and ``applicable`` do not count them."""
        return sum(cell.standing is Standing.DID_NOT_RUN for cell in self.cells.values())


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """All clusters by name, and all controls by severity and code."""

    clusters: tuple[FleetCluster, ...]
    controls: tuple[FleetControl, ...]


def read_fleet(root: EvidenceRoot, expected: Iterable[str] = (), keys: Sequence["Ed25519PublicKey"] = ()) -> Fleet:
    """Read the newest sealed audit of each cluster below ``root``; ``expected`` are clusters that must be in the matrix in any case.

    A cluster of which there is only evidence is there, too. Each audit is checked as ``kafka-audit verify`` checks it, with ``keys`` also
    its signature: one that was changed is a problem of its cluster, not of the fleet.
    """
    names = {*_found(root), *expected}
    hashes = FileHashes()
    read = [_read(root, name, keys, hashes) for name in sorted(names)]
    newest: dict[str, tuple[str, StoredControl]] = {}
    for _, report in read:
        for control in report.controls if report else ():
            if report and newest.get(control.control_id, ("", control))[0] <= report.audit_id:
                newest[control.control_id] = (report.audit_id, control)
    controls = [
        FleetControl(control_id=one.control_id, code=one.code, title=one.title, severity=one.severity) for _, one in newest.values()
    ]
    listed = sorted(controls, key=lambda one: (rank(one.severity), one.code, one.control_id))
    return Fleet(clusters=tuple(cluster for cluster, _ in read), controls=tuple(listed))


def _found(root: EvidenceRoot) -> set[str]:
    """The names of the folders of clusters, whatever was filed for them."""
    rooms = {root.path / kind.parent.split("/")[0] for kind in KINDS.values()}
    inside = (path for room in rooms if room.is_dir() for path in room.iterdir())
    return {path.name for path in inside if path.is_dir() and not path.name.startswith(".")}


def _read(
    root: EvidenceRoot, name: str, keys: Sequence["Ed25519PublicKey"], hashes: FileHashes
) -> tuple[FleetCluster, StoredReport | None]:
    """The cluster, and its audit's report if it can be used."""
    audit_id = None
    try:
        ids = root.sealed_ids(name, AUDIT)
        head = (state := read_state(root.audits(name))) and state.head
        if head and head.audit_id not in ids:
            raise IntegrityError(f"audit {head.audit_id}, which was sealed last, is gone or has no manifest")
        if not ids:
            why = "An audit of it was begun, and none is sealed." if _unsealed(root, name, "") else "No audit of it is sealed."
            return FleetCluster(name=name, verdict=NO_AUDIT, why=(why,)), None
        audit_id = ids[-1]
        path, _ = placed(root.audit(name, audit_id).path)
        check_audit(path, root, keys, hashes).raise_problems(path)
        report = read_stored(path, StoredReport)
        cluster = _cluster(name, report, [f"Step {one['step']} failed: {one['message']}" for one in failures_of(path)])
        newer = _unsealed(root, name, audit_id)
    except (AuditError, OSError, KeyError, ValueError) as problem:
        why = f"Its newest audit cannot be used: {_one_line(problem)}"
        return FleetCluster(name=name, verdict=UNUSABLE, why=(why,), audit_id=audit_id), None
    notes = [f"A newer audit, {newer}, is not sealed: it runs still, or was cut short."] if newer else []
    if head and head.audit_id != audit_id:
        notes.append(f"Audit {head.audit_id} was sealed after it, although it began earlier by its clock: this one need not be the newest.")
    return replace(cluster, why=(*cluster.why, *notes)), report


def _one_line(problem: Exception) -> str:
    first, *others = (line.strip() for line in str(problem).splitlines() or [""])
    return f"{first} {'. '.join(others)}".strip()


def _cluster(name: str, report: StoredReport, failed_steps: list[str]) -> FleetCluster:
    verdict = verdict_of(report, bool(failed_steps))
    audited = verdict not in (VOID, ERROR)
    reasons = () if verdict == PASSED else report.missing if verdict == FAILED else (*failed_steps, *report.reasons)
    return FleetCluster(
        name=name,
        verdict=verdict,
        audited=audited,
        why=tuple(reasons),
        cluster_id=report.collection.cluster_id,
        audit_id=report.audit_id,
        evidence_at=report.collection.started_at,
        assessed=report.coverage.assessed if audited else 0,
        applicable=report.coverage.applicable if audited else 0,
        failed=report.totals.failed_by_severity if audited else {},
        cells={one.control_id: _cell(one) for one in report.controls} if audited else {},
    )


def _cell(control: StoredControl) -> Cell:
    return Cell(standing=standing_by(control.counts, control.set_aside, fit=True), counts=control.counts, worst=control.worst_failure)


def _unsealed(root: EvidenceRoot, name: str, after: str) -> str | None:
    """The newest audit after the one of that id, if it is not sealed."""
    folder, sealed = root.audits(name), set(root.sealed_ids(name, AUDIT))
    begun = [path.name for path in folder.iterdir() if is_id(path.name) and path.name > after] if folder.is_dir() else []
    return max((one for one in begun if one not in sealed), default=None)
