"""One table of where groups stand, for both programs that compute it: spark_jobs.lag.positions and kafka_audit.lag.position.

Each case is one group on one partition. tests/unit/test_lag_position.py runs it through `kafka-audit lag`, tests/spark/test_lag_golden.py
through the audit and the lag history.
"""

from dataclasses import dataclass

MARKERS = "markers"


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What is read of a case, and what must come of it. None is not known, or not there."""

    committed: int | None
    log: tuple[int | None, int | None] = (0, 100)
    """Log start and log end."""
    stable: int | None = None
    """The last stable offset; None: the log end."""
    state: str = "Stable"
    assigned: bool | None = True
    """Whether the group's member has the partition; if not, it has one of another topic. None: it did not tell."""
    described: bool = True
    """Whether the group's member was described at all."""
    subscribed: bool | None = False
    """Whether the member subscribes the topic; if not, it subscribes another one. None: it did not tell, as with a regular expression."""
    listed: bool = True
    """Whether the topic exists."""
    partitions: int = 1
    """How many partitions it has; the group has committed on partition 0."""
    unread: int | str | None = None
    """The first record that was found unread, or ``MARKERS``: the log was read to its end, and there is none. None: it was not read."""

    expected: str
    """The state that `kafka-audit lag` shows."""
    position: int | None = None
    lag: int | None = None
    lost: int | None = None
    beyond_end: int | None = None
    only_markers: bool | None = None
    records: tuple[int, int] | None = None
    """The least and the most records that are unread."""


