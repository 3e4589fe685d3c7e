"""The verdicts of a fleet, and how old the evidence is that they stand on."""

from collections import Counter
from datetime import datetime, timedelta

from kafka_audit.audit.outcome import ERROR, FAILED, INCOMPLETE, PASSED, VOID
from kafka_audit.report import words
from kafka_audit.report.fleet.matrix import NO_AUDIT, UNUSABLE, Fleet, FleetCluster
from kafka_audit.report.report_times import moment

KINDS = {PASSED: "pass", FAILED: "fail", INCOMPLETE: "gap", VOID: "gap", ERROR: "error", NO_AUDIT: "none", UNUSABLE: "error"}
"""The verdicts in the order in which they are counted, with the kind of their mark."""


def counted(fleet: Fleet) -> list[tuple[str, str, int]]:
    """How many clusters have each verdict: kind of mark, verdict, number; those that none has are left out."""
    found = Counter(cluster.verdict for cluster in fleet.clusters)
    return [(kind, verdict, found[verdict]) for verdict, kind in KINDS.items() if found[verdict]]


def period(fleet: Fleet) -> tuple[datetime, datetime] | None:
    """When the oldest and the newest evidence of the fleet was taken, in UTC; None if no cluster has any that can be used."""
    times = [taken for cluster in fleet.clusters if (taken := moment(cluster.evidence_at or ""))]
    return (min(times), max(times)) if times else None


def behind(cluster: FleetCluster, newest: datetime | None) -> str | None:
    """How much older the evidence of the cluster is than the newest of the fleet, such as ``2 d 3 h``; None if it is that, or not known."""
    taken = moment(cluster.evidence_at or "")
    if not taken or not newest or taken >= newest:
        return None
    return words.duration((newest - taken) // timedelta(milliseconds=1))
