"""Which audit of a cluster a page shows: the newest that can be shown, and why newer ones cannot."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from kafka_audit.audit.outcome import VOID
from kafka_audit.errors import IntegrityError
from kafka_audit.index.read import IndexedAudit, audit_ids, open_index
from kafka_audit.store.chain_state import read_state
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.manifest import MANIFEST

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

    The audit that was sealed last comes first, then all others by their ids. Audits that the reader may not read are not mentioned.
    """
    passed: list[PassedOver] = []
    for audit_id in islice(filter(may_see, _newest_first(root, cluster)), _LOOKED_AT):
        try:
            found = open_index(root.audit(cluster, audit_id))
        except IntegrityError as problem:
            passed.append(PassedOver(audit_id=audit_id, why=without_root(root, problem)))
            continue
        if found.overview.verdict != VOID:
            # An audit with a later id that still runs is newer than the one that was sealed last.
            running = [one for one in islice(audit_ids(root, cluster), _LOOKED_AT) if one > audit_id and may_see(one)]
            known = {one.audit_id for one in passed}
            unsealed = [
                PassedOver(audit_id=one, why=_UNSEALED) for one in running if one not in known and not _is_sealed(root, cluster, one)
            ]
            return Shown(index=found, passed_over=tuple(sorted([*unsealed, *passed], key=lambda one: one.audit_id, reverse=True)))
        passed.append(PassedOver(audit_id=audit_id, why="is void: its evidence was not fit to judge"))
    return Shown(index=None, passed_over=tuple(passed))


def _newest_first(root: EvidenceRoot, cluster: str) -> Iterator[str]:
    try:
        state = read_state(root.audits(cluster))
    except IntegrityError:  # the ids are still there, and what they name is checked
        state = None
    last = state.head.audit_id if state and state.head else None
    ids = audit_ids(root, cluster)
    if last in ids:
        yield last
    yield from (one for one in ids if one != last)


def _is_sealed(root: EvidenceRoot, cluster: str, audit_id: str) -> bool:
    return (root.audit(cluster, audit_id).path / MANIFEST).is_file()


def pinned_audit(root: EvidenceRoot, cluster: str, audit_id: str, may_see: MaySee) -> IndexedAudit | None:
    """The audit whose table a reader is paging through; None if it cannot be shown any more."""
    try:
        return open_index(root.audit(cluster, audit_id)) if audit_id in audit_ids(root, cluster) and may_see(audit_id) else None
    except IntegrityError:
        return None


def without_root(root: EvidenceRoot, problem: object) -> str:
    """The words of a problem, in which paths begin below the audit folder: where that lies is nobody's business."""
    return str(problem).replace(f"{root.path}/", "")
