"""What is known of each cluster: the newest audit that the reader may read, its index, and how old the evidence is."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from functools import cached_property

from kafka_audit.audit.clusters import DagCluster
from kafka_audit.audit.installation import stale_after
from kafka_audit.audit.listing import NEWEST, UNUSABLE, FoundAudit, MayRead, find_audit, readable_clusters
from kafka_audit.audit.outcome import ERROR, PASSED, VOID
from kafka_audit.audit.request import DAG_ID
from kafka_audit.errors import IntegrityError
from kafka_audit.index.overview import Overview
from kafka_audit.index.read import open_index
from kafka_audit.index.shown import without_root
from kafka_audit.store.chain_state import read_state
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sealed import AUDIT
from kafka_audit.times import parse_time, time_of_id

NO_AUDIT = "NO AUDIT"
UNSEALED = "NOT SEALED"
"""What stands in place of a verdict: no audit, and one that runs still or was cut short. UNUSABLE: its index cannot be used."""

_WORST_FIRST = (VOID, ERROR, UNUSABLE, "FAILED", "INCOMPLETE", UNSEALED, NO_AUDIT)


@dataclass(frozen=True, kw_only=True)
class Cluster:
    """One cluster, as far as the reader may read it.

    ``overview``: that of its newest sealed audit, None if there is none that can be used; ``problem``: why not, in words. ``sealed``: that
    audit. ``unsealed``: the newest audit if it is not sealed. ``evidence_at``: when the newest snapshot was taken, of any kind; ``now``:
    the time of the request, and ``limit`` the age from which evidence is stale. ``dag_id``: the DAG by which the cluster is audited.
    """

    name: str
    dag_id: str
    now: datetime
    limit: timedelta
    overview: Overview | None = None
    problem: str = ""
    sealed: FoundAudit | None = None
    unsealed: FoundAudit | None = None
    evidence_at: datetime | None = None

    @property
    def verdict(self) -> str:
        """The verdict of the newest sealed audit, or the word that stands in its place."""
        if self.problem:
            return UNUSABLE
        if self.overview is None:
            return UNSEALED if self.unsealed else NO_AUDIT
        return self.overview.verdict

    @cached_property
    def audited_at(self) -> datetime | None:
        """When the evidence of the newest sealed audit was taken; None if that is not known."""
        for text in (self.overview.evidence_at, self.overview.started_at) if self.overview else ():
            if text and (when := time_of(text)):
                return when
        return time_of_id(self.sealed.audit_id) if self.sealed else None

    @property
    def audit_age(self) -> timedelta | None:
        return self.now - self.audited_at if self.audited_at else None

    @property
    def evidence_age(self) -> timedelta | None:
        """The age of the newest evidence: of a snapshot, or of the audit's if the snapshot is gone."""
        known = [when for when in (self.evidence_at, self.audited_at) if when]
        return self.now - max(known) if known else None

    @property
    def stale(self) -> bool:
        """Whether the newest audit is older than the limit, although offsets snapshots may go on; not so if nothing was audited yet."""
        return self.audit_age is not None and self.audit_age > self.limit

    @property
    def healthy(self) -> bool:
        """Whether it may be shown in green: the newest audit passed, is not stale, judged no less than usual, and is of a real cluster."""
        known = self.overview
        return self.verdict == PASSED and not self.stale and known is not None and not known.sample and not known.judged_less

    @property
    def why(self) -> tuple[str, ...]:
        """What there is to say before any figure, in sentences: no usable audit, a void one, a newer one that is not sealed."""
        return tuple(self._why())

    def _why(self) -> Iterator[str]:
        if self.problem:
            yield f"The newest sealed audit cannot be shown: {self.problem}"
        elif self.overview is None and self.unsealed is None:
            yield "There is no audit of this cluster yet that you may read."
        elif self.overview is None:
            yield "No audit of this cluster is sealed yet, so nothing is known of it."
        if self.overview and self.overview.verdict == VOID:
            yield "The newest audit is void: its evidence is not fit to judge, so none of its figures is known."
        if self.overview and self.overview.judged_less:
            names = ", ".join(self.overview.judged_less)
            of = "It says nothing about the rest of the cluster." if self.overview.narrowed else "So its verdict is of a looser gate."
            yield f"The newest audit judged less than one with the default parameters ({names}). {of}"
        if self.overview and self.overview.sample:
            yield "This audit is made up, to try the pages: it says nothing about a real cluster."

    @property
    def order(self) -> tuple[int, bool, str]:
        """The place of the cluster in a list with the worst first; a stale one comes before those of the same verdict."""
        place = _WORST_FIRST.index(self.verdict) if self.verdict in _WORST_FIRST else len(_WORST_FIRST)
        return (place - self.stale, not self.stale, self.name)


