"""How one group stood in the newest audits of its cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kafka_audit.audit.outcome import VOID
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.index.read import IndexedAudit, group_row
from kafka_audit.index.shown import MaySee, without_root
from kafka_audit.report.lag_history import LagHistory, read_histories
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.mirrors import bring
from kafka_audit.store.sealed_files import checked_file, sealed_files

SHOWN = 30
"""The largest number of audits that are read."""
_MOST_OF_AN_AUDIT = 64 << 20
"""How much of the table of one audit is looked through, in bytes: with 30 audits a page must not take minutes."""


@dataclass(frozen=True, kw_only=True)
class PastGroup:
    """A group in one audit: its row of kafka_audit.index.tables.GROUP_ROW; or None, and why nothing is known."""

    audit_id: str
    started_at: str
    verdict: str
    row: Mapping[str, Any] | None
    why: str = ""

    def known(self, column: str) -> Any:  # noqa: ANN401 - a cell of the row
        """The value of a column; None if it is not known."""
        return None if self.row is None else self.row[column]


def group_history(root: EvidenceRoot, index: IndexedAudit, group_id: str, may_see: MaySee, limit: int = SHOWN) -> tuple[PastGroup, ...]:
    """The group in the audits up to ``index``, oldest first. One that is void, changed or gone is a gap, and says so."""
    found = []
    for one in index.overview.past[-limit:]:
        row: Mapping[str, Any] | None = None
        why = ""
        if not may_see(one.audit_id):
            why = "the audit is not there any more, or you may not read it"
        elif one.verdict == VOID:
            why = "the audit is void: its evidence was not fit to judge"
        else:
            try:
                audit = root.audit(index.overview.cluster, one.audit_id)
                bring(audit.path, ("index/",))
                row = group_row(audit.path, sealed_files(audit.path), group_id, most=_MOST_OF_AN_AUDIT)
                why = "" if row else "the audit saw no such group"
            except (ConfigurationError, IntegrityError) as problem:
                why = without_root(root, problem)
        found.append(PastGroup(audit_id=one.audit_id, started_at=one.started_at, verdict=one.verdict, row=row, why=why))
    return tuple(found)


def lag_over_time(index: IndexedAudit, group_id: str) -> LagHistory | None:
    """The lag of one of the worst groups between the audits; None for any other group. IntegrityError if it is not as it was sealed."""
    place = f"{index.audit.lag.name}/lag_series.parquet"
    parts = {name for name in index.files if name.startswith(f"{place}/")}
    for name in parts:
        checked_file(index.audit.path, index.files, name)
    folder = index.audit.path / place
    if {f"{place}/{path.name}" for path in folder.glob("*.parquet")} - parts:
        raise IntegrityError(f"{folder}: holds files that were not sealed")
    try:
        return read_histories(folder, [group_id]).get(group_id) if parts else None
    except (TypeError, ValueError, OverflowError) as problem:
        raise IntegrityError(f"{folder}: holds values that no step writes ({problem!s:.200})") from problem
