"""The audits of one cluster, newest first, a page at a time, each from its own index."""

from dataclasses import dataclass

from kafka_audit.airflow.web.newest import UNSEALED
from kafka_audit.audit.listing import UNUSABLE, FoundAudit, MayRead, find_audit
from kafka_audit.errors import IntegrityError
from kafka_audit.index.overview import Overview
from kafka_audit.index.read import open_index
from kafka_audit.index.shown import without_root
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sealed import AUDIT

PAGE = 12
"""Audits on one page: each costs a small file that is read and checked against its hash."""
_LOOKED_AT = 200


@dataclass(frozen=True, kw_only=True)
class PastAudit:
    """One audit: its overview, or why it has none that can be shown."""

    found: FoundAudit
    overview: Overview | None
    verdict: str
    problem: str = ""


@dataclass(frozen=True, kw_only=True)
class PastAudits:
    """One page of audits; ``older``: the id before which the next page begins, None if there is none."""

    audits: tuple[PastAudit, ...]
    older: str | None

    @property
    def unsealed(self) -> tuple[PastAudit, ...]:
        """Those that run still or were cut short."""
        return tuple(one for one in self.audits if one.verdict == UNSEALED)


def past_audits(root: EvidenceRoot, cluster: str, may_read: MayRead, before: str = "", *, size: int = PAGE) -> PastAudits:
    """The audits before the one of the id ``before`` that the reader may read; all that are not before it are passed over."""
    left = [one for one in root.ids(cluster, AUDIT) if not before or one < before]
    shown: list[PastAudit] = []
    for looked_at, audit_id in enumerate(left[:_LOOKED_AT], 1):
        found = find_audit(root, cluster, audit_id, may_read)
        if found:
            shown.append(_past(root, found))
        if len(shown) == size or looked_at == _LOOKED_AT:
            return PastAudits(audits=tuple(shown), older=audit_id if looked_at < len(left) else None)
    return PastAudits(audits=tuple(shown), older=None)


def _past(root: EvidenceRoot, found: FoundAudit) -> PastAudit:
    if not found.sealed:
        return PastAudit(found=found, overview=None, verdict=UNSEALED)
    try:
        overview = open_index(root.audit(found.cluster, found.audit_id)).overview
    except (IntegrityError, OSError) as problem:
        return PastAudit(found=found, overview=None, verdict=UNUSABLE, problem=without_root(root, problem))
    return PastAudit(found=found, overview=overview, verdict=overview.verdict)
