"""The audits below the audit folder, as the web pages list them for one reader."""

import itertools
import logging
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kafka_audit.audit.cluster_file import CLUSTER_PATTERN
from kafka_audit.audit.formats import REPORT_FILES, ReportFile, not_written
from kafka_audit.audit.outcome import ERROR, VOID, read_failures
from kafka_audit.audit.request import DAG_ID
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.safe_text import visible
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.mirrors import bring, bring_manifest
from kafka_audit.store.sealed import AUDIT
from kafka_audit.store.sealed_files import checked_file, sealed_files

LISTED = 100
LOOKED_AT = 2000
NEWEST = 50
"""Audits of one cluster, the newest first, of which it is looked whether the reader may read them."""
MOST_OF_RUN = 1 << 20
"""The longest run.json that is read, in bytes: a page reads those of many audits, and anybody may have written them."""
MOST_OF_REPORT = 4 << 20
"""The longest report.json from which a page takes a verdict, in bytes: parsed it needs several times as much memory."""
UNFINISHED = "UNFINISHED"
NOT_KNOWN = "NOT KNOWN"
"""What stands in place of the verdict of an audit whose report.json is longer than that, and which has no index."""
UNUSABLE = "UNUSABLE"
"""What stands in place of the verdict of a sealed audit that is not as it was sealed."""

