"""The quiet hours of an SLA in milliseconds."""

from datetime import datetime, timezone

from kafka_audit.policy.slas import LagSla


def quiet_ms(sla: LagSla, first_ms: int, last_ms: int) -> list[tuple[int, int]]:
    """The quiet times between two times, oldest first; all in epoch milliseconds."""
    first, last = (datetime.fromtimestamp(ms / 1000, timezone.utc) for ms in (first_ms, last_ms))
    return [(round(begins.timestamp() * 1000), round(ends.timestamp() * 1000)) for begins, ends in sla.quiet_spans(first, last)]
