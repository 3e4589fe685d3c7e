"""Writes the index of an audit, before the audit is sealed."""

import logging
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_audit.audit.outcome import INDEX, VOID
from kafka_audit.audit.previous import changed
from kafka_audit.errors import IntegrityError
from kafka_audit.index.build import build_overview
from kafka_audit.index.burns import find_burns
from kafka_audit.index.group_tables import ROWS_OF_A_GROUP, write_group_tables
from kafka_audit.index.partitions import Partitions
from kafka_audit.index.read import IndexedAudit, open_index
from kafka_audit.index.tables import failure_rows, group_rows
from kafka_audit.report import Report, write_report
from kafka_audit.report.control_status import is_fit
from kafka_audit.report.rows import exists
from kafka_audit.store.chain import newest_before
from kafka_audit.store.durable_files import replaced_folder, write_json
from kafka_audit.store.layout import Audit, Snapshot

if TYPE_CHECKING:
    from kafka_audit.catalogue.load import Catalogue
    from kafka_audit.policy import Policy

log = logging.getLogger(__name__)


def write_report_and_index(
    audit: Audit, snapshot: Snapshot, catalogue: "Catalogue", policy: "Policy", *, generated_at: datetime, formats: Iterable[str]
) -> None:
    """Write the report of an audit (kafka_audit.report.write_report has the details), and from it the index."""
    write_index(audit, write_report(audit, snapshot, catalogue, policy, generated_at=generated_at, formats=formats))


def write_index(audit: Audit, report: Report) -> None:
    """Replace the audit's folder ``index/``, made from its report and tables: the overview, and the tables of the modules beside this one.

    The same audit and report give the same bytes. IntegrityError (exit 5) if results are broken, CollectionError (exit 1) if the files
    cannot be written.
    """
    before = _before(audit)
    fit = is_fit(report)
    findings = [path for part in (audit.settings, audit.lag) if fit and exists(path := part / "findings.parquet")]
    burns = find_burns(audit.lag / "sla_burns.parquet" if fit else None, before.overview.burns if before else ())
    failures = failure_rows(findings, report.audit_id, report.started_at, _failures_before(audit, before))
    partitions = Partitions(audit.lag / "group_partitions.parquet" if fit else None)
    groups = report.lag.every_group if fit else ()
    with replaced_folder(audit.path / INDEX) as folder:
        write_group_tables(folder, groups, partitions.tables(), audit.lag / "group_behaviour.parquet" if fit else None)
        _write(group_rows(groups, partitions.per_group), folder / "groups.parquet")
        _write(failures, folder / "failures.parquet")
        overview = build_overview(report, audit.run(), partitions.losses(), before.overview if before else None, burns)
        write_json(folder / "overview.json", overview.model_dump(mode="json"))


def _failures_before(audit: Audit, before: IndexedAudit | None) -> pa.Table | None:
    """The failures that the newest audit before this one lists that was not void: a void one lists none, and ended none."""
    if before is None or before.overview.verdict != VOID:
        return before.failures() if before else None
    judged = next((one for one in reversed(before.overview.past) if one.verdict != VOID), None)
    try:
        return open_index(Audit(path=audit.path.parent / judged.audit_id)).failures() if judged else None
    except IntegrityError as problem:
        log.warning("since when failures are seen begins with this audit: %s", problem)
        return None


def _write(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd", row_group_size=ROWS_OF_A_GROUP)


def _before(audit: Audit) -> IndexedAudit | None:
    """The newest audit that was sealed before this one, if its index can be used; without it, what is remembered begins here."""
    seal = newest_before(audit.path)
    if seal is None:
        return None
    folder = audit.path.parent / seal.audit_id
    try:
        if why := changed(seal, folder):
            raise IntegrityError(why)
        return open_index(Audit(path=folder))
    except IntegrityError as problem:
        log.warning("what the index remembers of earlier audits begins with this one: %s", problem)
        return None
