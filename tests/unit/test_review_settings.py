"""The environment variables of the human step after a failed audit."""

import pytest

from kafka_audit.audit.review_settings import ReviewSettings, review_settings
from kafka_audit.errors import ConfigurationError

NAMES = ("ON_FAIL", "REVIEW_HOURS", "REVIEW_MAX_DAYS", "REVIEWERS")


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in NAMES:
        monkeypatch.delenv(f"KAFKA_AUDIT_{name}", raising=False)


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_nothing_is_reviewed_whatever_else_is_set(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_REVIEW_HOURS", "many")
    if value is not None:
        monkeypatch.setenv("KAFKA_AUDIT_ON_FAIL", value)
    assert review_settings() is None


def test_the_defaults_are_three_days_of_waiting_and_ninety_of_validity_and_anyone_may_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_ON_FAIL", "review")
    assert review_settings() == ReviewSettings(hours=72, max_days=90, reviewers=())


def test_hours_days_and_reviewers_are_the_installations(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in zip(NAMES, ("review", "8", "30", " 7 = Rita Reviewer, risk@example.com,"), strict=True):
        monkeypatch.setenv(f"KAFKA_AUDIT_{name}", value)
    assert review_settings() == ReviewSettings(
        hours=8, max_days=30, reviewers=(("7", "Rita Reviewer"), ("risk@example.com", "risk@example.com"))
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ON_FAIL", "ask"),
        ("REVIEW_HOURS", "0"),
        ("REVIEW_HOURS", "\u0663"),
        ("REVIEW_HOURS", "1.5"),
        ("REVIEW_MAX_DAYS", "-1"),
        ("REVIEW_MAX_DAYS", "9" * 5000),
        ("REVIEWERS", "=Rita"),
        ("REVIEWERS", "7,7=Rita"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_with_its_variable(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_ON_FAIL", "review")
    monkeypatch.setenv(f"KAFKA_AUDIT_{name}", value)
    with pytest.raises(ConfigurationError, match=f"^KAFKA_AUDIT_{name}: "):
        review_settings()
