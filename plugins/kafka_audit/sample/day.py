"""One day of a sample cluster: when its audit ran, and how its groups stand by the story."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from kafka_audit.sample.story import LAST, LIMIT_RECORDS, SLA_TARGETS, LossStory, SampleCluster, window_days
from kafka_audit.store.layout import new_id

_MINUTES = 15
"""How often the lag is looked at."""
_STEPS_A_DAY = 24 * 60 // _MINUTES
_LATE = timedelta(hours=3)
_BEFORE_NOW = timedelta(minutes=20)
_PER_DAY = 10_000
"""Records that are written to each partition in a day."""


@dataclass(frozen=True, kw_only=True)
class Availability:
    """The minutes of an SLA's window, and what follows from them; percent: None if nothing is known; target: None if none is set."""

    target: float | None
    minutes_in: int
    minutes_out: int
    unknown: int

    @property
    def percent(self) -> float | None:
        known = self.minutes_in + self.minutes_out
        return round(100 * self.minutes_in / known, 3) if known else None

    @property
    def allowed(self) -> float | None:
        if self.target is None:
            return None
        return round((self.minutes_in + self.minutes_out + self.unknown) * (100 - self.target) / 100, 1)

    @property
    def met(self) -> bool | None:
        """As CON-14 judges: overspent fails; else 95 % of the minutes must be known. None also without a target."""
        known = self.minutes_in + self.minutes_out
        if self.target is None or self.allowed is None:
            return None
        if self.minutes_out > self.allowed:
            return False
        return None if known * 100 < 95 * (known + self.unknown) else (self.percent or 0) >= self.target


@dataclass(frozen=True, kw_only=True)
class Day:
    """Day ``number`` of a cluster's story, told at ``now``, which is shortly after the audit of the last day began."""

    cluster: SampleCluster
    number: int
    now: datetime

    @property
    def began(self) -> datetime:
        """When the audit began; the snapshot was begun two seconds later."""
        return self.now.replace(microsecond=0) - _BEFORE_NOW - timedelta(days=LAST - self.number)

    @property
    def taken(self) -> datetime:
        return self.began + timedelta(seconds=2)

    @property
    def judged(self) -> datetime:
        return self.taken + (_LATE if self.number in self.cluster.late else timedelta(seconds=25))

    @property
    def reported(self) -> datetime:
        return self.judged + timedelta(seconds=15)

    @property
    def audit_id(self) -> str:
        return new_id(self.began, f"sample audit of {self.cluster.name}")

    @property
    def snapshot_id(self) -> str:
        return new_id(self.taken, f"sample snapshot of {self.cluster.name}")

    @property
    def written(self) -> int:
        """Records that were written to each partition since before the story began."""
        return _PER_DAY * (self.number + 5)

    def lag(self, group_id: str) -> int:
        return self.cluster.lag(group_id, self.number)

    def rises(self, group_id: str) -> bool:
        """Whether the group fell behind in the last hours."""
        return self.lag(group_id) > self.cluster.lag(group_id, self.number - 0.1)

    @cached_property
    def losses(self) -> dict[str, LossStory]:
        """The group partitions (``group:topic-partition``) that lost records or are about to, on this day."""
        return {one.resource: one for one in self.cluster.losses if self.number in one.lost or self.number in one.hours_left}

    def history(self, group_id: str) -> Iterator[tuple[float, int]]:
        """(time in days, records behind) every 15 minutes since half a day before the first audit."""
        begin = self.cluster.first - 0.5
        for step in range(round((self.number - begin) * _STEPS_A_DAY)):
            at = begin + step / _STEPS_A_DAY
            yield at, self.cluster.lag(group_id, at)

    def availability(self, group_id: str) -> Availability:
        """How a group kept its SLA in the window of days that :func:`window_days` gives."""
        begin = self.number - window_days(group_id)
        outside = [lag > LIMIT_RECORDS for at, lag in self.history(group_id) if at >= begin]
        whole, late = window_days(group_id) * 24 * 60, _MINUTES * sum(outside)
        known = min(_MINUTES * len(outside), whole)
        return Availability(target=SLA_TARGETS.get(group_id), minutes_in=known - late, minutes_out=late, unknown=whole - known)
