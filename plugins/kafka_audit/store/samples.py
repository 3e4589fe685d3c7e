"""Which offsets snapshots count as samples of a time, one for each interval, and which are left out and why."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone
from itertools import pairwise
from typing import Any

from kafka_audit.errors import IntegrityError
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.sealed import OFFSETS
from kafka_audit.times import parse_time, stamp

DAY_MS = 86_400_000
BRIDGED = 2
"""A sample stands for the time to the next one, up to this many intervals: one lost run changes no figure, a longer gap is not assessed."""
Scope = tuple[frozenset[str], frozenset[str]]
"""Patterns of the topics and of the groups that a snapshot covers."""
OTHER_SCOPE = "covers another scope of topics or groups"
OTHER_CLUSTER = "is of another cluster that had this name"
DUPLICATE = "is not the first of its interval"


@dataclass(frozen=True, kw_only=True)
class Samples:
    """Samples of one cluster, oldest first, and (snapshot id, reason) of what was left out.

    ``duplicates`` are those left out whose interval has a sample, ``foreign`` those of another cluster.
    """

    used: tuple[Snapshot, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    duplicates: tuple[Snapshot, ...] = ()
    foreign: tuple[Snapshot, ...] = ()

    @property
    def cluster_id(self) -> str | None:
        """The cluster that the samples are of; None without samples."""
        return str(self.used[-1].manifest["cluster_id"]) if self.used else None


def bridged_ms(interval_ms: int) -> int:
    """The longest time between two samples that is no gap: ``BRIDGED`` intervals, and half of one because runs are not punctual."""
    return BRIDGED * interval_ms + interval_ms // 2


def scope_of(manifest: Mapping[str, Any]) -> Scope:
    """The scope of a snapshot; one that its manifest does not name, or that has the pattern ``*``, is all there is.

    IntegrityError when it has another form than this release writes.
    """
    scope = manifest.get("scope") or {}
    if not isinstance(scope, dict):
        raise IntegrityError(f"{MANIFEST}: its scope is {type(scope).__name__} where an object is expected")
    return _patterns(scope.get("topics")), _patterns(scope.get("groups"))


def _patterns(found: object) -> frozenset[str]:
    listed = [found] if isinstance(found, str) else found or []
    if not isinstance(listed, list | tuple) or not all(isinstance(one, str) for one in listed):
        raise IntegrityError(f"{MANIFEST}: a part of its scope is neither a pattern nor a list of patterns")
    patterns = frozenset(listed)
    return frozenset({"*"}) if "*" in patterns or not patterns - {""} else patterns


WHOLE = scope_of({})


def gaps(times: Sequence[int], interval_ms: int, first_ms: int, last_ms: int) -> list[dict[str, Any]]:
    """Runs of intervals between two times that have no sample: from and to (UTC), and missing, their number."""
    slots = [first_ms // interval_ms - 1, *(at // interval_ms for at in times), last_ms // interval_ms]
    return [
        {"from": utc((before + 1) * interval_ms), "to": utc(after * interval_ms), "missing": after - before - 1}
        for before, after in pairwise(slots)
        if after - before > 1
    ]


def utc(ms: int) -> str:
    """A time in milliseconds since the epoch as UTC text."""
    return datetime.fromtimestamp(ms / 1000, timezone.utc).isoformat(timespec="seconds").replace("+00:00", "Z")


def day_of(ms: int) -> date:
    """The UTC day of a time in milliseconds since the epoch."""
    return datetime.fromtimestamp(ms / 1000, timezone.utc).date()


def read_samples(
    root: EvidenceRoot,
    cluster: str,
    *,
    first_ms: int,
    last_ms: int,
    interval_ms: int,
    cluster_id: str | None,
    before: str | None = None,
    scope: Scope = WHOLE,
    skip: Collection[date] = (),
) -> Samples:
    """The offsets snapshots that were begun from ``first_ms`` on and before ``last_ms``: of several in one interval the first.

    Without a ``cluster_id`` the one that was seen in most intervals decides: a stray snapshot, or a hundred of one interval, then displaces
    nothing. Of equals it is the one of ``before``, the day before, or else the one seen first. A snapshot that was changed, or is another
    cluster's, or covers another ``scope``, is left out. Those of the UTC days ``skip`` are not looked at.
    """
    usable: list[Snapshot] = []
    left_out: list[tuple[str, str]] = []
    for snapshot_id in _ids(root, cluster, first_ms, last_ms):
        try:
            one = root.snapshot(cluster, snapshot_id, OFFSETS)
            inside = first_ms <= one.taken_ms < last_ms and day_of(one.taken_ms) not in skip
            problems = (one.problems() or _time_problems(one)) if inside else []
            of_scope, of_cluster = scope_of(one.manifest) == scope, one.manifest.get("cluster_id")
        except IntegrityError as problem:
            left_out.append((snapshot_id, str(problem)))
            continue
        if problems:
            left_out.append((snapshot_id, "; ".join(problems[:3])))
        elif inside and not of_scope:
            left_out.append((snapshot_id, OTHER_SCOPE))
        elif inside and not (isinstance(of_cluster, str) and of_cluster):
            left_out.append((snapshot_id, "does not say which cluster it is of"))
        elif inside:
            usable.append(one)
    usable.sort(key=lambda one: (one.taken_ms, one.snapshot_id))
    wanted = cluster_id or _most_seen(usable, interval_ms, before)
    foreign = [one for one in usable if one.manifest["cluster_id"] != wanted]
    used, duplicates = first_of_each_interval([one for one in usable if one.manifest["cluster_id"] == wanted], interval_ms)
    left_out += [(one.snapshot_id, OTHER_CLUSTER) for one in foreign] + [(one.snapshot_id, DUPLICATE) for one in duplicates]
    return Samples(used=tuple(used), left_out=tuple(sorted(left_out)), duplicates=tuple(duplicates), foreign=tuple(foreign))


def _most_seen(by_time: Sequence[Snapshot], interval_ms: int, before: str | None) -> str | None:
    intervals: dict[str, set[int]] = {}
    for one in by_time:
        intervals.setdefault(str(one.manifest["cluster_id"]), set()).add(one.taken_ms // interval_ms)
    return max(intervals, key=lambda found: (len(intervals[found]), found == before), default=None)  # of equals the first


def first_of_each_interval(snapshots: Sequence[Snapshot], interval_ms: int) -> tuple[list[Snapshot], list[Snapshot]]:
    """Snapshots by time -> the first of each interval, and the others."""
    first: dict[int, Snapshot] = {}
    others = []
    for one in snapshots:
        if first.setdefault(one.taken_ms // interval_ms, one) is not one:
            others.append(one)
    return list(first.values()), others


def _ids(root: EvidenceRoot, cluster: str, first_ms: int, last_ms: int) -> Iterator[str]:
    """Ids are stamped with a time that may differ from when the work began: by less than a day."""
    earliest, latest = (stamp(datetime.fromtimestamp(ms / 1000, timezone.utc)) for ms in (first_ms - DAY_MS, last_ms + DAY_MS))
    return (name for name in root.sealed_ids(cluster, OFFSETS) if earliest <= name <= latest)


def _time_problems(one: Snapshot) -> list[str]:
    try:
        took = parse_time(one.manifest["finished_at"]).astimezone(timezone.utc) - datetime.fromtimestamp(one.taken_ms / 1000, timezone.utc)
    except (KeyError, ValueError, OverflowError):
        return ["its manifest does not say when it was finished"]
    return [] if took > timedelta(seconds=-1) else ["it was finished before it was begun: the clock was set back meanwhile"]
