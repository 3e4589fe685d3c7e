"""Overviews of audits and what is observed of a cluster, small, for the tests of notifications."""

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from kafka_audit.index.news_item import Observed
from kafka_audit.index.overview import Burn, Changes, ControlLine, Failed, FailsSince, Loss, LossTotals, Overview, PastAudit
from kafka_audit.report.comparison import Change, ChangedFinding
from kafka_audit.store.layout import new_id

CLUSTER = "orders"
NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)


def audit_id(day: int) -> str:
    return new_id(NOON + timedelta(days=day), f"audit {day}")


def changed(resource: str, severity: str | None = "high", change: Change = Change.NEW, **more: str) -> ChangedFinding:
    given = {"control_id": "topic_replicated", "code": "TOP-01", "title": "Topics are replicated", "subject": "topic", **more}
    before = "medium" if change == Change.WORSE else None
    return ChangedFinding(
        change=change, resource=resource, severity=severity, severity_before=before, observed="1", observed_before=None, **given
    )


def changes(*found: ChangedFinding, counts: dict[str, int] | None = None) -> Changes:
    counted = {change.value: sum(one.change == change for one in found) for change in Change}
    return Changes(compared_with=audit_id(0), compared_with_at="", counts={**counted, **(counts or {})}, listed=found, notes=())


def control(fails_since: FailsSince | None) -> ControlLine:
    """The line of the control of :func:`changed`."""
    words = {"control_id": "topic_replicated", "code": "TOP-01", "title": "Topics are replicated", "subject": "topic"}
    return ControlLine(
        **words,
        **{"severity": "high", "evidence_class": "observed", "standing": "fail", "statuses": None, "waived": 0, "worst": "high"},
        fails_since=fails_since,
        history="F",
    )


def loss(records: int | None, within_a_day: int | None = 0) -> LossTotals:
    return LossTotals(records=records, partitions=1, groups=1, within_a_day=within_a_day)


def lost(partition: int, records: int | None = None, hours: float | None = None, group_id: str = "billing") -> Loss:
    to_loss = round(hours * 3_600_000) if hours is not None else None
    return Loss(
        group_id=group_id,
        topic="payments",
        partition=partition,
        status=None,
        lag=9,
        lost=records,
        time_to_loss_ms=to_loss,
        time_to_loss_by=None,
    )


def burn(rate: float | None, group_id: str = "billing", threshold: float = 6.0) -> Burn:
    return Burn(
        group_id=group_id, sla="interactive", target_percent=99.5, window_hours=6, short_window_hours=0.5, burn=rate, threshold=threshold
    )


def overview(day: int = 1, verdict: str = "PASSED", past: Sequence[int] = (), **fields: object) -> Overview:
    """The overview of the audit of a day. Nothing is known to fail, to be lost or to have changed, unless ``fields`` say so."""
    given: dict[str, object] = {
        **dict.fromkeys(("cluster_id", "evidence_at", "assessed", "applicable", "statuses", "budget", "targets", "targets_missed")),
        **dict.fromkeys(("changes", "groups", "brokers")),
        **dict.fromkeys(("trend", "next_losses", "happened_losses", "waivers", "silent_brokers", "controls", "not_written"), ()),
        **dict.fromkeys(("waiver_count", "collection_errors", "reason_count", "exit_code"), 0),
        **{"dag_id": "kafka_reliability_audit", "run_id": "manual", "snapshot_id": audit_id(day), "summary": "", "reasons": ()},
        **{"failed": {}, "loss": loss(0), "started_at": "", "generated_at": "", "audit_id": audit_id(day), "cluster": CLUSTER},
        "past": tuple(PastAudit(audit_id=audit_id(one), started_at="", verdict="PASSED") for one in past),
        "verdict": verdict,
    }
    return Overview.model_validate({**given, **fields})


def failed(**severities: int) -> dict[str, Failed]:
    return {name: Failed(controls=1, results=number, waived=0) for name, number in severities.items()}


def observed(of: Overview | None = None, **fields: object) -> Observed:
    """A cluster whose newest audit and evidence are an hour old."""
    at = NOON + timedelta(days=1)
    given = {"cluster": CLUSTER, "now": at + timedelta(hours=1), "audit_at": at, "evidence_at": at, "overview": of}
    return Observed(**{**given, **fields})  # type: ignore[arg-type]
