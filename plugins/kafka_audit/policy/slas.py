"""``slas.yaml``: how far behind consumer groups may be, for how much of the time, and in which quiet hours no limit applies."""

from collections.abc import Set
from datetime import datetime, time, timedelta, timezone
from functools import cache
from typing import Annotated, Literal
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field, StringConstraints, field_validator, model_validator

from kafka_audit.input_files.fields import Name, Pattern, Rules, Strict, repeated
from kafka_audit.input_files.glob import covers, hidden
from kafka_audit.policy.tiers import MOST_SECONDS, refuse_long

_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
WINDOW_DAYS = 30
"""The window of an SLA that names none, in days."""
Span = tuple[datetime, datetime]
Day = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]


TimeOfDay = Annotated[str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]$")]


@cache
def _timezones() -> Set[str]:
    return available_timezones()  # reads the machine's whole database


class Breach(Strict):
    """The SLA is broken if ``samples`` of the newest ``of`` samples are outside its limits."""

    samples: int = Field(default=1, ge=1)
    of: int = Field(default=1, ge=1, le=288)

    @model_validator(mode="after")
    def _can_happen(self) -> "Breach":
        if self.samples > self.of:
            raise ValueError(f"samples {self.samples} is above of {self.of}, so nothing could ever breach it: lower samples or raise of")
        return self


class Availability(Strict):
    """The percentage of the window's minutes that must lie within the limits."""

    target_percent: float = Field(gt=0, le=100)
    window_days: int = Field(default=WINDOW_DAYS, ge=1, le=400)


class QuietHours(Strict):
    """Hours of weekdays in which the SLA does not apply; if ``to`` is not after ``from``, it is on the next day."""

    days: list[Day] = Field(min_length=1)
    start: TimeOfDay = Field(alias="from")
    end: TimeOfDay = Field(alias="to")
    timezone: str = "UTC"

    @field_validator("timezone")
    @classmethod
    def _is_known(cls, name: str) -> str:
        if name not in _timezones():
            raise ValueError("is not an IANA time zone that this machine knows: write one like Europe/Berlin")
        return name

    @model_validator(mode="after")
    def _each_day_once(self) -> "QuietHours":
        if len(set(self.days)) < len(self.days):
            raise ValueError("days: a day appears twice: keep one")
        return self

    def spans(self, first: datetime, last: datetime) -> list[Span]:
        """The quiet times between two aware datetimes, by the clocks of their time zone, oldest first."""
        zone, start, end = ZoneInfo(self.timezone), time.fromisoformat(self.start), time.fromisoformat(self.end)
        day, found = first.astimezone(zone).date() - timedelta(days=1), []
        while day <= last.astimezone(zone).date():
            if _DAYS[day.weekday()] in self.days:
                ends_on = day if start < end else day + timedelta(days=1)
                begins = datetime.combine(day, start, zone).astimezone(timezone.utc)
                found.append((max(begins, first), min(datetime.combine(ends_on, end, zone).astimezone(timezone.utc), last)))
            day += timedelta(days=1)
        return [span for span in found if span[0] < span[1]]


class LagSla(Strict):
    """A lag SLA of the group partitions that its group pattern, topic pattern and tier match.

    ``tier``: the stricter of the group's and the topic's tier. ``max_lag_records`` limits the sum over all of a group's partitions that
    the rule covers; ``max_lag_seconds`` and ``max_no_progress_seconds`` (the commit does not move while records wait) limit each of
    them. A limit that is null does not apply.
    """

    pattern: Pattern
    topics: Pattern = "*"
    tier: Name | None = None
    name: Name
    max_lag_records: int | None = Field(default=None, ge=0)
    max_lag_seconds: int | None = Field(default=None, ge=0, le=MOST_SECONDS)
    max_no_progress_seconds: int | None = Field(default=None, ge=1, le=MOST_SECONDS)
    breach: Breach = Breach()
    availability: Availability | None = None
    quiet_hours: list[QuietHours] = Field(default_factory=list)

    @field_validator("name")
    @classmethod
    def _can_stand_in_brackets(cls, name: str) -> str:
        if "[" in name or "]" in name:
            raise ValueError("contains a bracket, but results are named `group [name]`: remove the bracket")
        return name

    @model_validator(mode="after")
    def _limits_something(self) -> "LagSla":
        if self.max_lag_records is None and self.max_lag_seconds is None and self.max_no_progress_seconds is None:
            raise ValueError("limits nothing: add max_lag_records, max_lag_seconds or max_no_progress_seconds")
        return self

    @property
    def is_partial(self) -> bool:
        """Whether the rule may cover only some of a group's topics."""
        return self.topics != "*" or self.tier is not None

    @property
    def window_days(self) -> int:
        """The length of the window over which minutes are counted, in days."""
        return self.availability.window_days if self.availability is not None else WINDOW_DAYS

    def quiet_spans(self, first: datetime, last: datetime) -> list[Span]:
        """The quiet times between two aware datetimes, oldest first; they do not overlap."""
        found: list[Span] = []
        for begins, ends in sorted(span for hours in self.quiet_hours for span in hours.spans(first, last)):
            if found and begins <= found[-1][1]:
                found[-1] = (found[-1][0], max(ends, found[-1][1]))
            else:
                found.append((begins, ends))
        return found

    def hides(self, later: "LagSla") -> bool:
        """Whether this rule already matches every group partition that ``later`` matches; False also if that cannot be decided."""
        return covers(self.pattern, later.pattern) and covers(self.topics, later.topics) and self.tier in (None, later.tier)


class SlaFile(Strict):
    """The content of ``slas.yaml``; the first rule that matches a group partition decides."""

    version: Literal[1]
    groups: list[LagSla] = Rules

    @model_validator(mode="after")
    def _each_can_decide(self) -> "SlaFile":
        refuse_long("groups", (pattern for rule in self.groups for pattern in (rule.pattern, rule.topics)))
        if found := hidden(self.groups, LagSla.hides):
            later, earlier = map(_rule, found)
            raise ValueError(
                f"groups: {later} can never decide, because {earlier} before it matches the same names: put the narrower one first"
            )
        return self

    @model_validator(mode="after")
    def _partial_rules_are_told_apart(self) -> "SlaFile":
        twice = repeated(rule.name for rule in self.groups if rule.is_partial)
        if twice:
            raise ValueError(f"groups: {twice} name several rules with topics or a tier: give each its own name")
        return self


def _rule(rule: LagSla) -> str:
    more = [f"topics {rule.topics!r}"] if rule.topics != "*" else []
    more += [f"tier {rule.tier!r}"] if rule.tier is not None else []
    return " with ".join([f"pattern {rule.pattern!r}", *more])
