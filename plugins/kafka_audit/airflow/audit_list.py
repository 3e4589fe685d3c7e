"""The audits below the audit folder, as the web pages list them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_audit.airflow.outcome import ERROR
from kafka_audit.airflow.step import failures_of
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.evidence import MANIFEST, EvidenceRoot, read_json

LISTED = 100
UNFINISHED = "UNFINISHED"


@dataclass(frozen=True, kw_only=True)
class ListedAudit:
    """One audit and what its report says; ``verdict`` is the report's, else ERROR after a failed step, else UNFINISHED.

    ``coverage`` is assessed / applicable between 0 and 1, None when it is not known. ``reasons`` are failed steps.
    """

    cluster: str
    audit_id: str
    folder: Path
    verdict: str
    coverage: float | None
    generated_at: str
    sealed: bool
    reasons: tuple[str, ...]

    @property
    def has_report(self) -> bool:
        return (self.folder / "report" / "report.html").is_file()

    @property
    def has_docs(self) -> bool:
        return (self.folder / "gate" / "data_docs" / "index.html").is_file()


def find_audit(root: EvidenceRoot, cluster: str, audit_id: str) -> ListedAudit | None:
    """The audit of that name, or None. Names that could leave the audit folder are no audits: evidence.py refuses them."""
    try:
        folder = root.audit(cluster, audit_id).path
    except ConfigurationError:
        return None
    return _read(cluster, folder) if (folder / "run.json").is_file() else None


def audit_of_id(root: EvidenceRoot, audit_id: str) -> ListedAudit | None:
    """The audit with that id, whatever cluster it is filed under."""
    found = (find_audit(root, folder.name, audit_id) for folder in _clusters(root))
    return next((audit for audit in found if audit), None)


def newest_audits(root: EvidenceRoot, *, limit: int = LISTED) -> list[ListedAudit]:
    """At most ``limit`` audits of all clusters, newest first."""
    named = ((audit.name, cluster.name) for cluster in _clusters(root) for audit in cluster.iterdir() if not audit.name.startswith("."))
    found: list[ListedAudit] = []
    for audit_id, cluster in sorted(named, reverse=True):
        audit = find_audit(root, cluster, audit_id)
        if audit:
            found.append(audit)
        if len(found) == limit:
            break
    return found


def _clusters(root: EvidenceRoot) -> list[Path]:
    audits = root.path / "audits"
    return sorted(folder for folder in audits.iterdir() if folder.is_dir()) if audits.is_dir() else []


def _read(cluster: str, folder: Path) -> ListedAudit:
    broken: list[str] = []
    report: Mapping[str, Any] = {}
    path = folder / "report" / "report.json"
    if path.is_file():
        try:
            report = read_json(path)
        except IntegrityError as problem:
            broken.append(str(problem))
    failures = [f"Step {failure['step']} failed: {failure['message']}" for failure in failures_of(folder)]
    coverage = report.get("coverage")
    return ListedAudit(
        cluster=cluster,
        audit_id=folder.name,
        folder=folder,
        verdict=str(report.get("verdict") or (ERROR if failures or broken else UNFINISHED)),
        coverage=_ratio(coverage.get("ratio")) if isinstance(coverage, dict) else None,
        # An ISO time in UTC; the list needs no fractions of a second.
        generated_at=str(report.get("generated_at") or "")[:19].replace("T", " "),
        sealed=(folder / MANIFEST).is_file(),
        reasons=(*broken, *failures),
    )


def _ratio(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