def time_of(text: str) -> datetime | None:
    """A time from a file, with its zone or taken as UTC; None if it is no time."""
    try:
        when = parse_time(text)
    except ValueError:
        return None
    return when if when.tzinfo else when.replace(tzinfo=timezone.utc)


def own_dags(configured: list[DagCluster], may_read: MayRead) -> dict[str, str]:
    """The configured clusters whose audit DAG the reader may read, with that DAG."""
    return {one.name: one.dag_id(DAG_ID) for one in configured if may_read(one.dag_id(DAG_ID))}


def read_clusters(root: EvidenceRoot, may_read: MayRead, configured: list[DagCluster], now: datetime) -> list[Cluster]:
    """The clusters of which there is an audit that the reader may read, and those that have a DAG whose runs the reader may read."""
    limit, own = stale_after(), own_dags(configured, may_read)
    names = sorted({*own, *readable_clusters(root, may_read)})
    read = (read_cluster(root, name, may_read, dag_id=own.get(name), now=now, limit=limit) for name in names)
    return [one for one in read if one is not None]


def read_cluster(
    root: EvidenceRoot, name: str, may_read: MayRead, *, dag_id: str | None, now: datetime, limit: timedelta
) -> Cluster | None:
    """What is known of one cluster; None if there is nothing that the reader may read, and ``dag_id``, its DAG if it has one, is None."""
    readable = list(itertools.islice(_readable(root, name, may_read), 2))
    if not readable and dag_id is None:
        return None
    sealed, problem = _head(root, name, may_read)
    # An older audit that was done again, and so was sealed last, is not the newest.
    by_id = next((one for one in readable if one.sealed), None)
    sealed = max((one for one in (sealed, by_id) if one), key=lambda one: one.audit_id, default=None)
    newest = readable[0] if readable else None
    overview, problem = _overview(root, sealed) if sealed and not problem else (None, problem)
    evidence = root.newest_evidence(name)
    return Cluster(
        name=name,
        dag_id=dag_id or (sealed or readable[0]).dag_id,
        now=now,
        limit=limit,
        overview=overview,
        problem=problem,
        sealed=sealed,
        unsealed=newest if newest and not newest.sealed else None,
        evidence_at=time_of_id(evidence) if evidence else None,
    )


def _readable(root: EvidenceRoot, name: str, may_read: MayRead) -> Iterator[FoundAudit]:
    """Audits that the reader may read, newest first: up to the first that is sealed, whatever is unsealed before it but the newest."""
    first = True
    for audit_id in root.ids(name, AUDIT)[:NEWEST]:
        found = find_audit(root, name, audit_id, may_read)
        if found is None:
            continue
        sealed = found.sealed
        if first or sealed:
            yield found
        if sealed:
            return
        first = False


def _head(root: EvidenceRoot, name: str, may_read: MayRead) -> tuple[FoundAudit | None, str]:
    """The audit that was sealed last, None if the reader may not read it; and what is wrong with the chain of audits, in words."""
    try:
        state = read_state(root.audits(name))
    except IntegrityError as problem:
        return None, without_root(root, problem)
    if state is None or state.head is None:
        return None, ""
    if not root.audit(name, state.head.audit_id).path.is_dir():
        return None, f"audit {state.head.audit_id}, which was sealed last, is gone"
    return find_audit(root, name, state.head.audit_id, may_read), ""


def _overview(root: EvidenceRoot, sealed: FoundAudit) -> tuple[Overview | None, str]:
    """The overview of an audit, or why there is none."""
    try:
        return open_index(root.audit(sealed.cluster, sealed.audit_id)).overview, ""
    except (IntegrityError, OSError) as problem:
        return None, without_root(root, problem)