MayRead = Callable[[str], bool]
"""Whether the reader may read runs of the DAG of that id."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class FoundAudit:
    """The folder of one audit, with the DAG and the run that made it: whoever may read runs of that DAG may read the audit."""

    cluster: str
    audit_id: str
    folder: Path
    dag_id: str
    run_id: str

    @property
    def sealed(self) -> bool:
        """Whether there is a manifest: then its files are as it says, or not shown."""
        bring_manifest(self.folder)
        return os.path.lexists(self.folder / MANIFEST)

    def file(self, *names: str) -> Path | None:
        """The file of that name in the audit's folder; None when there is none, or when links or ``..`` lead out of the folder.

        Of a sealed audit, None for a file that was not sealed, and IntegrityError for one that is not as it was sealed.
        """
        name = "/".join(names)
        if self.sealed:
            bring(self.folder, (name,))
            files = sealed_files(self.folder)
            if name not in files:
                return None
            checked_file(self.folder, files, name)
        try:
            found = self.folder.joinpath(*names).resolve(strict=True)
            return found if found.is_file() and found.is_relative_to(self.folder.resolve()) else None
        except (OSError, RuntimeError, ValueError):
            return None

    def has(self, *names: str) -> bool:
        """Whether there is a file of that name; of a sealed audit, its manifest tells, and the file is neither copied nor read."""
        try:
            return "/".join(names) in sealed_files(self.folder) if self.sealed else self.file(*names) is not None
        except IntegrityError:
            return False

    def failures(self) -> list[Mapping[str, Any]]:
        """The failures that steps left behind (kafka_audit.audit.outcome.failures_of). IntegrityError as of :meth:`file`."""
        return read_failures(self.file)


@dataclass(frozen=True, kw_only=True)
class ListedAudit(FoundAudit):
    """One audit and what its report says; ``verdict``: ERROR after a failed step, else the report's, else UNFINISHED.

    NOT KNOWN: its report is too large to be read by a page. UNUSABLE: it is sealed, and a file that was read is not as it was sealed.
    ``coverage`` is assessed / applicable between 0 and 1, None when it is not known. ``reasons`` are failed steps, and formats of the
    report that are missing. ``sample``: it is made up, for trying the pages.
    """

    verdict: str
    sample: bool
    coverage: float | None
    generated_at: str
    reasons: tuple[str, ...]

    @property
    def has_report(self) -> bool:
        return self.has("report", "report.html")

    @property
    def downloads(self) -> tuple[ReportFile, ...]:
        """The formats beside the page in which its report was written."""
        return tuple(one for name, one in REPORT_FILES.items() if name != "html" and self.has("report", one.file))

    @property
    def has_docs(self) -> bool:
        return self.has("gate", "data_docs", "index.html")


@dataclass(frozen=True, kw_only=True)
class AuditList:
    """The newest audits that a reader may read; ``cut``: there may be older ones, which are not in the list."""

    audits: tuple[ListedAudit, ...]
    cut: bool


def find_audit(root: EvidenceRoot, cluster: str, audit_id: str, may_read: MayRead) -> FoundAudit | None:
    """The audit of that name when the reader may read it; else None, as for one that does not exist.

    Names that could leave the audit folder are no audits: store/layout.py refuses them. Neither is a folder behind a link.
    """
    try:
        folder = root.audit(cluster, audit_id).path
    except ConfigurationError:
        return None
    if not any(may_read(dag_id) for dag_id in _dags_of(cluster)):
        return None
    made_by = _made_by(folder, cluster)
    if made_by is None or not may_read(made_by[0]):
        return None
    return FoundAudit(cluster=cluster, audit_id=audit_id, folder=folder, dag_id=made_by[0], run_id=made_by[1])


def _made_by(folder: Path, cluster: str) -> tuple[str, str] | None:
    """(DAG, run) that run.json names; None, which nobody may read, when it names none that files audits of the cluster."""
    run_file = folder / "run.json"
    bring(folder, (run_file.name,))
    try:
        if any(path.is_symlink() for path in (folder.parent, folder, run_file)) or not run_file.is_file():
            return None
        run = read_json(run_file, MOST_OF_RUN)
    except (IntegrityError, OSError) as problem:
        log.warning("the audit is shown to nobody, because it cannot be told which DAG made it: %s", problem)
        return None
    dag_id = run.get("dag_id")
    if dag_id not in _dags_of(cluster):
        log.warning("the audit is shown to nobody: %s names the DAG %r, which files no audits of %s", run_file, dag_id, cluster)
        return None
    return str(dag_id), str(run.get("run_id"))


def audit_of_run(root: EvidenceRoot, dag_id: str, run_id: str, audit_id: str, may_read: MayRead) -> FoundAudit | None:
    """The audit that a run made; None when there is none yet, or when the reader may not read it."""
    clusters = (cluster for cluster in _clusters(root) if dag_id in _dags_of(cluster))
    found = (find_audit(root, cluster, audit_id, may_read) for cluster in clusters)
    return next((audit for audit in found if audit and (audit.dag_id, audit.run_id) == (dag_id, run_id)), None)


def readable_clusters(root: EvidenceRoot, may_read: MayRead) -> list[str]:
    """The clusters of which there are audits, and which the reader may read, by name."""
    return [cluster for cluster in _clusters(root) if any(may_read(dag_id) for dag_id in _dags_of(cluster))]


def has_readable_audit(root: EvidenceRoot, cluster: str, may_read: MayRead) -> bool:
    """Whether the reader may read the DAG that has the name of the cluster, or one of the newest audits of the cluster."""
    if may_read(f"{DAG_ID}__{cluster}"):
        return True
    return any(find_audit(root, cluster, audit_id, may_read) for audit_id in root.ids(cluster, AUDIT)[:NEWEST])


def may_read_newest(root: EvidenceRoot, cluster: str, may_read: MayRead) -> bool:
    """Whether neither the newest audit of the cluster nor the newest sealed one is of a DAG that the reader may not read.

    One of which the DAG cannot be told does not count: its figures are not used.
    """
    found = (find_audit(root, cluster, audit_id, lambda _: True) for audit_id in root.ids(cluster, AUDIT)[:NEWEST])
    known = list(itertools.islice((one for one in found if one), 1))
    sealed = root.newest_sealed(cluster, AUDIT)
    known += [one for one in [find_audit(root, cluster, sealed, lambda _: True) if sealed else None] if one]
    return all(may_read(one.dag_id) for one in known)


def newest_audits(
    root: EvidenceRoot,
    may_read: MayRead,
    *,
    limit: int = LISTED,
    looked_at: int = LOOKED_AT,
    read: Callable[[FoundAudit], ListedAudit] | None = None,
) -> AuditList:
    """At most ``limit`` audits of all clusters, newest first, among the ``looked_at`` newest of the clusters that the reader may read.

    ``read``: reads one of them; None: :func:`read_audit`.
    """
    clusters = readable_clusters(root, may_read)
    names = sorted(((audit_id, cluster) for cluster in clusters for audit_id in root.ids(cluster, AUDIT)), reverse=True)
    found = (find_audit(root, cluster, audit_id, may_read) for audit_id, cluster in names[:looked_at])
    shown = list(itertools.islice((audit for audit in found if audit), limit + 1))
    cut = len(shown) > limit or len(names) > looked_at
    return AuditList(audits=tuple(map(read or read_audit, shown[:limit])), cut=cut)


def _dags_of(cluster: str) -> tuple[str, str]:
    """The DAGs that may have filed audits under the name of a cluster: its own, and the one of an installation that lists no clusters.

    What run.json says is compared with this: it is a file among the evidence, and the name of the folder is not.
    """
    return f"{DAG_ID}__{cluster}", DAG_ID


def _clusters(root: EvidenceRoot) -> list[str]:
    """The folders of clusters; one whose name no cluster can have holds no audit that can be read."""
    audits = root.path / "audits"
    if remote := root.remote:
        remote.bring_clusters()
    folders = audits.iterdir() if audits.is_dir() else iter(())
    return sorted(one.name for one in folders if re.fullmatch(CLUSTER_PATTERN, one.name) and one.is_dir() and not one.is_symlink())


def read_audit(found: FoundAudit) -> ListedAudit:
    """What the audit's report and its failed steps say."""
    broken: list[str] = []
    notes: list[str] = []
    report: Mapping[str, Any] = {}
    try:
        path = found.file("report", "report.json")
        if path and path.stat().st_size > MOST_OF_REPORT:
            report = {"verdict": NOT_KNOWN}
            notes.append(f"report.json is longer than {MOST_OF_REPORT >> 20} MiB, too large to be read for this page: open the report")
        elif path:
            report = read_json(path, MOST_OF_REPORT)
    except (IntegrityError, OSError) as problem:
        broken.append(str(problem))
    failures: list[str] = []
    try:
        failures = [f"Step {failure.get('step')} failed: {failure.get('message')}" for failure in found.failures()]
    except (IntegrityError, OSError) as problem:
        broken.append(str(problem))
    coverage = report.get("coverage")
    verdict = UNUSABLE if broken and found.sealed else _verdict(report.get("verdict"), failed=bool(failures or broken))
    return ListedAudit(
        **vars(found),
        sample=report.get("sample") is True,
        verdict=visible(verdict),
        coverage=_ratio(coverage.get("ratio")) if isinstance(coverage, dict) else None,
        # An ISO time in UTC; the list needs no fractions of a second.
        generated_at=str(report.get("generated_at") or "")[:19].replace("T", " "),
        reasons=(*dict.fromkeys(broken), *notes, *failures, *(str(one) for one in not_written(report.get("not_written")))),
    )


def with_checked_report(audit: ListedAudit) -> ListedAudit:
    """The audit; UNUSABLE, with the reasons, if its report is not as it was sealed. Nothing is checked of an audit that is not sealed."""
    changed = []
    for name in ("report.json", "report.html"):
        try:
            audit.file("report", name)
        except (IntegrityError, OSError) as problem:
            changed.append(str(problem))
    return replace(audit, verdict=UNUSABLE, reasons=tuple(dict.fromkeys([*changed, *audit.reasons]))) if changed else audit


def _verdict(reported: object, *, failed: bool) -> str:
    """As in the outcome of an audit: a step that failed decides, unless the evidence was void before."""
    if failed and reported != VOID:
        return ERROR
    return str(reported or UNFINISHED)


def _ratio(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1 else None
