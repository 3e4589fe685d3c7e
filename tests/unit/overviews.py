"""Overviews of audits, as their indexes have them, without audits: any verdict, any names, and sealed folders that hold nothing else."""

from datetime import datetime, timedelta, timezone
from typing import Any

from kafka_audit.index.overview import (
    OVERVIEW,
    Budget,
    Changes,
    ControlLine,
    Failed,
    FailsSince,
    GroupCounts,
    Loss,
    LossTotals,
    Overview,
    PastAudit,
    SilentBroker,
    Statuses,
    WaiverLine,
)
from kafka_audit.report.comparison import Change, ChangedFinding, TrendPoint
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, new_id, seal_audit

NOW = datetime(2026, 11, 20, 23, 15, tzinfo=timezone.utc)
DAG = "kafka_reliability_audit"
EXIT_CODES = {"PASSED": 0, "ERROR": 1, "FAILED": 3, "INCOMPLETE": 4, "VOID": 4}
_HOUR = 3_600_000


def audit_id(when: datetime) -> str:
    return new_id(when, "audit")


def overview(cluster: str = "orders-prod", *, age_hours: float = 1, verdict: str = "FAILED", said: str = "", **facts: Any) -> Overview:
    """An overview of an audit that began ``age_hours`` before NOW; ``said``: the words in place of every name from the cluster."""
    started = NOW - timedelta(hours=age_hours)
    void, passed = verdict == "VOID", verdict == "PASSED"
    name = said or "billing"
    made: dict[str, Any] = {
        "audit_id": audit_id(started),
        "cluster": cluster,
        "cluster_id": "5L6g3nShT-eMCtK--X86sw",
        "dag_id": f"{DAG}__{cluster}",
        "run_id": f"scheduled__{started.isoformat()}",
        "snapshot_id": new_id(started, "snapshot"),
        "started_at": started.isoformat(),
        "evidence_at": started.isoformat(),
        "generated_at": (started + timedelta(minutes=2)).isoformat(),
        "verdict": verdict,
        "exit_code": EXIT_CODES[verdict],
        "summary": f"The audit ended {verdict}. {said}",
        "reasons": () if passed else (f"3 critical results fail, which the policy does not allow. {said}",),
        "reason_count": 0 if passed else 1,
        "assessed": None if void else 9_431,
        "applicable": None if void else 9_672,
        "failed": None
        if void
        else {}
        if passed
        else {"critical": _failed(3), "high": _failed(41), "medium": _failed(7), "low": _failed(1)},
        "statuses": None if void else Statuses(passed=9_379, failed=0 if passed else 52, errored=0, not_assessed=241, not_applicable=812),
        "loss": None if void else LossTotals(records=0 if passed else 48_211, partitions=3, groups=1, within_a_day=0 if passed else 5),
        "budget": None if void else budget(name, 0.31 if passed else 1.42),
        "targets": None if void else 4,
        "targets_missed": None if void else 0 if passed else 1,
        "trend": trend(started),
        "changes": None if void else changes(name, started),
        "groups": None
        if void
        else GroupCounts(total=128, by_status={"LOST": 1, "LOSING": 2, "STALLED": 4, "OK": 121}, by_state={"Stable": 128}),
        "next_losses": () if void or passed else tuple(loss(name, hours) for hours in (2, 9, 30)),
        "happened_losses": () if void or passed else (loss(name, None, lost=48_211),),
        "waivers": (waiver("wv-01", 12, name), waiver("wv-02", 200, name), waiver("wv-03", -3, name), waiver("wv-04", 90, name, 0)),
        "waiver_count": 4,
        "brokers": 6,
        "silent_brokers": () if passed else (SilentBroker(broker_id=4, host=name, port=9092, rack=None, alive=False),),
        "collection_errors": 0,
        "controls": controls(verdict, started, said),
        "past": (PastAudit(audit_id=audit_id(started), started_at=started.isoformat(), verdict=verdict),),
        "not_written": (),
    }
    return Overview(**{**made, **facts})


