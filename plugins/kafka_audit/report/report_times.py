"""The times of an audit as moments in UTC, for formats that have fields for them."""

from dataclasses import dataclass
from datetime import datetime, timezone

from kafka_audit.report.model import Report
from kafka_audit.times import parse_time


@dataclass(frozen=True, kw_only=True)
class ReportTimes:
    """``taken``: the end of the snapshot, when the evidence was true; the report's own time where that is not known. All in UTC."""

    started: datetime
    snapshot_started: datetime
    taken: datetime
    generated: datetime


def times_of(report: Report) -> ReportTimes:
    """The times of a report. What the audit did not record, or not as a time, is replaced by the next moment that is known."""
    generated = _utc(report.generated_at)
    taken = moment(report.collection.finished_at) or moment(report.collection.started_at) or generated
    snapshot_started = moment(report.collection.started_at) or taken
    return ReportTimes(
        started=moment(report.started_at) or snapshot_started, snapshot_started=snapshot_started, taken=taken, generated=generated
    )


def zulu(when: datetime) -> str:
    """``2026-11-20T23:15:04.000Z``."""
    return when.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.") + f"{when.microsecond // 1000:03}Z"


def epoch_ms(when: datetime) -> int:
    """Milliseconds since 1970, whole."""
    return int(when.timestamp()) * 1000 + when.microsecond // 1000


def moment(text: str) -> datetime | None:
    """An ISO time as a moment in UTC, which is also what one without a zone is in; None if it is no time."""
    try:
        return _utc(parse_time(text)) if text else None
    except (ValueError, OverflowError):
        return None


def _utc(when: datetime) -> datetime:
    aware = when if when.tzinfo else when.replace(tzinfo=timezone.utc)
    return aware.astimezone(timezone.utc)
