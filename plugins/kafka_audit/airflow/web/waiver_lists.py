"""The waivers of all clusters, as their newest audits found them, each once and in one of six lists."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from kafka_audit.airflow.web.newest import Cluster, time_of
from kafka_audit.index.overview import WaiverLine

EXPIRING = timedelta(days=30)
SHOWN = 200
"""The largest number of waivers that one list shows."""


@dataclass(frozen=True, kw_only=True)
class Waiver:
    """One waiver, and the clusters in whose policy it is.

    ``covered``: the failures that it covers in all of them, None if it covers none as far as is known and that is not known of a cluster.
    ``left``: the time until it expires, None if the text of the expiry is no time.
    """

    line: WaiverLine
    clusters: tuple[str, ...]
    covered: int | None
    left: timedelta | None


@dataclass(frozen=True, kw_only=True)
class WaiverList:
    """The waivers of one kind, the soonest expiry first; at most SHOWN of ``total``."""

    kind: str
    words: str
    means: str
    waivers: tuple[Waiver, ...]
    total: int


_KINDS = (
    ("expired", "Expired", "What they covered fails again: renew the waiver, or repair the cause."),
    ("expiring", "Expire within 30 days", "They are in force until then."),
    ("unused", "Unused", "They cover no failure of the newest audit of any cluster: remove them."),
    (
        "unknown",
        "Use not known",
        "The newest audit of a cluster is void, lacks results or is of a part of it.",
    ),
    ("not yet approved", "Not yet approved", "Their approval lies in the future, so they cover nothing yet."),
    ("active", "Active", "They are in force, and cover failures that are not repaired."),
)


def waiver_lists(clusters: Iterable[Cluster], now: datetime, asked: str = "") -> tuple[WaiverList, ...]:
    """All waivers by kind; ``asked``: only those in which this text stands, in any field or the name of a cluster."""
    found: dict[tuple[str, ...], list[tuple[Cluster, WaiverLine]]] = {}
    for cluster in clusters:
        for line in cluster.overview.waivers if cluster.overview else ():
            found.setdefault(_same(line), []).append((cluster, line))
    waivers = [_waiver(lines, now) for lines in found.values()]
    kept = [one for one in waivers if asked.lower() in " ".join((*_same(one.line), *one.clusters)).lower()]
    kept.sort(key=lambda one: (one.left is None, one.left or timedelta(), one.line.id))
    by_kind: dict[str, list[Waiver]] = {}
    for one in kept:
        by_kind.setdefault(kind_of(one), []).append(one)
    return tuple(_listed(kind, words, means, by_kind.get(kind, [])) for kind, words, means in _KINDS)


def _listed(kind: str, words: str, means: str, waivers: Sequence[Waiver]) -> WaiverList:
    return WaiverList(kind=kind, words=words, means=means, waivers=tuple(waivers[:SHOWN]), total=len(waivers))


def _same(line: WaiverLine) -> tuple[str, ...]:
    """What makes two waivers one: all that the policy says of them."""
    return (
        line.id,
        line.control,
        line.resource,
        line.owner,
        line.approver,
        line.ticket,
        line.justification,
        line.approved_on,
        line.expires,
    )


def _waiver(lines: Sequence[tuple[Cluster, WaiverLine]], now: datetime) -> Waiver:
    first = next((line for _, line in lines if line.status == "used"), lines[0][1])
    expires = time_of(first.expires)
    covered = sum(line.covered for _, line in lines)
    # A void audit, and one of a part of the cluster, say nothing of the failures that a waiver covers.
    known = all(one.overview and one.overview.failed is not None and not one.overview.narrowed for one, _ in lines)
    return Waiver(
        line=first,
        clusters=tuple(one.name for one, _ in lines),
        covered=covered if covered or known else None,
        left=expires - now if expires else None,
    )


def kind_of(waiver: Waiver) -> str:
    """The list of a waiver, by the time of the request: one that was in force in the newest audit may have expired since."""
    if waiver.line.status == "expired" or (waiver.left is not None and waiver.left <= timedelta()):
        return "expired"
    if waiver.line.status == "not yet approved":
        return "not yet approved"
    if not waiver.covered:
        return "unknown" if waiver.covered is None else "unused"
    return "expiring" if waiver.left is not None and waiver.left <= EXPIRING else "active"


def expiring_of(cluster: Cluster) -> list[Waiver]:
    """The waivers of one cluster that expire within 30 days, the soonest first."""
    lines = cluster.overview.waivers if cluster.overview else ()
    waivers = [_waiver([(cluster, line)], cluster.now) for line in lines]
    soon = [one for one in waivers if one.left is not None and timedelta() < one.left <= EXPIRING]
    return sorted(soon, key=lambda one: (one.left or timedelta(), one.line.id))
