"""One reading of a cluster for the eyes: the datasets of an offsets snapshot, in memory only; and how fast things move between two."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Rows by dataset, client hosts by (group id, member id), the cluster's id, and when it was begun."""

    datasets: Mapping[str, list[Row]]
    hosts: Mapping[tuple[str, str], str]
    cluster_id: str | None
    taken_at: datetime


Place = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Rate:
    """Records per second between two readings; None where there is no such figure, or where an offset went back."""

    consumed: float | None
    produced: float | None


def rates(earlier: Reading, later: Reading) -> dict[Place, Rate]:
    """The rates of every group partition of the later reading that has a commit in both; of deleted and created again topics none."""
    same = _ids(earlier).items() & _ids(later).items()
    same_topics = {topic for topic, _ in same}
    commits, ends = dict(_commits(earlier)), dict(_ends(earlier))
    now_ends = dict(_ends(later))
    found: dict[Place, Rate] = {}
    for place, now in _commits(later):
        _, topic, partition = place
        if topic in same_topics:
            produced = _per_second(ends.get((topic, partition)), now_ends.get((topic, partition)))
            found[place] = Rate(consumed=_per_second(commits.get(place), now), produced=produced)
    return found


_Seen = tuple[int, datetime]


def _ids(reading: Reading) -> Mapping[str, str | None]:
    return {row["topic"]: row["topic_id"] for row in reading.datasets["topics"]}


def _commits(reading: Reading) -> Iterator[tuple[Place, _Seen]]:
    for row in reading.datasets["committed_offsets"]:
        if row["committed"] is not None:
            yield (row["group_id"], row["topic"], row["partition"]), (row["committed"], row["read_at"])


def _ends(reading: Reading) -> Iterator[tuple[tuple[str, int], _Seen]]:
    for row in reading.datasets["offsets"]:
        if row["log_end"] is not None:
            yield (row["topic"], row["partition"]), (row["log_end"], row["read_at"])


def _per_second(before: _Seen | None, now: _Seen | None) -> float | None:
    if before is None or now is None:
        return None
    seconds = (now[1] - before[1]).total_seconds()
    return (now[0] - before[0]) / seconds if seconds > 0 and now[0] >= before[0] else None
