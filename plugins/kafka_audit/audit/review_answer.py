"""What a person answered to a failed audit: read from what Airflow passes on, and checked before it is recorded as accepted."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from typing import Any

from kafka_audit.audit.review_settings import MAX_DAYS_VARIABLE
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.times import parse_time

ACCEPTED, REJECTED, UNANSWERED = "accepted", "rejected", "unanswered"
FIELDS = ("reason", "ticket", "expires", "owner")
"""What a person fills in."""

MOST_REASON, MOST_NAME = 2000, 100
"""The longest texts that are taken, in characters. A waiver's owner, approver and ticket have at most 100."""
_LEAST_REASON = 10
_ANYONE = "anonymous"
"""The user that Airflow's simple auth manager makes of everybody with SIMPLE_AUTH_MANAGER_ALL_ADMINS, in lower case."""


@dataclass(frozen=True, kw_only=True)
class Reviewer:
    """The user whose login answered, as Airflow names it."""

    id: str
    name: str

    @property
    def is_known(self) -> bool:
        """Whether the login says who it was: with ALL_ADMINS everyone is ``Anonymous``."""
        return self.id.strip().casefold() != _ANYONE

    @property
    def text(self) -> str:
        """For people and for the field ``approver`` of a waiver: name and id, or one of them if they are the same or too long together."""
        both = self.id if self.id == self.name or not self.name.strip() else f"{self.name} ({self.id})"
        return both if len(both) <= MOST_NAME else self.id[:MOST_NAME]

    def is_same(self, name: str) -> bool:
        """Whether somebody who was named in a form is this user, as far as names tell."""
        return _folded(name) in {_folded(self.id), _folded(self.name), _folded(self.text)}


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer. ``reviewer`` is None if nobody answered in time. ``expires`` is the text of the form until it is accepted."""

    decision: str
    reviewer: Reviewer | None
    decided_at: datetime
    reason: str
    ticket: str
    expires: str
    owner: str

    @property
    def expires_at(self) -> datetime:
        """The expiry in UTC; a date alone means 00:00 UTC of that day. ValueError when it is neither a date nor a time with its zone."""
        text = self.expires.strip()
        try:
            return datetime.combine(date.fromisoformat(text), time(), timezone.utc)
        except ValueError:
            moment = parse_time(text)
        if moment.tzinfo is None:
            raise ValueError("a time needs its zone")
        return moment.astimezone(timezone.utc)


def read_answer(kept: Mapping[str, Any]) -> Answer:
    """The answer as the task ``review`` kept it; IntegrityError when it is none."""
    try:
        given, user = dict(kept["params_input"]), kept["responded_by_user"]
        chosen, timed_out = list(kept["chosen_options"]), bool(kept["timedout"])
        decided_at = parse_time(kept["responded_at"])
        reviewer = Reviewer(id=_clean(user["id"]), name=_clean(user["name"])) if user is not None else None
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(f"the answer cannot be read ({problem!r:.200}): clear the task review, which asks again") from problem
    if decided_at.tzinfo is None:
        raise IntegrityError("the answer has no time with a zone: clear the task review, which asks again")
    approved = chosen == ["Approve"]
    decision = UNANSWERED if timed_out and not approved else ACCEPTED if approved else REJECTED
    texts = {name: _clean(given.get(name)) for name in FIELDS}
    return Answer(decision=decision, reviewer=reviewer, decided_at=decided_at, **texts)


def check_acceptance(answer: Answer, max_days: int) -> None:
    """ConfigurationError that names everything that keeps an answer from being recorded as an acceptance, and how to answer again."""
    problems = [
        *_who(answer),
        *_text("reason", answer.reason, _LEAST_REASON, MOST_REASON),
        *_text("ticket", answer.ticket, 1, MOST_NAME),
        *_text("owner", answer.owner, 1, MOST_NAME),
        *_when(answer, max_days),
    ]
    if problems:
        listed = "\n  ".join(problems)
        raise ConfigurationError(
            f"the risk was not accepted, because the answer cannot be used:\n  {listed}\nNothing was recorded, and the verdict stays "
            "FAILED. To answer again, clear the task `review` with its downstream tasks, and correct these fields"
        )


def _who(answer: Answer) -> list[str]:
    if answer.reviewer is None:
        return ["reviewer: Airflow does not say who approved, so nobody did: approve with a login of your own"]
    if answer.reviewer.is_same(answer.owner):
        return [f"owner: {answer.owner!r:.120} is the reviewer; name the owner of the risk, as nobody approves a waiver of their own"]
    return []


def _text(name: str, text: str, least: int, most: int) -> list[str]:
    if len(text) < least:
        return [f"{name}: " + ("is empty" if not text else f"has {len(text)} characters; write at least {least}")]
    return [f"{name}: has {len(text):,} characters; write at most {most:,}"] if len(text) > most else []


def _when(answer: Answer, max_days: int) -> list[str]:
    like = "write a date like 2027-01-31 (it ends at 00:00 UTC of that day), or a time with its zone like 2027-01-31T12:00:00Z"
    if not answer.expires:
        return [f"expires: is empty; {like}"]
    try:
        at = answer.expires_at
    except (ValueError, OverflowError):
        return [f"expires: {answer.expires!r:.80} is not a date; {like}"]
    if at.date() <= answer.decided_at.astimezone(timezone.utc).date():
        return [f"expires: {at.isoformat()} is not after the day of the answer in UTC; {like}"]
    if at > answer.decided_at + timedelta(days=max_days):
        return [f"expires: {at.isoformat()} is more than {max_days} days away ({MAX_DAYS_VARIABLE}); write an earlier date"]
    return []


def _clean(value: object) -> str:
    """The text of a field, empty if there is none. Half a character of a broken text has no UTF-8 and becomes a question mark."""
    return str("" if value is None else value).encode("utf-8", "replace").decode("utf-8").strip()


def _folded(name: str) -> str:
    return " ".join(name.split()).casefold()
