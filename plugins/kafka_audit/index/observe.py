"""Reads how a cluster stands: its newest sealed audit, the audits that are not sealed, and how old everything is."""

from datetime import datetime, timedelta, timezone

from kafka_audit.errors import IntegrityError
from kafka_audit.index.news_item import Observed
from kafka_audit.index.overview import FAILURES
from kafka_audit.index.read import IndexedAudit, newest_index
from kafka_audit.index.shown import without_root
from kafka_audit.store.chain_state import read_state
from kafka_audit.store.layout import Audit, EvidenceRoot
from kafka_audit.store.sealed import AUDIT
from kafka_audit.times import parse_time, time_of_id


def observe(root: EvidenceRoot, cluster: str, *, now: datetime, finish_within: timedelta | None, failed: str = "") -> Observed:
    """How a cluster stands at ``now`` (UTC).

    ``finish_within``: how long an audit may take before it counts as not finished, or None. ``failed``: what is known of an audit that
    ended without a sealed report, or is late. Of a cluster that is made up, for trying the pages, nothing is observed.
    """
    found, waived, unusable = None, frozenset[tuple[str, str]](), ""
    try:
        found = newest_index(root, cluster)
        waived = _waived(found) if found else waived
    except IntegrityError as problem:
        found, unusable = None, without_root(root, problem)
    if found is not None and found.overview.sample:
        return Observed(cluster=cluster, now=now)
    ids = root.ids(cluster, AUDIT)
    sealed = found.overview.audit_id if found else root.newest_sealed(cluster, AUDIT)
    newest = ids[0] if ids and ids[0] > (sealed or "") else None
    evidence = root.newest_evidence(cluster)
    audit_of = sealed or (ids[-1] if ids else None)
    return Observed(
        cluster=cluster,
        now=now,
        overview=found.overview if found else None,
        unusable=unusable,
        waived=waived,
        audit_at=time_of_id(audit_of) if audit_of else None,
        evidence_at=time_of_id(evidence) if evidence else None,
        unfinished=failed or (_late(root.audit(cluster, newest), now, finish_within) if newest else ""),
        running=newest is not None,
    )


def _waived(found: IndexedAudit) -> frozenset[tuple[str, str]]:
    """The waived failures among those that the index lists: all of the changes that the overview lists and the index does."""
    parts = found.parts(FAILURES, ["control_id", "resource", "waiver"])
    return frozenset((row["control_id"], row["resource"]) for part in parts for row in part.to_pylist() if row["waiver"])


def _late(audit: Audit, now: datetime, finish_within: timedelta | None) -> str:
    began = _began(audit)
    if finish_within is None or began is None or now - began <= finish_within:
        return ""
    return f"audit {audit.path.name} began at {began:%Y-%m-%d %H:%M} UTC and has no sealed report yet"


def _began(audit: Audit) -> datetime | None:
    """When an unsealed audit began, or was opened to be done again; None if not even its id says so."""
    try:
        state = read_state(audit.path.parent)
        if state is not None and audit.path.name in state.opened:
            return datetime.fromtimestamp(audit.path.stat().st_mtime, timezone.utc)
        return parse_time(audit.run()["started_at"]).astimezone(timezone.utc)
    except (IntegrityError, KeyError, ValueError, OSError, OverflowError):  # what it is worth to know is when, and its id says that, too
        return time_of_id(audit.path.name)
