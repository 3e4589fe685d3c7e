"""Fleets without files, as they are read from sealed audits: all shipped controls on any number of clusters, in all states."""

from datetime import datetime, timedelta, timezone
from functools import cache
from random import Random

from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.report.control_status import Standing, standing_by
from kafka_audit.report.fleet.matrix import Cell, Fleet, FleetCluster, FleetControl
from kafka_audit.report.results import Counts
from kafka_audit.report.tally import rank
from kafka_audit.report.totals import FailedAt

NEWEST = datetime(2026, 11, 20, 23, 15, tzinfo=timezone.utc)
NAMES = ("orders-prod", "payments-prod", "analytics", "logs-eu-west-1", "telemetry-edge", "billing-staging", "search-index-us-east-2")
_LOST = (
    ("VOID", "The snapshot lacks the dataset replica_log_dirs of 3 of 9 brokers, so the evidence is not fit to judge."),
    ("NO AUDIT", "No audit of it is sealed."),
    ("UNUSABLE", "Its newest audit cannot be used: audits/x/report/report.json: was changed after it was sealed (sha256 differs)"),
    ("ERROR", "Step verify failed: Spark ended with exit code 137: out of memory."),
)
_RESULTS = (
    *((Counts(passed=12, findings=12),) * 10),
    Counts(passed=4, not_applicable=3, findings=7),
    *((Counts(not_applicable=3, findings=3),) * 3),
    *((Counts(not_assessed=4, passed=2, findings=6),) * 2),
    Counts(failed=3, waived=1, passed=20, findings=23),
    Counts(failed=1234, passed=20, findings=1254),
    Counts(failed=2, waived=2, findings=2),
    Counts(errored=1, passed=2, findings=3),
    None,
)


@cache
def shipped() -> tuple[FleetControl, ...]:
    """All controls of the catalogue, as a fleet has them."""
    found = load_catalogue([shipped_controls()]).controls
    listed = [FleetControl(control_id=one.id, code=one.code, title=one.title, severity=one.severity.value) for one in found]
    return tuple(sorted(listed, key=lambda one: (rank(one.severity), one.code)))


def fleet_of(number: int, *hostile: str, controls: tuple[FleetControl, ...] | None = None) -> Fleet:
    """``number`` clusters, every sixth without an audit that can be used; ``hostile``: names of the first clusters, and their reasons."""
    listed = shipped() if controls is None else controls
    names = [*hostile, *(NAMES[one % len(NAMES)] + (f"-{one}" if one >= len(NAMES) else "") for one in range(number - len(hostile)))]
    clusters = [_cluster(place, name, listed, name in hostile) for place, name in enumerate(names)]
    return Fleet(clusters=tuple(clusters), controls=listed)


def _standing(counts: Counts | None) -> Standing:
    """How a control stands; where some results pass and some do not apply, these were set aside."""
    return standing_by(counts, counts.not_applicable if counts and counts.passed else 0, fit=True)


def _cluster(place: int, name: str, controls: tuple[FleetControl, ...], hostile: bool) -> FleetCluster:
    if place % 6 == 2:
        verdict, why = _LOST[place // 6 % len(_LOST)]
        taken = NEWEST - timedelta(days=3) if verdict in ("VOID", "ERROR") else None
        audit = None if verdict == "NO AUDIT" else "20261117T231600Z-0123456789abcdef"
        text = taken.isoformat() if taken else None
        return FleetCluster(name=name, verdict=verdict, why=(name if hostile else why,), audit_id=audit, evidence_at=text)
    pick = Random(place)
    found = {one.control_id: pick.choice(_RESULTS) for one in controls}
    cells = {
        one.control_id: Cell(standing=_standing(found[one.control_id]), counts=found[one.control_id], worst=one.severity)
        for one in controls[: None if place % 9 else -4]
    }
    failed = {
        severity: FailedAt(
            controls=1,
            results=sum(one.failed for one in counts),
            waived=sum(one.waived for one in counts),
            assessed=sum(one.assessed for one in counts),
        )
        for severity in dict.fromkeys(one.severity for one in controls)
        if (counts := [given for one in controls if one.severity == severity and (given := found[one.control_id])])
    }
    return FleetCluster(
        name=name,
        verdict=("FAILED", "FAILED", "INCOMPLETE", "PASSED")[place % 4],
        audited=True,
        why=((name,) if hostile else ("Critical controls could not be assessed: REP-06.",)) if place % 4 == 2 else (),
        cluster_id="mk5vR0-9Q1OaEwX7dA",
        audit_id="20261120T231600Z-0123456789abcdef",
        evidence_at=(NEWEST - timedelta(hours=7 * place)).isoformat(),
        assessed=870 + place,
        applicable=1000,
        failed=failed,
        cells=cells,
    )
