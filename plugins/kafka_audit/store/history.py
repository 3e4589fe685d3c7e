"""The earlier snapshots of a cluster that an audit may compare its own with."""

from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from kafka_audit.errors import IntegrityError
from kafka_audit.store.chain_state import read_state
from kafka_audit.store.layout import Snapshot
from kafka_audit.store.samples import OTHER_SCOPE, scope_of
from kafka_audit.store.sealed import AUDIT, OFFSETS, SNAPSHOT, Place, Sealed
from kafka_audit.times import stamp

OFFSETS_SNAPSHOTS = 36
"""How many offsets snapshots are read one by one: three hours of one every five minutes. What is older is in the rolled-up days."""
_READABLE = 20
_AUDITS = 100
"""How many of the newest audits are asked which snapshot they judged."""


@dataclass(frozen=True, kw_only=True)
class History:
    """Usable earlier snapshots, oldest first: whole ones, and ``offsets`` snapshots of groups and log ends only.

    ``unusable`` ones with the reason; ``foreign``: ids of another cluster's of the same name. ``audited``: id of the newest of
    ``snapshots`` that a sealed audit judged. ``first_audit``: this is the cluster's first audit, and there was no earlier whole snapshot.
    """

    snapshots: tuple[Snapshot, ...] = ()
    offsets: tuple[Snapshot, ...] = ()
    unusable: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    audited: str | None = None
    first_audit: bool = False

    @property
    def before(self) -> Snapshot | None:
        """The snapshot of the last audit: changes since it were not judged by any; where none is known, the newest whole one.

        What lies between may have been taken by hand, or by a run that failed, or be an offsets snapshot: nobody was told of a change
        that it shows already.
        """
        audited = (one for one in self.snapshots if self.audited and one.snapshot_id == self.audited)
        return next(audited, self.snapshots[-1] if self.snapshots else None)

    @property
    def all(self) -> tuple[Snapshot, ...]:
        """Both kinds, oldest first."""
        return tuple(sorted((*self.snapshots, *self.offsets), key=lambda one: (one.taken_ms, one.snapshot_id)))

    def record(self) -> dict[str, Any]:
        """What an audit keeps of it: ids and manifest hashes of the snapshots used, and those left out."""
        return {
            "used": _named(self.snapshots),
            "used_offsets": _named(self.offsets),
            "left_out": list(self.unusable),
            "of_another_cluster": list(self.foreign),
            "last_audited": self.audited,
            "first_audit": self.first_audit,
        }


def read_history(snapshot: Snapshot, limit: int, audit_id: str | None = None) -> History:
    """The newest ``limit`` snapshots that are older than this one, of the same Kafka cluster, each checked against its manifest.

    One that was changed is left out with the reason: it proves nothing. So is an offsets snapshot of another scope. Those of a
    cluster that stood under this name before are another cluster's history. Without a history (a limit of 0) no offsets snapshot is read.
    ``audit_id``: the audit that compares, which may have been sealed before and is being done again.
    """
    unusable: list[str] = []
    foreign: list[str] = []
    whole = _usable(snapshot, SNAPSHOT, limit, unusable, foreign)
    offsets = _usable(snapshot, OFFSETS, OFFSETS_SNAPSHOTS if limit else 0, unusable, foreign)
    return History(
        snapshots=whole,
        offsets=offsets,
        unusable=tuple(unusable[-_READABLE:]),
        foreign=tuple(foreign[-_READABLE:]),
        audited=_last_audited(snapshot, whole),
        first_audit=_is_first_audit(snapshot, audit_id),
    )


def _is_first_audit(snapshot: Snapshot, audit_id: str | None) -> bool:
    """Whether no other audit of this cluster's name was ever sealed, and no whole snapshot was begun before this one.

    A broken audit or snapshot counts, and so does a number that the chain has given: what was there and is missing now is no first audit.
    Offsets snapshots do not count, because they may run for weeks before the first audit.
    """
    root, cluster = snapshot.root, str(snapshot.manifest["cluster"])
    if not set(root.sealed_ids(cluster, AUDIT)) <= {audit_id}:
        return False
    try:
        chain = read_state(root.audits(cluster))
    except IntegrityError:
        return False
    if chain is not None and chain.last > 0:
        known = {*chain.opened, *([chain.head.audit_id] if chain.head else [])}
        if chain.last > 1 or known != {audit_id}:
            return False
    return not any(_began_before(snapshot, one) for one in root.sealed_ids(cluster, SNAPSHOT))


def _began_before(snapshot: Snapshot, snapshot_id: str) -> bool:
    """Whether another whole snapshot was begun before this one; one that does not tell may have been."""
    if snapshot_id == snapshot.snapshot_id:
        return False
    try:
        return snapshot.root.snapshot(str(snapshot.manifest["cluster"]), snapshot_id).taken_ms < snapshot.taken_ms
    except IntegrityError:
        return True


def _last_audited(snapshot: Snapshot, whole: tuple[Snapshot, ...]) -> str | None:
    """The id of the newest of these snapshots that one of the newest sealed audits names; None when none does."""
    cluster = str(snapshot.manifest["cluster"])
    place = snapshot.root.place(cluster, AUDIT)
    judged = {_judged_by(place.parent / audit_id, place) for audit_id in snapshot.root.sealed_ids(cluster, AUDIT)[-_AUDITS:]}
    return next((one.snapshot_id for one in reversed(whole) if one.snapshot_id in judged), None)


def _judged_by(audit: Path, place: Place) -> str | None:
    """The id of the snapshot that a sealed audit names; None when its manifest cannot be read."""
    try:
        named = Sealed.open(audit, place).manifest.get("snapshot")
    except IntegrityError:
        return None
    return str(named["snapshot_id"]) if isinstance(named, dict) and "snapshot_id" in named else None


def _usable(snapshot: Snapshot, kind: str, most: int, unusable: list[str], foreign: list[str]) -> tuple[Snapshot, ...]:
    if not most:
        return ()
    root, cluster = snapshot.root, str(snapshot.manifest["cluster"])
    # An id carries the time for which a run was planned, and the run may have read the cluster later: the manifest's time decides.
    latest = stamp(datetime.fromtimestamp(snapshot.taken_ms / 1000, timezone.utc) + timedelta(days=1))
    scope = scope_of(snapshot.manifest)
    found: list[Snapshot] = []
    looked_at = 0
    for snapshot_id in reversed([name for name in root.sealed_ids(cluster, kind) if name <= latest and name != snapshot.snapshot_id]):
        if looked_at == most:
            break
        try:
            one = root.snapshot(cluster, snapshot_id, kind)
            if one.taken_ms >= snapshot.taken_ms:
                continue
            of_scope = scope_of(one.manifest) == scope
            if kind == OFFSETS and not of_scope:
                unusable.insert(0, f"{snapshot_id}: {OTHER_SCOPE}")
                continue
            if one.manifest.get("cluster_id") != snapshot.manifest.get("cluster_id"):
                foreign.insert(0, snapshot_id)  # it takes no place: strays would push the cluster's own history out
                continue
            problems = one.problems()
        except IntegrityError as problem:
            problems = [str(problem)]
        looked_at += 1
        if problems:
            unusable.insert(0, f"{snapshot_id}: {'; '.join(problems[:3])}")
        else:
            found.append(one)
    return tuple(sorted(found, key=lambda one: one.taken_ms))


def _named(snapshots: tuple[Snapshot, ...]) -> list[dict[str, str]]:
    return [{"snapshot_id": one.snapshot_id, "manifest_sha256": one.manifest_sha256} for one in snapshots]