GOLDEN: dict[str, Standing] = {
    "caught-up": Standing(committed=100, expected="OK", position=100, lag=0, lost=0, beyond_end=0, records=(0, 0)),
    "empty-log": Standing(committed=100, log=(100, 100), expected="OK", position=100, lag=0, lost=0, beyond_end=0, records=(0, 0)),
    "behind": Standing(committed=40, expected="BEHIND", position=40, lag=60, lost=0, beyond_end=0, records=(60, 60)),
    "at-the-log-start": Standing(
        committed=40, log=(40, 100), expected="BEHIND", position=40, lag=60, lost=0, beyond_end=0, records=(60, 60)
    ),
    "lost-and-drained": Standing(committed=40, log=(100, 100), expected="LOST", position=100, lag=0, lost=60, beyond_end=0, records=(0, 0)),
    "lost-and-behind": Standing(
        committed=40, log=(100, 500), expected="LOST", position=100, lag=400, lost=60, beyond_end=0, records=(400, 400)
    ),
    "lost-and-only-markers": Standing(
        committed=40,
        log=(70, 71),
        unread=MARKERS,
        expected="LOST",
        position=70,
        lag=1,
        lost=30,
        beyond_end=0,
        only_markers=True,
        records=(0, 0),
    ),
    "beyond-the-end": Standing(committed=500, log=(0, 200), expected="BEYOND_END", position=500, lag=0, lost=0, beyond_end=300),
    "no-commit": Standing(committed=None, expected="NO_COMMIT"),
    "topic-is-gone": Standing(committed=40, log=(None, None), assigned=False, listed=False, expected="ORPHAN"),
    "partition-is-gone": Standing(committed=40, log=(None, None), partitions=0, assigned=False, expected="ORPHAN"),
    "end-not-known": Standing(committed=40, log=(0, None), expected="NOT_ASSESSED"),
    "start-not-known": Standing(committed=40, log=(None, 100), expected="NOT_ASSESSED"),
    # What is unread may be the ends of transactions, which are no records.
    "one-marker": Standing(
        committed=99, unread=MARKERS, expected="OK", position=99, lag=1, lost=0, beyond_end=0, only_markers=True, records=(0, 0)
    ),
    "three-markers": Standing(
        committed=97, unread=MARKERS, expected="OK", position=97, lag=3, lost=0, beyond_end=0, only_markers=True, records=(0, 0)
    ),
    "one-record": Standing(
        committed=99, unread=99, expected="BEHIND", position=99, lag=1, lost=0, beyond_end=0, only_markers=False, records=(1, 1)
    ),
    "one-offset": Standing(committed=99, expected="BEHIND", position=99, lag=1, lost=0, beyond_end=0, records=(0, 1)),
    "compacted": Standing(
        committed=40, unread=90, expected="BEHIND", position=40, lag=60, lost=0, beyond_end=0, only_markers=False, records=(60, 60)
    ),
    # A read_committed consumer is not given what lies behind the beginning of an open transaction.
    "open-transaction-ahead": Standing(
        committed=400, log=(0, 1000), stable=900, expected="BEHIND", position=400, lag=600, lost=0, beyond_end=0, records=(500, 600)
    ),
    "open-transaction-reached": Standing(
        committed=900,
        log=(0, 1000),
        stable=900,
        state="Empty",
        assigned=False,
        expected="BEHIND",
        position=900,
        lag=100,
        lost=0,
        beyond_end=0,
        records=(0, 100),
    ),
    "open-transaction-behind": Standing(
        committed=950, log=(0, 1000), stable=900, expected="BEHIND", position=950, lag=50, lost=0, beyond_end=0, records=(0, 50)
    ),
    # A topic that a Stable group's members neither have assigned nor subscribe is one that it has left.
    "left": Standing(committed=40, assigned=False, expected="ABANDONED", position=40, lag=60, lost=0, beyond_end=0, records=(60, 60)),
    # A subscription that is not told may be one of this topic.
    "perhaps-left": Standing(
        committed=40, assigned=False, subscribed=None, expected="NOT_ASSESSED", position=40, lag=60, lost=0, beyond_end=0, records=(60, 60)
    ),
    "perhaps-left-with-a-loss": Standing(
        committed=40,
        log=(100, 500),
        assigned=False,
        subscribed=None,
        expected="NOT_ASSESSED",
        position=100,
        lag=400,
        lost=60,
        beyond_end=0,
        records=(400, 400),
    ),
    "perhaps-left-and-level": Standing(
        committed=100, assigned=False, subscribed=None, expected="OK", position=100, lag=0, lost=0, beyond_end=0, records=(0, 0)
    ),
    "assigned-by-an-expression": Standing(
        committed=40, subscribed=None, expected="BEHIND", position=40, lag=60, lost=0, beyond_end=0, records=(60, 60)
    ),
    "subscribed-without-a-partition": Standing(
        committed=500,
        log=(1000, 1_000_499),
        assigned=False,
        subscribed=True,
        expected="LOST",
        position=1000,
        lag=999_499,
        lost=500,
        beyond_end=0,
        records=(999_499, 999_499),
    ),
    # A member that does not tell what it has assigned may have this topic.
    "a-member-did-not-tell": Standing(
        committed=40, assigned=None, expected="NOT_ASSESSED", position=40, lag=60, lost=0, beyond_end=0, records=(60, 60)
    ),
    "a-member-told-only-its-subscription": Standing(
        committed=40, assigned=None, subscribed=True, expected="BEHIND", position=40, lag=60, lost=0, beyond_end=0, records=(60, 60)
    ),
    "a-member-did-not-tell-and-level": Standing(
        committed=100, assigned=None, expected="OK", position=100, lag=0, lost=0, beyond_end=0, records=(0, 0)
    ),
    "no-member-was-described": Standing(
        committed=40, described=False, expected="NOT_ASSESSED", position=40, lag=60, lost=0, beyond_end=0, records=(60, 60)
    ),
    "no-member-was-described-and-level": Standing(
        committed=100, described=False, expected="OK", position=100, lag=0, lost=0, beyond_end=0, records=(0, 0)
    ),
    "rebalancing": Standing(
        committed=40,
        assigned=False,
        state="PreparingRebalance",
        expected="BEHIND",
        position=40,
        lag=60,
        lost=0,
        beyond_end=0,
        records=(60, 60),
    ),
    "without-members": Standing(
        committed=40, assigned=False, state="Empty", expected="BEHIND", position=40, lag=60, lost=0, beyond_end=0, records=(60, 60)
    ),
}


def subscription_of(case: Standing, topic: str) -> list[str] | None:
    """What the group's member tells that it subscribes."""
    return None if case.subscribed is None else [topic if case.subscribed or case.assigned else "elsewhere"]
