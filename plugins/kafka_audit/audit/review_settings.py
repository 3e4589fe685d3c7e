"""What the environment says about the human step after a failed audit: whether there is one, for how long, and who may answer."""

import os
from dataclasses import dataclass

from kafka_audit.errors import ConfigurationError

ON_FAIL_VARIABLE = "KAFKA_AUDIT_ON_FAIL"
HOURS_VARIABLE = "KAFKA_AUDIT_REVIEW_HOURS"
MAX_DAYS_VARIABLE = "KAFKA_AUDIT_REVIEW_MAX_DAYS"
REVIEWERS_VARIABLE = "KAFKA_AUDIT_REVIEWERS"
REVIEW = "review"

_MOST_HOURS, _MOST_DAYS = 24 * 90, 3660


@dataclass(frozen=True, kw_only=True)
class ReviewSettings:
    """``hours``: how long a review waits for an answer. ``max_days``: how far away the expiry of an accepted risk may be.

    ``reviewers``: (user id, name) of those who may answer; empty: everyone who may edit runs of the DAG.
    """

    hours: int = 72
    max_days: int = 90
    reviewers: tuple[tuple[str, str], ...] = ()


def review_settings() -> ReviewSettings | None:
    """The settings of this process; None when failed audits are not reviewed. ConfigurationError names what cannot be used."""
    wanted = os.environ.get(ON_FAIL_VARIABLE) or ""
    if not wanted:
        return None
    if wanted != REVIEW:
        raise ConfigurationError(f"{ON_FAIL_VARIABLE}: {wanted!r} is not known: write {REVIEW}, or unset it to review nothing")
    return ReviewSettings(
        hours=_number(HOURS_VARIABLE, ReviewSettings.hours, _MOST_HOURS),
        max_days=_number(MAX_DAYS_VARIABLE, ReviewSettings.max_days, _MOST_DAYS),
        reviewers=_reviewers(os.environ.get(REVIEWERS_VARIABLE) or ""),
    )


def _number(variable: str, default: int, most: int) -> int:
    text = os.environ.get(variable) or str(default)
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and 1 <= int(text) <= most):
        raise ConfigurationError(f"{variable}: {text!r:.80} is not usable: write a whole number from 1 to {most}")
    return int(text)


def _reviewers(text: str) -> tuple[tuple[str, str], ...]:
    """``id`` or ``id=name`` pairs, separated by commas."""
    found = []
    for pair in text.split(","):
        user_id, separator, name = (part.strip() for part in pair.partition("="))
        if not user_id and (separator or name):
            raise ConfigurationError(f"{REVIEWERS_VARIABLE}: {pair!r:.80} has no user id: write id, or id=name, separated by commas")
        if user_id:
            found.append((user_id, name or user_id))
    ids = [user_id for user_id, _ in found]
    if twice := sorted({one for one in ids if ids.count(one) > 1}):
        raise ConfigurationError(f"{REVIEWERS_VARIABLE}: lists {', '.join(twice)} twice: keep one")
    return tuple(found)