def _failed(results: int) -> Failed:
    return Failed(controls=1 + results // 20, results=results, waived=results // 7)


def budget(group_id: str, used: float) -> Budget:
    """An error budget of 43.2 minutes, of which the share ``used`` is used."""
    minutes = {"allowed_minutes": 43.2, "used_minutes": 43.2 * used, "left_minutes": 43.2 * (1 - used)}
    return Budget(
        group_id=group_id,
        sla="payments-lag",
        target_percent=99.9,
        window_days=30,
        availability_percent=99.85,
        target_met=used <= 1,
        **minutes,
    )


def trend(newest: datetime, *, audits: int = 24) -> tuple[TrendPoint, ...]:
    """One audit a day; one of them is void."""
    points = []
    for number in range(audits):
        when = newest - timedelta(days=audits - 1 - number)
        known = number != audits // 2
        figures = {"critical": number % 4, "high": 30 + number % 9, "medium": 7, "low": 1}
        points.append(
            TrendPoint(
                audit_id=audit_id(when),
                started_at=when.isoformat(),
                verdict="FAILED" if known else "VOID",
                failed_by_severity=figures if known else None,
                coverage=0.93 + number / 500 if known else None,
                lost_records=number * 100 if known else None,
                availability_percent=99.2 + number / 40 if known and number > 5 else None,
            )
        )
    return tuple(points)


def changes(resource: str, started: datetime) -> Changes:
    listed = tuple(
        ChangedFinding(
            change=change,
            control_id="replication_factor_sufficient",
            code="TOP-01",
            title="The replication factor is sufficient",
            subject="topic",
            resource=f"{resource}-{number}",
            severity=None if change is Change.RESOLVED else "high",
            severity_before="high" if change is Change.RESOLVED else None,
            observed="1",
            observed_before="3",
        )
        for change, count in ((Change.NEW, 3), (Change.RESOLVED, 2))
        for number in range(count)
    )
    before = started - timedelta(days=1)
    counts = {"new": 3, "worse": 0, "unchanged": 47, "resolved": 2, "incomparable": 0}
    return Changes(compared_with=audit_id(before), compared_with_at=before.isoformat(), counts=counts, listed=listed, notes=())


def loss(group_id: str, hours: float | None, lost: int = 0) -> Loss:
    """A partition that lost records, or loses unread ones in so many hours."""
    by = "retention.ms" if hours is not None else None
    left = int(hours * _HOUR) if hours is not None else None
    status = "LOST" if lost else "LOSING"
    return Loss(
        group_id=group_id, topic="payments", partition=3, status=status, lag=912_000, lost=lost, time_to_loss_ms=left, time_to_loss_by=by
    )


def waiver(waiver_id: str, days: float, resource: str = "billing", covered: int = 2) -> WaiverLine:
    """A waiver that expires so many days after NOW."""
    status = "expired" if days < 0 else "used" if covered else "unused"
    words = {"owner": "team-payments", "approver": "sre-lead", "ticket": "OPS-1742", "justification": f"{resource} moves to new brokers"}
    expires, approved = (NOW + timedelta(days=days)).isoformat(), (NOW - timedelta(days=60)).isoformat()
    return WaiverLine(
        id=waiver_id, control="TOP-01", resource=resource, approved_on=approved, expires=expires, status=status, covered=covered, **words
    )


CONTROLS = (
    ("unclean_leader_election_disabled", "TOP-04", "Unclean leader election is disabled", "topic", "critical"),
    ("replication_factor_sufficient", "TOP-01", "The replication factor is sufficient", "topic", "high"),
    ("lag_within_sla", "CON-01", "Groups keep their lag SLA", "group", "high"),
    ("rack_awareness_used", "BRK-07", "Replicas are spread over racks", "topic", "medium"),
    ("log_dirs_balanced", "BRK-12", "Log directories are evenly filled", "broker", "low"),
)
_STANDINGS = ("fail", "fail_waived", "not_assessed", "pass", "not_applicable")


def controls(verdict: str, started: datetime, said: str = "") -> tuple[ControlLine, ...]:
    """Five controls: of a failed audit the first fails, the second is waived; of a void one nothing is known."""
    standings = {"VOID": ("unknown",) * 5, "PASSED": ("pass",) * 5}.get(verdict, _STANDINGS)
    since = FailsSince(audit_id=audit_id(started), started_at=(started - timedelta(days=9)).isoformat(), earlier=False)
    made = []
    for (control_id, code, title, subject, severity), standing in zip(CONTROLS, standings, strict=True):
        fails = standing.startswith("fail")
        counts = Statuses(passed=20, failed=3 * fails, errored=0, not_assessed=standing == "not_assessed", not_applicable=0)
        line = {"control_id": control_id, "code": code, "title": f"{title}{said}", "subject": subject, "severity": severity}
        facts = {"statuses": None if verdict == "VOID" else counts, "waived": 3 if standing == "fail_waived" else 0}
        history = {"fails_since": since if fails else None, "history": "F" if fails else "P", "worst": severity if fails else None}
        made.append(ControlLine(**line, **facts, **history, evidence_class="observed", standing=standing))
    return tuple(made)


def sealed(root: EvidenceRoot, made: Overview) -> Audit:
    """A sealed audit with nothing in it but its run file and its overview."""
    audit = begun(root, made)
    write_json(audit.path / OVERVIEW, made.model_dump(mode="json"))
    seal_audit(root, made.cluster, made.audit_id, {})
    return audit


def begun(root: EvidenceRoot, made: Overview) -> Audit:
    """An audit that was begun and not sealed."""
    audit = root.audit(made.cluster, made.audit_id)
    facts = {"audit_id": made.audit_id, "dag_id": made.dag_id, "run_id": made.run_id, "cluster": made.cluster}
    write_json(audit.run_file, facts)
    return audit
