"""Builds readings of a cluster, like those of `kafka-audit lag`, from a few figures."""

from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from typing import Any

from kafka_audit.lag.reading import Reading

AT = datetime(2026, 11, 20, 23, 15, tzinfo=timezone.utc)
AT_MS = int(AT.timestamp() * 1000)


class Made:
    """One group ``g`` that has committed on topic ``t``; each method adds to it or changes it."""

    def __init__(self, at: datetime = AT) -> None:
        self.at = at
        names = ("groups", "members", "committed_offsets", "offsets", "sla_offsets", "first_unread", "topics", "topic_configs", "errors")
        self.rows: dict[str, list[dict[str, Any]]] = {name: [] for name in names}
        self.hosts: dict[tuple[str, str], str] = {}

    def topic(self, name: str = "t", partitions: int = 1, **changes: Any) -> "Made":
        row = {"topic": name, "topic_id": f"id-{name}", "is_internal": False, "partition_count": partitions, "error": None}
        self.rows["topics"].append({**row, **changes})
        return self

    def log(
        self,
        start: int | None,
        end: int | None,
        *,
        topic: str = "t",
        partition: int = 0,
        error: str | None = None,
        stable: int | None = None,
    ) -> "Made":
        """``stable``: the last stable offset; None: the log end."""
        log = {"log_start": start, "log_end": end, "last_stable": end if stable is None else stable}
        self.rows["offsets"].append({"topic": topic, "partition": partition, **log, "error": error, "read_at": self.at})
        return self

    def group(self, name: str = "g", *, state: str = "Stable", kind: str = "classic", error: str | None = None) -> "Made":
        self.rows["groups"].append({"group_id": name, "group_type": kind, "state": state, "error": error})
        return self

    def member(self, *places: tuple[str, int], group: str = "g", name: str = "m1", subscribed: Sequence[str] | None = None) -> "Made":
        assignment = [{"topic": topic, "partition": partition} for topic, partition in places]
        row = {"group_id": group, "member_id": name, "client_id": "app", "assignment": assignment}
        self.rows["members"].append({**row, "subscribed_topics": subscribed and list(subscribed)})
        self.hosts[group, name] = "/10.0.0.1"
        return self

    def commit(self, offset: int | None, *, group: str = "g", topic: str = "t", partition: int = 0, error: str | None = None) -> "Made":
        row = {"group_id": group, "topic": topic, "partition": partition, "committed": offset, "error": error, "read_at": self.at}
        self.rows["committed_offsets"].append(row)
        return self

    def unread(self, offset: int, record: int | None, seconds: float | None = None, *, error: str | None = None) -> "Made":
        """The record at ``record`` is ``seconds`` old."""
        stamp = None if seconds is None else AT_MS - int(seconds * 1000)
        row = {"topic": "t", "partition": 0, "offset": offset, "record_offset": record, "timestamp_ms": stamp}
        self.rows["first_unread"].append({**row, "timestamp_type": "CreateTime", "error": error, "read_at": self.at})
        return self

    def demanded(self, seconds: int, offset: int | None, error: str | None = None) -> "Made":
        row = {"topic": "t", "partition": 0, "max_lag_seconds": seconds, "timestamp_ms": AT_MS - seconds * 1000, "offset": offset}
        self.rows["sla_offsets"].append({**row, "error": error, "read_at": self.at})
        return self

    def error(self, dataset: str, error: str, **about: Any) -> "Made":
        nothing = {"broker_id": None, "topic": None, "partition": None, "group_id": None}
        self.rows["errors"].append({"dataset": dataset, **nothing, "error": error, "message": "why", **about})
        return self

    def reading(self) -> Reading:
        return Reading(datasets=self.rows, hosts=self.hosts, cluster_id="c", taken_at=self.at)


def behind(committed: int, start: int, end: int) -> Made:
    return Made().topic().log(start, end).group().member(("t", 0)).commit(committed)


def later(made: Made, seconds: float) -> Made:
    return Made(made.at + timedelta(seconds=seconds))
