"""What happens to the sample clusters in three weeks: which controls fail from when to when, how lag moves, what is lost. Pure data."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime, time, timezone
from itertools import pairwise
from typing import Any

from kafka_audit.input_files.glob import matches
from kafka_audit.policy.slas import WINDOW_DAYS as DEFAULT_WINDOW_DAYS

DAYS = 21
"""The number of days of the story; the days are numbered from 0, and the last one is that of the writing."""
LAST = DAYS - 1
LIMIT_RECORDS = 1_000
"""The lag that every SLA of the sample policy allows, in records."""
WINDOW_DAYS = 7
SLA_TARGETS: Mapping[str, float] = {"warehouse": 99.0, "order-service": 99.0, "reporting": 99.5}
"""Group -> percent of the minutes of the last WINDOW_DAYS days that must be within the limit."""


def window_days(group_id: str) -> int:
    """The window of a group's SLA, in days; without a target it is the one that an SLA has that names none."""
    return WINDOW_DAYS if group_id in SLA_TARGETS else DEFAULT_WINDOW_DAYS


@dataclass(frozen=True, kw_only=True)
class Episode:
    """The days on which the template's failures of a control (its code) on resources (a glob) stay failures; on others they pass."""

    control: str
    resource: str = "*"
    first: int = 0
    last: int = LAST

    def covers(self, day: int, control: str, resource: str) -> bool:
        return self.first <= day <= self.last and self.control == control and matches(self.resource, resource)


@dataclass(frozen=True, kw_only=True)
class LossStory:
    """A group partition (``group:topic-partition``) that is about to lose records, or lost some. Both by day: hours left, records lost."""

    resource: str
    hours_left: Mapping[int, float] = field(default_factory=dict)
    lost: Mapping[int, int] = field(default_factory=dict)
    unread: int = 900


@dataclass(frozen=True, kw_only=True)
class WaiverStory:
    """One waiver; the days count from the story's first, so that negative ones and those above LAST lie outside of it."""

    control: str
    resource: str
    approved: int
    expires: int
    justification: str


@dataclass(frozen=True, kw_only=True)
class SampleCluster:
    """One sample cluster: ``first`` and ``last`` are the days of its first and its last audit, one is made each day.

    ``lags``: group -> points (day, records behind), between which the lag moves along straight lines. ``late``: days on which the snapshot
    was judged hours after it was taken, so that the audit is void. ``unassessed``: day -> codes of controls whose results are missing.
    """

    name: str
    first: int
    last: int
    episodes: tuple[Episode, ...]
    lags: Mapping[str, tuple[tuple[float, int], ...]] = field(default_factory=dict)
    losses: tuple[LossStory, ...] = ()
    waivers: tuple[WaiverStory, ...] = ()
    late: frozenset[int] = frozenset()
    unassessed: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @property
    def days(self) -> range:
        return range(self.first, self.last + 1)

    def fails(self, day: int, control: str, resource: str) -> bool:
        """Whether a failure of the template is one on that day, too."""
        return any(one.covers(day, control, resource) for one in self.episodes)

    def lag(self, group_id: str, at: float) -> int:
        """Records that the group is behind at a time, in days."""
        for (before, low), (after, high) in pairwise(self.lags.get(group_id) or ()):
            if before <= at <= after:
                return round(low + (high - low) * (at - before) / (after - before))
        return 0

    def waiver_file(self, date_of: Mapping[int, date]) -> dict[str, Any]:
        """The content of waivers.yaml; ``date_of``: the date of each day that a waiver names."""
        return {
            "version": 1,
            "waivers": [
                {
                    **{"id": f"SAMPLE-{number}", "control": one.control, "resource": one.resource, "ticket": f"SAMPLE-TICKET-{number}"},
                    **{"owner": "sample.owner", "approver": "sample.approver", "justification": one.justification},
                    **{"approved_on": date_of[one.approved], "expires": datetime.combine(date_of[one.expires], time(), timezone.utc)},
                }
                for number, one in enumerate(self.waivers, 1)
            ],
        }


