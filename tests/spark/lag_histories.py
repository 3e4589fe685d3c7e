"""Histories of group partitions in samples five minutes apart, each a topic with one partition and the group that reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from snapshot_builder import HOUR_MS, READ_AT, READ_MS, Synthetic

from kafka_audit.policy import load_policy
from kafka_audit.policy.slas import SlaFile
from kafka_audit.store.history import read_history
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows.build import wide_rows

MINUTE_MS = 60_000
STEP_MS = 5 * MINUTE_MS
SAMPLES = 13
Offsets = Sequence[tuple[int | None, int | None]]


@dataclass(frozen=True, kw_only=True)
class Past:
    """One history. ``offsets``: (committed, log end) oldest first, the last one is this snapshot's; an end of None could not be read."""

    offsets: Offsets
    starts: Sequence[int] = (0,)
    """Log starts, oldest first; one alone holds for all samples."""
    states: Sequence[str] = ("Stable",)
    config: Mapping[str, str] = field(default_factory=dict)
    assigned: bool = True
    deleted: bool = False
    topic_ids: Sequence[str] = ("now",)
    kind: str = "classic"
    stable: int | None = None
    record: tuple[int | None, int] | None = None
    """Of the first unread record: its offset, or None where only markers follow, and how many milliseconds ago it was written."""
    control: bool | None = None
    """Whether the last batch ends a transaction; None = not read."""
    headroom: int | None = None
    """The first offset with a record younger than a quarter of retention.ms."""
    demanded: tuple[int, int] | None = None
    """SLA in seconds, and the offset that it demands."""


def level(offset: int, samples: int = SAMPLES) -> Offsets:
    return [(offset, offset)] * samples


def moving(lags: Sequence[int], step: int = 100) -> Offsets:
    """A commit that moves by ``step`` with each sample, and these lags, oldest first."""
    return [(step * (1 + number), step * (1 + number) + lag) for number, lag in enumerate(lags)]


def half_hourly(samples_ago: int) -> Offsets:
    """Ten records a minute, and a commit every half hour of all that is there; the newest was seen so many samples ago."""
    newest = 60 - 5 * samples_ago - 4
    commits = [newest - 30 * number for number in range(4)]
    return [(1000 + 10 * max(at for at in commits if at <= now), 1000 + 10 * now) for now in range(0, 5 * SAMPLES, 5)]


def standing(committed: int, ends: Sequence[int | None]) -> Offsets:
    return [(committed, end) for end in ends]


def _of(values: Sequence, age: int):
    """The value of an age from a list that is oldest first, and that may be shorter than the history or one value for all of it."""
    return values[-1 - age] if age < len(values) else values[0]


def snapshot(histories: Mapping[str, Past], age: int) -> Synthetic:
    """What the snapshot of that age shows of all histories that reach back to it."""
    one = Synthetic().brokers({1: "a", 2: "b", 3: "c"}, {broker: {"offsets.retention.minutes": "1440"} for broker in (1, 2, 3)})
    one.topic("elsewhere").offsets("elsewhere", log_start=0, log_end=0, last_stable=0)
    for name, past in histories.items():
        if age >= len(past.offsets):
            continue
        committed, end = past.offsets[-1 - age]
        if not past.deleted:
            one.topic(name, topic_id=_of(past.topic_ids, age), config=dict(past.config))
            start, stable = _of(past.starts, age), past.stable if past.stable is not None and age == 0 else end
            log = {"log_start": start, "log_end": end, "last_stable": stable, "headroom_offset": past.headroom if age == 0 else None}
            one.offsets(name, **({"error": "LEADER_NOT_AVAILABLE"} if end is None else log))
        state = _of(past.states, age)
        members = [(name if past.assigned else "elsewhere", 0)] if state == "Stable" else None
        one.group(name, state=state, kind=past.kind, assigned=members, subscribed=[place[0] for place in members or ()])
        one.commit(name, name, committed)
        if age == 0:
            _add_reads(one, name, past)
    return one


def _add_reads(one: Synthetic, name: str, past: Past) -> None:
    committed, end = past.offsets[-1]
    if past.record is not None and committed is not None:
        offset, ago = past.record
        one.add(
            "first_unread",
            topic=name,
            partition=0,
            offset=max(committed, past.starts[-1]),
            record_offset=offset,
            timestamp_ms=None if offset is None else READ_MS - ago,
            timestamp_type=None if offset is None else "CreateTime",
            read_at=READ_AT,
        )
    if past.control is not None and end is not None:
        one.add("last_batches", topic=name, partition=0, base_offset=end - 1, last_offset=end - 1, is_control=past.control, read_at=READ_AT)
    if past.demanded is not None:
        seconds, offset = past.demanded
        at = READ_MS - seconds * 1000
        one.add("sla_offsets", topic=name, partition=0, max_lag_seconds=seconds, timestamp_ms=at, offset=offset, read_at=READ_AT)


