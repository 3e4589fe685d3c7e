"""Which audit of a cluster a page shows: the newest that can be shown, and why newer ones cannot."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from kafka_audit.audit.outcome import VOID
from kafka_audit.errors import IntegrityError
from kafka_audit.index.read import IndexedAudit, open_index
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.mirrors import root_name
from kafka_audit.store.sealed import AUDIT

_LOOKED_AT = 20
"""How many audits are tried, newest first."""
_UNSEALED = "is not sealed: it runs still, or was cut short"


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


MaySee = Callable[[str], bool]
"""Whether the reader may read the audit of that id."""


def shown_audit(root: EvidenceRoot, cluster: str, may_see: MaySee) -> Shown:
    """The newest audit of a cluster whose results can be shown: sealed, unchanged, of a form that is read, and not void.

    An older audit that was done again, and so was sealed last, is not the newest. Audits that the reader may not read are not mentioned.
    """
    passed: list[PassedOver] = []
    sealed = (one for one in root.ids(cluster, AUDIT) if _is_sealed(root, cluster, one))
    for audit_id in islice(filter(may_see, sealed), _LOOKED_AT):
        try:
            found = open_index(root.audit(cluster, audit_id))
        except IntegrityError as problem:
            passed.append(PassedOver(audit_id=audit_id, why=without_root(root, problem)))
            continue
        if found.overview.verdict != VOID:
            return Shown(index=found, passed_over=_passed_over(root, cluster, may_see, passed, audit_id))
        passed.append(PassedOver(audit_id=audit_id, why="is void: its evidence was not fit to judge"))
    return Shown(index=None, passed_over=_passed_over(root, cluster, may_see, passed))


def _passed_over(
    root: EvidenceRoot, cluster: str, may_see: MaySee, sealed: Sequence[PassedOver], shown: str = ""
) -> tuple[PassedOver, ...]:
    """The sealed audits that were passed over, and the unsealed ones that are newer than the one that is ``shown``; newest first."""
    newer = [one for one in islice(root.ids(cluster, AUDIT), _LOOKED_AT) if one > shown and may_see(one)]
    unsealed = [PassedOver(audit_id=one, why=_UNSEALED) for one in newer if not _is_sealed(root, cluster, one)]
    return tuple(sorted([*unsealed, *sealed], key=lambda one: one.audit_id, reverse=True))


def _is_sealed(root: EvidenceRoot, cluster: str, audit_id: str) -> bool:
    return (root.audit(cluster, audit_id).path / MANIFEST).is_file()


def pinned_audit(root: EvidenceRoot, cluster: str, audit_id: str, may_see: MaySee) -> IndexedAudit | None:
    """The audit whose table a reader is paging through; None if it cannot be shown any more."""
    try:
        return open_index(root.audit(cluster, audit_id)) if audit_id in root.ids(cluster, AUDIT) and may_see(audit_id) else None
    except IntegrityError:
        return None


def without_root(root: EvidenceRoot, problem: object) -> str:
    """The words of a problem, in which paths begin below the audit folder or the URL of a store: where these lie is nobody's business."""
    return str(problem).replace(f"{root.path}/", "").replace(f"{root_name(root.path)}/", "")
