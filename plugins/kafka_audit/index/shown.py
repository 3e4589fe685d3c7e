"""Which audit of a cluster a page shows: the newest that can be shown, and why newer ones cannot."""

from dataclasses import dataclass
from itertools import islice

from kafka_audit.audit.outcome import VOID
from kafka_audit.errors import IntegrityError
from kafka_audit.index.read import IndexedAudit, audit_ids, open_index
from kafka_audit.store.layout import EvidenceRoot

_LOOKED_AT = 20
"""How many audits are tried, newest first."""


@dataclass(frozen=True, kw_only=True)
class PassedOver:
    """An audit that is newer than the shown one, and why it is not shown, as the end of a sentence."""

    audit_id: str
    why: str


@dataclass(frozen=True, kw_only=True)
class Shown:
    """The audit that a page shows; None if none can be shown. ``passed_over``: newer ones, newest first."""

    index: IndexedAudit | None
    passed_over: tuple[PassedOver, ...] = ()


def shown_audit(root: EvidenceRoot, cluster: str) -> Shown:
    """The newest audit of a cluster whose results can be shown: sealed, unchanged, of a form that is read, and not void."""
    passed: list[PassedOver] = []
    for audit_id in islice(audit_ids(root, cluster), _LOOKED_AT):
        try:
            found = open_index(root.audit(cluster, audit_id))
        except IntegrityError as problem:
            passed.append(PassedOver(audit_id=audit_id, why=without_root(root, problem)))
            continue
        if found.overview.verdict != VOID:
            return Shown(index=found, passed_over=tuple(passed))
        passed.append(PassedOver(audit_id=audit_id, why="is void: its evidence was not fit to judge"))
    return Shown(index=None, passed_over=tuple(passed))


def pinned_audit(root: EvidenceRoot, cluster: str, audit_id: str) -> IndexedAudit | None:
    """The audit whose table a reader is paging through; None if it cannot be shown any more."""
    try:
        return open_index(root.audit(cluster, audit_id)) if audit_id in audit_ids(root, cluster) else None
    except IntegrityError:
        return None


def without_root(root: EvidenceRoot, problem: object) -> str:
    """The words of a problem, in which paths begin below the audit folder: where that lies is nobody's business."""
    return str(problem).replace(f"{root.path}/", "")
