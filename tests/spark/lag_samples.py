"""Two days of samples of groups, an hour apart unless a group says otherwise, with figures that can be counted by hand."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

from snapshot_builder import READ_AT, Synthetic

from kafka_audit.store.layout import Snapshot
from kafka_audit.store.sealed import OFFSETS

# READ_AT, when the audit's own snapshot is taken, is Saturday 2025-03-01 12:00; the samples begin on Friday at midnight.
FRIDAY = datetime(2025, 2, 28, tzinfo=timezone.utc)
BEHIND = {2, 3, 4}
"""Hours of Friday in which the group ``late`` is 500 records behind; at any other time it is 10 behind."""
MISSING = {5, 10, 11, 12, 18}
POLICY = """
version: 1
groups:
  - pattern: "night"
    name: nights
    max_lag_records: 100
    breach: {samples: 2, of: 3}
    availability: {target_percent: 99, window_days: 2}
    quiet_hours: [{days: [thu, fri], from: "23:00", to: "03:00"}]
  - pattern: "stuck"
    name: moving
    max_no_progress_seconds: 18000
    availability: {target_percent: 90, window_days: 2}
  - pattern: "timed"
    name: fast
    max_lag_seconds: 60
    availability: {target_percent: 90, window_days: 2}
  - pattern: "*"
    topics: "late*"
    name: part
    max_lag_records: 100
    breach: {samples: 2, of: 3}
    availability: {target_percent: 99, window_days: 2}
"""
TIERS = """
version: 1
default_tier: only
tiers: {only: {replication_factor: 3, min_insync_replicas: 2, retention_ms: -1}}
history: {offsets: {interval_seconds: 3600}}
"""


def policy_folder(folder: Path) -> Path:
    (folder / "slas.yaml").write_text(POLICY)
    (folder / "tiers.yaml").write_text(TIERS)
    return folder


def cluster_at(at: datetime, lag: int | None = None) -> Synthetic:
    """How the cluster is at a time; ``lag`` replaces that of the groups late and night."""
    hour = round((at - FRIDAY).total_seconds() // 3600)
    behind = lag if lag is not None else 500 if hour in BEHIND else 10
    end = 1000 + 100 * hour
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"})

    def partition(group: str, topic: str, committed: int | None, last: int, *, number: int = 0, start: int = 0) -> None:
        one.offsets(topic, number, log_start=start, log_end=last, last_stable=last)
        one.commit(group, topic, committed, number, **({} if committed is not None else {"error": "COORDINATOR_LOAD_IN_PROGRESS"}))

    for group, topic in (("late", "late"), ("night", "nightly")):
        one.topic(topic, partitions=2).group(group, assigned=[(topic, 0), (topic, 1)])
        partition(group, topic, end - behind, end)
        if at >= FRIDAY + timedelta(hours=20):  # a partition that is added in mid-window
            partition(group, topic, 5, 5, number=1)
    # What it stopped for: from Friday 20:00 on until it is seen to have moved on Saturday 07:00.
    one.topic("still").group("stuck", assigned=[("still", 0)])
    partition("stuck", "still", 50 + max(0, 10 * (hour - 30)) if hour >= 20 else 10 * hour, 60 + 10 * hour)
    # It goes back and recovers; the log end is cut; the topic is deleted and created again; records are lost.
    one.topic("moves", topic_id="new" if hour >= 32 else "old").group("mover", assigned=[("moves", 0)])
    partition("mover", "moves", 400 if hour == 15 else 20 if hour >= 32 else 500, 700 if hour == 16 else 30 if hour >= 32 else 800)
    one.topic("eaten").group("loser", assigned=[("eaten", 0)])
    partition("loser", "eaten", 100, 500, start=140 if hour >= 30 else 0)
    one.topic("time").group("timed", assigned=[("time", 0)])
    partition("timed", "time", 100, 200)
    one.add("sla_offsets", topic="time", partition=0, max_lag_seconds=60, offset=150 if hour % 2 else 100, read_at=READ_AT)
    # A group that could not be read in every second hour.
    one.topic("late-too").group("half", assigned=[("late-too", 0)])
    partition("half", "late-too", None if hour % 2 else 0, 10)
    return one


def write_samples(root: Path) -> None:
    """The samples of two days, with a gap, lost, late, duplicated and overlapping ones among them."""
    for hour in range(36):
        at = FRIDAY + timedelta(hours=hour)
        if hour not in MISSING:
            sample(root, at)
    sample(root, FRIDAY + timedelta(hours=18, minutes=45))
    # Runs that were repeated or overlapped: were they counted, the groups would be far behind.
    sample(root, FRIDAY + timedelta(hours=15, minutes=10), lag=900)
    sample(root, FRIDAY + timedelta(hours=15, seconds=1), lag=900)


def sample(root: Path, at: datetime, lag: int | None = None) -> Snapshot:
    return cluster_at(at, lag).write(root, at, OFFSETS)


def now(root: Path) -> Snapshot:
    """The audit's own snapshot."""
    return cluster_at(READ_AT).write(root)
