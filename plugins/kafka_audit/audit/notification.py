"""The settings of notifications, which an Airflow process of this project reads from its environment: who is told, and of what."""

import os
import re
from dataclasses import dataclass
from datetime import timedelta

from kafka_audit.audit.installation import finish_minutes, stale_after
from kafka_audit.errors import ConfigurationError
from kafka_audit.findings import Severity

NOTIFY_VARIABLE = "KAFKA_AUDIT_NOTIFY"
SEVERITY_VARIABLE = "KAFKA_AUDIT_NOTIFY_SEVERITY"
WATCH_SCHEDULE_VARIABLE = "KAFKA_AUDIT_WATCH_SCHEDULE"

MOST_CONNECTIONS = 20
_CONNECTION = re.compile(r"[A-Za-z0-9_.-]{1,200}")


@dataclass(frozen=True, kw_only=True)
class NotifySettings:
    """Who is told (``connections``: ids of Airflow connections), of which failures (``least`` severity), and when a cluster is stale.

    ``stale_hours``: how old the newest audit and the newest evidence may be. ``finish_within``: how long an audit may take, or None.
    """

    connections: tuple[str, ...]
    least: Severity
    stale_hours: float
    finish_within: timedelta | None


def notifies() -> bool:
    """Whether ``KAFKA_AUDIT_NOTIFY`` is set. DAG files ask only this: a wrong value must stop messages and not audits."""
    return bool(os.environ.get(NOTIFY_VARIABLE, "").strip())


def watch_schedule() -> str:
    """When the watch runs: ``KAFKA_AUDIT_WATCH_SCHEDULE``, else every 15 minutes."""
    return os.environ.get(WATCH_SCHEDULE_VARIABLE) or "*/15 * * * *"


def notify_settings() -> NotifySettings:
    """The settings as they are set; ConfigurationError (exit 2) names the variable that cannot be used and the fix."""
    words = [one.value for one in Severity]
    severity = os.environ.get(SEVERITY_VARIABLE) or Severity.HIGH.value
    if severity not in words:
        raise ConfigurationError(f"{SEVERITY_VARIABLE}: {severity!r:.80} is not a severity: write one of {', '.join(words)}")
    return NotifySettings(
        connections=_connections(os.environ.get(NOTIFY_VARIABLE, "")),
        least=Severity(severity),
        stale_hours=stale_after() / timedelta(hours=1),
        finish_within=timedelta(minutes=finish_minutes()) or None,
    )


def _connections(value: str) -> tuple[str, ...]:
    named = tuple(part.strip() for part in value.split(",") if part.strip())
    example = "write ids of Airflow connections, separated by commas, such as ops_chat,ops_mail"
    if not named:
        raise ConfigurationError(f"{NOTIFY_VARIABLE}: names no connection: {example}, or unset it")
    for one in named:
        if not _CONNECTION.fullmatch(one):
            # A URL may hold a password, so the value is not shown.
            raise ConfigurationError(f"{NOTIFY_VARIABLE}: entry {named.index(one) + 1} is not the id of a connection: {example}")
    twice = sorted({one for one in named if named.count(one) > 1})
    if twice:
        raise ConfigurationError(f"{NOTIFY_VARIABLE}: names {', '.join(twice)} twice: name each connection once")
    if len(named) > MOST_CONNECTIONS:
        raise ConfigurationError(f"{NOTIFY_VARIABLE}: names {len(named)} connections; at most {MOST_CONNECTIONS} are allowed")
    return named
