"""The settings of notifications: defaults, and an error that names the variable and the fix."""

from datetime import timedelta

import pytest

from kafka_audit.audit.notification import notifies, notify_settings, watch_schedule
from kafka_audit.errors import ConfigurationError
from kafka_audit.findings import Severity


def test_only_the_connections_have_to_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KAFKA_AUDIT_FINISH_WITHIN", raising=False)  # the DAGs of the tests have no deadlines
    assert not notifies()
    monkeypatch.setenv("KAFKA_AUDIT_NOTIFY", " ops_chat, ops.mail ,")
    assert notifies()
    found = notify_settings()
    assert (found.connections, found.least, found.stale_hours) == (("ops_chat", "ops.mail"), Severity.HIGH, 26.0)
    assert (found.finish_within, watch_schedule()) == (timedelta(minutes=90), "*/15 * * * *")


def test_each_setting_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {
        "NOTIFY": "chat",
        "NOTIFY_SEVERITY": "critical",
        "STALE_HOURS": "1.5",
        "FINISH_WITHIN": "90",
        "WATCH_SCHEDULE": "@hourly",
    }
    for name, value in said.items():
        monkeypatch.setenv(f"KAFKA_AUDIT_{name}", value)
    found = notify_settings()
    assert (found.least, found.stale_hours, found.finish_within) == (Severity.CRITICAL, 1.5, timedelta(minutes=90))
    assert watch_schedule() == "@hourly"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("NOTIFY", " , ", "KAFKA_AUDIT_NOTIFY: names no connection: write ids of Airflow connections"),
        ("NOTIFY", "chat,chat", "KAFKA_AUDIT_NOTIFY: names chat twice"),
        ("NOTIFY", ",".join(f"c{one}" for one in range(21)), "names 21 connections; at most 20"),
        ("NOTIFY_SEVERITY", "urgent", "KAFKA_AUDIT_NOTIFY_SEVERITY: 'urgent' is not a severity: write one of critical, high"),
        ("STALE_HOURS", "soon", "KAFKA_AUDIT_STALE_HOURS: 'soon' is not usable: write a number of hours above 0"),
        ("STALE_HOURS", "0", "KAFKA_AUDIT_STALE_HOURS"),
        ("STALE_HOURS", "nan", "KAFKA_AUDIT_STALE_HOURS"),
        ("STALE_HOURS", "inf", "KAFKA_AUDIT_STALE_HOURS"),
        ("STALE_HOURS", "87841", "above 0, at most 87840"),
        ("FINISH_WITHIN", "-5", "KAFKA_AUDIT_FINISH_WITHIN"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named_with_the_fix(monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_NOTIFY", "chat")
    monkeypatch.setenv(f"KAFKA_AUDIT_{name}", value)
    with pytest.raises(ConfigurationError) as refused:
        notify_settings()
    assert said in str(refused.value)


def test_an_address_in_place_of_a_connection_is_refused_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_NOTIFY", "chat,slack://token-a/token-b")
    with pytest.raises(ConfigurationError, match="entry 2 is not the id of a connection") as refused:
        notify_settings()
    assert "token" not in str(refused.value)