SLAS = {"pattern": "timed-*", "name": "minutes", "max_lag_seconds": 600}
_STUCK = standing(700, [800, 850, 900, 950, 1000])
_HOUR = {"retention.ms": str(HOUR_MS)}
_A_DAY = {"retention.ms": str(24 * HOUR_MS)}
_BYTES = {"retention.ms": "-1", "retention.bytes": "100000"}
_BY_DAY = [60_000 * n for n in range(SAMPLES)]
_DAY_BEFORE = [60_000 * min(n, 8) + 300 * max(0, n - 8) for n in range(SAMPLES)]
_NIGHT = [8_000_000 + start for start in _DAY_BEFORE]

HISTORIES: dict[str, Past] = {
    # Where the group stands, whatever the history.
    "share-level": Past(offsets=level(100, 3), kind="share"),
    "share-lost": Past(offsets=standing(40, [300, 400, 500]), starts=(0, 100, 100), kind="share"),
    "leaderless": Past(offsets=[(90, 100), (95, 110), (95, None)]),
    "never-committed": Past(offsets=[(None, 100)] * 3),
    "orphan": Past(offsets=level(10), deleted=True),
    "abandoned": Past(offsets=standing(40, [100] * 5), assigned=False),
    "lost-and-drained": Past(offsets=standing(40, [100] * 5), starts=(0, 100, 100)),
    "lost-and-behind": Past(offsets=standing(40, [300, 400, 500]), starts=(0, 100, 100)),
    "beyond": Past(offsets=[(500, 200)] * 4),
    "truncated": Past(offsets=[(400, 400), (500, 500), (500, 200)]),
    "truncated-and-grown": Past(offsets=[(400, 400), (500, 500), (200, 200), (300, 300), (300, 600), (600, 600)]),
    "recreated": Past(offsets=[(900, 900), (900, 950), (5, 10), (6, 10), (10, 10)], topic_ids=("old", "old", "now", "now", "now")),
    "recreated-beyond": Past(offsets=[(900, 900), (900, 900), (900, 10)], topic_ids=("old", "old", "now")),
    # Caught up.
    "idle": Past(offsets=level(700)),
    "idle-once": Past(offsets=level(700, 1)),
    "idle-empty": Past(offsets=level(700), states=("Empty",)),
    "end-read-before-commit": Past(offsets=[(90, 90), (105, 105)]),
    "marker": Past(offsets=standing(999, [1000] * 5), control=True),
    "markers": Past(offsets=standing(990, [1000] * 5), record=(None, 0)),
    "one-record": Past(offsets=standing(999, [1000] * 5), record=(999, HOUR_MS)),
    "open-transaction": Past(offsets=standing(900, [900, 950, 1000, 1000, 1000]), stable=900),
    "open-transaction-left": Past(offsets=standing(900, [950, 950, 1000, 1000, 1000]), stable=900, states=("Empty",)),
    # Over the window.
    "first-commit": Past(offsets=[(700, 1000)]),
    "two-samples": Past(offsets=standing(700, [900, 1000])),
    "added-in-mid-window": Past(offsets=[(None, 0), (None, 50), (10, 100), (20, 200)]),
    "rewound": Past(offsets=[(800, 800), (900, 900), (100, 950), (100, 1000)]),
    "a-step-back": Past(offsets=[(700, 900), (850, 900), (800, 900)]),
    "recovered": Past(offsets=[(800, 800), (900, 900), (100, 950), (950, 1000), (1050, 1050)]),
    "stalled": Past(offsets=_STUCK),
    "stopped": Past(offsets=_STUCK, states=("Empty",)),
    "left-and-lag-grows": Past(
        offsets=[*moving([0] * 8), *standing(800, [900 + 50 * n for n in range(5)])], states=("Stable", *["Empty"] * 5)
    ),
    "batches": Past(offsets=[(100 * (n // 4), 25 * n) for n in range(SAMPLES + 2)]),
    **{f"half-hourly-{number}": Past(offsets=half_hourly(number)) for number in range(6)},
    "dip": Past(offsets=moving([100, 200, 199, 400, 800])),
    "zero": Past(offsets=moving([0, 10_000, 30_000, 80_000])),
    "just-written": Past(offsets=[*level(700, 5), (700, 701)]),
    "keeps-up": Past(offsets=moving([30, 30, 40, 50, 60], step=10_000)),
    "slow": Past(offsets=moving([5_000] * 6)),
    "catching-up": Past(offsets=[(1000 * n, 10_000 + 200 * n) for n in range(1, 7)]),
    "timed-catching-up": Past(offsets=[(1000 * n, 10_000 + 200 * n) for n in range(1, 7)], demanded=(600, 6_500)),
    "timed-steady": Past(offsets=moving([150] * 6), demanded=(600, 550), record=(600, 450_000)),
    "timed-behind": Past(offsets=moving([500] * 6), demanded=(600, 700), record=(600, 700_000)),
    "timed-hole": Past(offsets=moving([500] * 6), demanded=(600, 700), record=(700, 590_000), config={"cleanup.policy": "compact"}),
    "timed-level": Past(offsets=level(700)),
    "timed-not-asked": Past(offsets=moving([500] * 6)),
    "losing-by-time": Past(offsets=_STUCK, config=_HOUR, record=(700, 50 * MINUTE_MS)),
    "losing-slowly": Past(offsets=moving([500, 550, 600, 650, 700], step=50), config=_HOUR, record=(250, 30 * MINUTE_MS)),
    "losing-by-progress": Past(
        offsets=[(500 + 20 * n, 50_000) for n in range(7)], starts=[0, 100, 100, 200, 300, 400, 420], config={"retention.ms": "-1"}
    ),
    # Sixty thousand records in five minutes by day, three hundred at night; the log starts a day, or as many bytes, behind its end.
    "in-flight": Past(offsets=[*[(5 * n, 5 * n) for n in range(1, 7)], (35, 38)], config=_HOUR, record=(35, 3_000)),
    "slow-at-night": Past(
        offsets=[(end - 1000, end) for end in _NIGHT], starts=_DAY_BEFORE, config=_A_DAY, record=(_NIGHT[-1] - 1000, 1_000_000)
    ),
    "falls-behind-by-day": Past(
        offsets=[(1_500_000 + 30_000 * n, 2_000_000 + 60_000 * n) for n in range(SAMPLES)],
        starts=[36_000 * n for n in range(SAMPLES)],
        config=_A_DAY,
        record=(1_860_000, 4_300_000),
        headroom=1_000_000,
    ),
    "slow-at-night-by-size": Past(offsets=[(end - 1000, end) for end in _NIGHT], starts=_DAY_BEFORE, config=_BYTES),
    "stuck-by-size": Past(offsets=standing(900_000, [1_000_000 + start for start in _BY_DAY]), starts=_BY_DAY, config=_BYTES),
    "compacted-only": Past(offsets=_STUCK, config={**_HOUR, "cleanup.policy": "compact"}, record=(700, 50 * MINUTE_MS)),
    # Clocks of producers.
    "clock-ahead": Past(offsets=moving([200] * 6), record=(600, -HOUR_MS)),
    "clock-a-little-ahead": Past(offsets=standing(700, [700, 700, 700, 750]), record=(700, -30_000)),
    "clock-behind": Past(offsets=moving([200] * 6), record=(600, 400 * HOUR_MS)),
    "written-long-before": Past(offsets=standing(0, [1000] * 4), record=(0, 400 * HOUR_MS)),
}


def rows_over(spark: SparkSession, root: Path, minutes: list[float]) -> dict[str, dict[str, Any]]:
    """Group -> its row, from snapshots of all histories taken so many minutes before this one, newest first."""
    for age, before in reversed(list(enumerate(minutes, start=1))):
        snapshot(HISTORIES, age).write(root, READ_AT - timedelta(minutes=before))
    now = snapshot(HISTORIES, 0).write(root)
    evidence = Evidence(spark=spark, snapshot=now, history=read_history(now, 60), small_cluster=True)
    policy = replace(load_policy(), slas=SlaFile.model_validate({"version": 1, "groups": [SLAS]}).groups)
    with evidence.tables.settings():
        rows = wide_rows("group_partition", evidence, policy)
        return {row["group_id"]: row.asDict(recursive=True) for row in rows.where("topic <> 'elsewhere'").collect()}


def regular(spark: SparkSession, root: Path) -> dict[str, dict[str, Any]]:
    """The rows over samples that are five minutes apart."""
    return rows_over(spark, root, [5.0 * age for age in range(1, SAMPLES)])