ORDERS = SampleCluster(
    name="sample-orders",
    first=0,
    last=LAST,
    episodes=(
        Episode(control="TOP-01", resource="legacy-import"),
        Episode(control="TOP-01", resource="clickstream", last=6),
        Episode(control="TOP-01", resource="vouchers", last=4),
        Episode(control="TOP-02", resource="[ciw]*", last=9),
        Episode(control="TOP-03", resource="settlements", first=3, last=12),
        Episode(control="TOP-04", resource="sessions", first=11, last=13),
        Episode(control="TOP-06", resource="access-log"),
        Episode(control="BRK-01", first=2, last=14),
        Episode(control="BRK-05"),
        Episode(control="BRK-06", first=5),
        Episode(control="BRK-08", resource="2", first=16),
        Episode(control="REP-02", resource="settlements-0", first=8, last=9),
        Episode(control="REP-04", first=8, last=10),
        Episode(control="SEC-01"),
        Episode(control="TXN-01", first=18),
        Episode(control="TXN-03", first=7, last=15),
        Episode(control="CON-06", resource="warehouse:*", first=15, last=16),
        Episode(control="CON-13", resource="consumer *ing"),
        Episode(control="TOP-12"),
    ),
    lags={
        "warehouse": (
            *((1, 0), (2, 400), (3, 0), (8.4, 0), (8.5, 1_200), (8.6, 0), (14.9, 0), (15, 1_400), (15.05, 200), (16.2, 700), (17, 0)),
            *((19.4, 0), (19.45, 1_300), (19.5, 0)),
        ),
        "order-service": ((4, 0), (4.3, 1_150), (4.4, 0), (12, 0), (12.5, 800), (13, 0), (17.6, 0), (17.7, 1_200), (17.75, 0)),
        "reporting": ((0, 100), (6, 600), (10, 0), (18, 0), (20, 640)),
    },
    losses=(
        LossStory(resource="billing:invoices-0", hours_left={10: 40.0, 11: 17.0}, lost={12: 1_240, 13: 1_240, 14: 1_240}),
        LossStory(resource="email-sender:email-outbox-0", hours_left={18: 52.0, 19: 31.0, 20: 9.5}),
        LossStory(resource="billing:invoices-1", lost={19: 35, 20: 210}),
    ),
    waivers=(
        WaiverStory(
            control="TOP-01",
            resource="legacy-import",
            approved=-9,
            expires=30,
            justification="Sample: the topic is filled again every night from files that are kept for a year.",
        ),
        WaiverStory(
            control="SEC-01",
            resource="cluster",
            approved=-30,
            expires=16,
            justification="Sample: the brokers stand in a closed network until the authorizer is introduced.",
        ),
        WaiverStory(
            control="TOP-08",
            resource="images",
            approved=-3,
            expires=80,
            justification="Sample: large images are cut into parts before they are sent; nothing fails for now.",
        ),
        WaiverStory(
            control="BRK-08",
            resource="2",
            approved=23,
            expires=60,
            justification="Sample: broker 2 is replaced next month, and gets the longer retention then.",
        ),
    ),
    late=frozenset({7}),
)
PAYMENTS = SampleCluster(
    name="sample-payments",
    first=6,
    last=LAST - 4,  # its schedule stopped: nobody has looked at this cluster for four days
    episodes=(
        Episode(control="TOP-01", resource="wishlists", last=9),
        Episode(control="TOP-02", resource="[lvw]*", last=11),
        Episode(control="REP-01", resource="wishlists-0", first=10, last=10),
        Episode(control="QRM-01", first=12, last=13),
        Episode(control="PRD-02"),
        Episode(control="PRD-03"),
        Episode(control="CON-11"),
        Episode(control="GRP-02", first=14),
        Episode(control="BRK-05"),
        Episode(control="TXN-02", first=9, last=12),
    ),
    lags={"warehouse": ((8.9, 0), (9, 1_900), (9.3, 0), (12.9, 0), (13, 1_500), (13.1, 0)), "reporting": ((14, 0), (16, 300))},
    losses=(LossStory(resource="billing:invoices-0", hours_left={14: 30.0, 15: 6.0}, lost={16: 480}),),
    waivers=(
        WaiverStory(
            control="PRD-03",
            resource="producer web-tracker",
            approved=2,
            expires=24,
            justification="Sample: clicks may be lost while a broker fails over; the web team accepts that for now.",
        ),
    ),
)
CLICKS = SampleCluster(
    name="sample-clicks",
    first=14,
    last=LAST,
    episodes=(
        Episode(control="TOP-02", resource="clickstream", last=15),
        Episode(control="BRK-05"),
        Episode(control="CON-13", resource="consumer reporting"),
        Episode(control="TOP-12"),
        Episode(control="TOP-17", first=18),
    ),
    lags={"reporting": ((14, 0), (16, 450), (18, 0))},
    late=frozenset({17}),
    unassessed={18: ("REP-03", "REP-05", "TOP-07", "TOP-08", "TOP-09", "TOP-14", "TOP-15", "TOP-16", "TXN-02")},
)
CLUSTERS = (ORDERS, PAYMENTS, CLICKS)
