"""``waivers.yaml``: failures that somebody accepts until a date. A waived failure stays a failure in the report."""

import re
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta, timezone
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from kafka_audit.errors import IntegrityError
from kafka_audit.input_files.fields import Code, Date, Moment, Name, Pattern, Strict, repeated
from kafka_audit.input_files.glob import matches
from kafka_audit.times import parse_time

_BRACKET = re.compile(r"\[[*?[]\]|\[")
_FURTHEST_EAST = timedelta(hours=14)


class WaiverState(StrEnum):
    """Whether a waiver is valid at a time; only a waiver in force covers failures."""

    IN_FORCE = "in force"
    EXPIRED = "expired"
    NOT_YET_APPROVED = "not yet approved"


class Waiver(Strict):
    """One accepted failure: of a control, on the resources that a glob matches, until ``expires``; the approver is not the owner.

    In ``resource``, brackets are ordinary characters, because resources have some (``billing [payments]``): a resource that is copied
    from a report names itself. Only ``[*]``, ``[?]`` and ``[[]`` stand for the one character in them.
    """

    id: Name
    control: Code
    resource: Pattern
    owner: Name
    approver: Name
    ticket: Name
    justification: Annotated[str, Field(min_length=10)]
    approved_on: Date
    expires: Moment

    @model_validator(mode="after")
    def _somebody_else_approved_it(self) -> "Waiver":
        if self.owner.strip().casefold() == self.approver.strip().casefold():
            raise ValueError("approver is the owner: another person must approve it")
        if self.expires.date() <= self.approved_on:
            raise ValueError("expires is not after approved_on: write a date after the approval, in UTC, like 2027-01-31T00:00:00Z")
        return self

    @property
    def pattern(self) -> str:
        """The glob that the resource must match."""
        return _BRACKET.sub(lambda found: "[[]" if found[0] == "[" else found[0], self.resource)

    def state(self, at: datetime) -> WaiverState:
        """The state at an aware datetime."""
        if at >= self.expires:
            return WaiverState.EXPIRED
        return WaiverState.NOT_YET_APPROVED if is_future(self.approved_on, at) else WaiverState.IN_FORCE

    def covers(self, code: str | None, resource: str | None) -> bool:
        """Whether the waiver accepts a failure of that control on that resource."""
        return code == self.control and resource is not None and matches(self.pattern, resource)


class WaiverFile(Strict):
    """The content of ``waivers.yaml``; the first waiver that matches a failure covers it."""

    version: Literal[1]
    waivers: list[Waiver] = Field(default_factory=list)

    @model_validator(mode="after")
    def _ids_differ(self) -> "WaiverFile":
        twice = repeated(waiver.id for waiver in self.waivers)
        if twice:
            raise ValueError(f"waivers: {twice} appear twice: give each its own id")
        return self


def is_future(day: date, at: datetime) -> bool:
    """Whether a day has not yet begun anywhere on Earth: dates in a policy have no time zone."""
    return day > (at.astimezone(timezone.utc) + _FURTHEST_EAST).date()


def in_force(waivers: Sequence[Waiver], at: datetime) -> list[Waiver]:
    """The waivers in force at an aware datetime, in the order of the file."""
    return [waiver for waiver in waivers if waiver.state(at) is WaiverState.IN_FORCE]


def began(run: Mapping[str, Any]) -> datetime:
    """When an audit began, from its ``run.json``. Waivers are judged at this time, even if a step is repeated much later."""
    try:
        found = parse_time(run.get("started_at"))
    except ValueError as problem:
        raise IntegrityError(f"run.json has no usable started_at ({run.get('started_at')!r}): start the audit again") from problem
    if found.tzinfo is None:
        raise IntegrityError(f"run.json has a started_at without a time zone ({run.get('started_at')!r}): start the audit again")
    return found
