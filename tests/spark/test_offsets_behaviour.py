"""What is concluded from commits and group records; each case is a series of records as real clients write them."""

import json
import random
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from commit_log import START, WEEK_MS, Log
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from sealed_batch import seal

from spark_jobs.commit_history.describe.behaviour_tables import Window, describe
from spark_jobs.commit_history.describe.commit_behaviour import commit_behaviour
from spark_jobs.commit_history.describe.group_behaviour import emptied, group_behaviour
from spark_jobs.commit_history.history import History
from spark_jobs.engine.tables import table_of, write_parquet

pytestmark = pytest.mark.spark

pick = random.Random(6)


def every(beat: float, jitter: float, count: int, skip: float = 0) -> Iterator[float]:
    """Times of a timer, some of whose beats are left out."""
    for n in range(count):
        if pick.random() >= skip:
            yield n * beat + pick.uniform(-jitter, jitter)


def irregular(least: float, most: float, count: int) -> Iterator[float]:
    at = 0.0
    for _ in range(count):
        at += pick.uniform(least, most)
        yield at


@pytest.fixture(scope="module")
def judged(spark: SparkSession, recorded_tables: dict[str, DataFrame]) -> tuple[dict[str, Row], dict[tuple[str, int], Row]]:
    log = Log()
    progress = lambda: pick.randint(1, 60)  # noqa: E731
    for partition in range(3):
        log.series("java-5s", every(5000, 2, 31), progress, partition=partition)
        log.series("kip848-5s", every(5021, 8, 31), progress, partition=partition)
        log.series("idle-5s", every(5000, 2, 31), lambda: 0, partition=partition, leader_epoch=-1)
    log.series("librdkafka-5s", every(5001, 1, 60, skip=0.4), progress)
    log.series("java-1s", every(1003, 4, 60), progress)
    log.series("java-30s", every(30002, 5, 12), progress)
    log.series("slow-loop", every(8001, 3, 20), progress)
    log.series("hand-5s", every(5026, 6, 31), progress)
    log.series("per-poll", every(151, 1, 200), progress)
    log.series("per-record", every(3, 1, 500), lambda: 1)
    log.series("per-batch", irregular(400, 4000, 60), progress)
    log.series("few", every(5000, 2, 5), progress)
    log.series("steady-700ms", every(730, 2, 60), progress)
    log.series("exactly-once", every(5000, 2, 31), progress, topic_id=None)
    log.series("one-transaction", [0], progress, topic_id=None)
    log.series("streams", every(30000, 9, 20), progress, metadata="AgAAAaH6nCRu")
    partitions = commit_behaviour(log.table(spark), table_of(spark, [], "group_id string, empty_since timestamp"), WEEK_MS)
    groups = group_behaviour(recorded_tables["group_records"].limit(0), partitions)
    found = {row.group_id: row for row in groups.collect()}
    return found, {(row.group_id, row.partition): row for row in partitions.collect()}


@pytest.mark.parametrize(
    ("group", "interval", "confidence"),
    [
        *[("java-5s", 5000, "medium"), ("kip848-5s", 5000, "medium"), ("librdkafka-5s", 5000, "medium"), ("idle-5s", 5000, "high")],
        *[("java-1s", 1000, "low"), ("java-30s", 30000, "low"), ("slow-loop", 8000, "low"), ("hand-5s", 5000, "medium")],
    ],
)
def test_a_timer_is_consistent_with_auto_commit_and_never_said_to_be_it(
    judged: tuple[dict[str, Row], Any], group: str, interval: int, confidence: str
) -> None:
    row = judged[0][group]
    assert (row.auto_commit, row.auto_commit_interval_ms, row.auto_commit_confidence) == ("consistent", interval, confidence)
    assert "consistent with enable.auto.commit=true" in row.auto_commit_reason and "timer written by hand" in row.auto_commit_reason


@pytest.mark.parametrize(
    ("group", "verdict", "reason"),
    [
        ("per-poll", "unlikely", "commits follow the work"),
        ("per-record", "unlikely", "commits follow single records"),
        ("per-batch", "unknown", "keep a beat"),
        ("few", "unknown", "too few commits"),
        ("steady-700ms", "unknown", "no customary interval"),
        ("exactly-once", "excluded", "transactions"),
        ("one-transaction", "unknown", "too few commits: 1 of the 8 that are needed, all part of transactions"),
        ("streams", "unlikely", "metadata"),
    ],
)
def test_other_commits_are_told_apart_or_left_open(judged: tuple[dict[str, Row], Any], group: str, verdict: str, reason: str) -> None:
    row = judged[0][group]
    assert (row.auto_commit, row.auto_commit_interval_ms) == (verdict, None)
    assert reason in row.auto_commit_reason


def test_the_cadence_has_its_spread(judged: tuple[Any, dict[tuple[str, int], Row]]) -> None:
    row = judged[1]["java-5s", 1]
    assert (row.commits, row.intervals, row.unchanged, row.rewinds) == (31, 30, 0, 0)
    assert 4990 <= row.interval_low_ms <= row.interval_ms <= row.interval_high_ms <= 5010
    assert judged[1]["idle-5s", 0].unchanged == judged[1]["idle-5s", 0].unchanged_without_epoch == 30


def behaviour(
    spark: SparkSession,
    log: Log,
    empty: dict[str, datetime] | None = None,
    retention: int | None = WEEK_MS,
    deleted: dict[str, datetime] | None = None,
) -> dict[str, Row]:
    gone = table_of(spark, list((empty or {}).items()), "group_id string, empty_since timestamp")
    groups = table_of(spark, list(deleted.items()), "group_id string, deleted_at timestamp") if deleted else None
    return {row.group_id: row for row in commit_behaviour(log.table(spark), gone, retention, deleted_groups=groups).collect()}


def test_rewinds_jumps_gaps_and_recreations_are_counted(spark: SparkSession) -> None:
    log = Log()
    for at, committed in enumerate((100, 110, 120, 50, 60, 70, 5000, 5010)):
        log.add("g", at * 5000 + (60_000 if at > 1 else 0), committed)
    log.add("g", 200_000, 3, topic_id="id-2")
    log.add("g", 205_000, 4, topic_id="id-2")
    log.add("away", 0, 10)
    log.add("back", 0, 90)
    log.add("back", 10, 40)
    for at in range(1, 5):
        log.add("away", at * 5000, 10 + at)
    log.add("away", 4_000_000, 90_000)
    found = behaviour(spark, log)
    row = found["g"]
    assert (row.commits, row.rewinds, row.largest_rewind, row.rewound_from) == (10, 1, 70, None)
    assert (found["back"].rewinds, found["back"].rewound_from) == (1, 90)
    assert row.last_rewind.astimezone(timezone.utc) == START + timedelta(seconds=75)
    assert (row.jumps, row.largest_step, row.recreations) == (1, 4930, 1)
    assert (row.longest_gap_ms, row.committed, row.topic_id) == (65_000, 4, "id-2")
    assert (found["away"].jumps, found["away"].largest_step) == (0, 89_986)  # it caught up after a pause


def test_a_rewind_is_found_where_the_offset_was_gone_in_between(spark: SparkSession) -> None:
    log = Log()
    for at, committed in enumerate((900, None, 10, 20)):
        log.add("begun-again", at * 5000, committed)
    row = behaviour(spark, log)["begun-again"]
    assert (row.rewinds, row.rewound_from, row.largest_rewind, row.recreations) == (1, 900, 890, 0)
    assert row.last_rewind.astimezone(timezone.utc) == START + timedelta(seconds=10)
    assert (row.intervals, row.longest_gap_ms, row.median_step, row.unchanged) == (1, 5000, 10, 0)  # a tombstone ends what is timed


def test_a_topic_made_anew_is_recognised_behind_the_tombstone_of_its_predecessor(spark: SparkSession) -> None:
    log = Log()
    for at, committed in enumerate((900, 500, None)):
        log.add("g", at * 5000, committed)
    for at, committed in enumerate((5, 10, 20), start=3):
        log.add("g", at * 5000, committed, topic_id="id-2")
    row = behaviour(spark, log)["g"]
    assert (row.recreations, row.rewinds, row.largest_rewind, row.rewound_from) == (1, 1, 400, None)


def test_whether_a_topic_was_made_anew_is_not_known_of_commits_without_its_id(spark: SparkSession) -> None:
    log = Log()
    ids: dict[str, tuple[str | None, str | None]] = {"transactional": (None, None), "upgraded": (None, "id-2"), "reset": ("id-1", None)}
    for group, (old, new) in ids.items():
        for at, committed in enumerate((900, 500, None)):
            log.add(group, at * 5000, committed, topic_id=old)
        for at, committed in enumerate((5, 10, 8), start=3):
            log.add(group, at * 5000, committed, topic_id=new)
    for at, committed in enumerate((400, None, 450, None, None, 30)):
        log.add("twice", at * 5000, committed, topic_id=None)
    for at, committed in enumerate((900, 500, None, 600, 620)):
        log.add("onwards", at * 5000, committed, topic_id=None)
    for at, committed in enumerate((900, 500)):
        log.add("kept", at * 5000, committed, topic_id=None)
    found = behaviour(spark, log)
    for group in ids:
        row = found[group]
        assert (row.rewinds, row.largest_rewind, row.rewound_from) == (2, 400, 10), group  # 900 to 500 and 10 to 8
        assert (row.recreations, row.unclear_from, row.median_step) == (0, 900, 5), group
    assert (found["twice"].rewinds, found["twice"].unclear_from) == (0, 450)
    # 600 is below 900, which may have been an offset of another topic.
    assert (found["onwards"].rewinds, found["onwards"].rewound_from, found["onwards"].unclear_from) == (1, None, 900)
    assert (found["kept"].rewinds, found["kept"].rewound_from, found["kept"].unclear_from) == (1, 900, None)


def test_a_group_has_recovered_from_its_rewinds_once_it_has_passed_the_largest_offset(spark: SparkSession) -> None:
    log = Log()
    for at, committed in enumerate((1000, 100, 150, 140, 200)):
        log.add("g", at * 5000, committed)
    row = behaviour(spark, log)["g"]
    assert (row.rewinds, row.rewound_from, row.largest_rewind) == (2, 1000, 900)
    assert row.last_rewind.astimezone(timezone.utc) == START + timedelta(seconds=15)


def test_expired_deleted_and_undecidable_offsets_are_told_apart(spark: SparkSession) -> None:
    log, hour = Log(), 3_600_000
    for group in ("expired", "deleted", "between", "kept-by-members", "by-hand", "one", "other", "alive", "peopled", "left-later"):
        log.add(group, 0, 7, topic="shared" if group in ("one", "other") else group)
    log.add("expired", WEEK_MS + 700_000, None, topic="expired")
    log.add("peopled", WEEK_MS + 700_000, None, topic="peopled")
    log.add("left-later", WEEK_MS + 700_000, None, topic="left-later")
    log.add("between", WEEK_MS + 300_000, None, topic="between")
    log.add("deleted", 2 * hour, None, topic="deleted")
    log.add("kept-by-members", WEEK_MS + hour, None, topic="kept-by-members")
    log.add("one", 3 * hour, None, topic="shared")
    log.add("other", 3 * hour + 100, None, topic="shared")
    log.add("by-hand", WEEK_MS, 8, topic="by-hand")
    log.add("by-hand", WEEK_MS + hour, None, topic="by-hand")
    log.add("unseen", hour, None)
    empty = {**dict.fromkeys(("expired", "between", "by-hand"), START), "kept-by-members": START + timedelta(hours=30)}
    found = behaviour(spark, log, {**empty, "left-later": START + timedelta(days=8)})
    assert {group: row.removed for group, row in found.items()} == {
        **{"expired": "expired", "deleted": "deleted", "between": "unknown", "kept-by-members": "deleted", "by-hand": "unknown"},
        **{"one": "topic_deleted", "other": "topic_deleted", "alive": None, "unseen": "unknown"},
        **{"peopled": "unknown", "left-later": "unknown"},
    }
    young = "2.0 h after the last commit or member, before offsets.retention.minutes"
    assert found["deleted"].removed_reason == f"{young}: the offsets were deleted, or the topic"
    assert found["expired"].removed_reason == "168.2 h after the last commit or member, longer than offsets.retention.minutes"
    assert "both can be" in found["between"].removed_reason
    for group in ("peopled", "left-later"):
        assert "not known to have been without members" in found[group].removed_reason
    assert behaviour(spark, log, retention=None)["expired"].removed_reason == "offsets.retention.minutes could not be read"


def test_a_commit_with_an_expiry_time_of_its_own_expires_then_whatever_the_retention(spark: SparkSession) -> None:
    log, hour = Log(), 3_600_000
    for group, expires in (("early", 1), ("late", 240), ("peopled", 1), ("left-after", 1), ("alive", 1)):
        log.add(group, 0, 7, topic=group, version=1, topic_id=None, expire_time=START + timedelta(hours=expires))
    for group, at in (("early", 2), ("late", 200), ("peopled", 2), ("left-after", 5.1)):
        log.add(group, at * hour, None, topic=group)
    empty = {**dict.fromkeys(("early", "late"), START), "left-after": START + timedelta(hours=5)}
    for found in (behaviour(spark, log, empty), behaviour(spark, log, empty, retention=None)):
        assert {group: row.removed for group, row in found.items()} == {
            **{"early": "expired", "late": "deleted", "peopled": "unknown", "left-after": "unknown", "alive": None}
        }
        assert found["early"].removed_reason == "2.0 h after the last commit or member, past the expiry time in the commit itself"
        assert "before the expiry time in the commit itself" in found["late"].removed_reason
    assert found["alive"].expire_time.astimezone(timezone.utc) == START + timedelta(hours=1)
    log.add("alive", hour, 8, topic="alive")
    assert behaviour(spark, log)["alive"].expire_time is None


def test_groups_deleted_together_are_not_taken_for_the_deletion_of_their_topic(spark: SparkSession) -> None:
    log, hour = Log(), 3_600_000
    for group in ("one", "other", "stays", "expired"):
        log.add(group, 0, 7)
    for group, at in (("one", 3 * hour), ("other", 3 * hour + 100), ("stays", 3 * hour + 200), ("expired", WEEK_MS + 700_000)):
        log.add(group, at, None)
    time = START + timedelta(hours=3)
    deleted = {"one": time, "other": time, "stays": time - timedelta(hours=1), "expired": START + timedelta(milliseconds=WEEK_MS + 700_000)}
    found = behaviour(spark, log, {"expired": START}, deleted=deleted)
    assert {group: row.removed for group, row in found.items()} == {
        **dict.fromkeys(("one", "other", "stays"), "deleted"),
        "expired": "expired",
    }
    assert found["one"].removed_reason == found["other"].removed_reason == "the group itself was deleted at the same time"
    assert "or the topic" in found["stays"].removed_reason
    assert behaviour(spark, log)["one"].removed == "topic_deleted"


def test_the_groups_of_the_recorded_topic_are_described(spark: SparkSession, recorded_tables: dict[str, DataFrame], tmp_path: Path) -> None:
    history = History(path=tmp_path)
    for kind in ("raw", "decoded"):
        (tmp_path / kind / "00000001").mkdir(parents=True)
        (tmp_path / kind / "00000001" / "manifest.json").write_text(
            json.dumps(
                {"partitions": [], "read_at": START.isoformat(), "totals": dict.fromkeys(("expected", "rows", "lost", "skipped"), 1)}
            )
        )
    (tmp_path / "source.json").write_text('{"cluster_id": "c", "topic_id": "t"}')
    for name in ("offset_commits", "group_records"):
        write_parquet(recorded_tables[name], tmp_path / "decoded" / "00000001" / f"{name}.parquet")
    seal(tmp_path / "decoded" / "00000001", rows={"undecoded": 0})
    lie_in = {
        row.group_id: row.log_partition for row in recorded_tables["group_records"].select("group_id", "log_partition").distinct().collect()
    }
    window = Window(end=datetime(2026, 12, 1, tzinfo=timezone.utc), length=timedelta(days=3650), retention_ms=WEEK_MS, partitions=50)
    made = describe(spark, history.path, window)
    assert made is not None and describe(spark, history.path, window) == made
    groups = {row.group_id: row for row in spark.read.parquet(str(made / "groups.parquet")).collect()}
    manifest = json.loads((made / "manifest.json").read_text())
    assert manifest["rows"] == {
        "groups": len(groups),
        "group_partitions": spark.read.parquet(str(made / "group_partitions.parquet")).count(),
    }
    classic = groups["g-classic-coop"]
    assert (classic.group_type, classic.rebalance_timeout_ms is not None) == ("classic", True)
    assert classic.generations >= classic.rebalances >= 1
    assert lie_in.items() <= {name: row.home_partition for name, row in groups.items()}.items()
    assert {row.group_type for row in groups.values()} >= {"classic", "consumer", "share", "streams"}


def test_an_empty_group_is_known_by_its_newest_state(spark: SparkSession, recorded_tables: dict[str, DataFrame]) -> None:
    rows = emptied(recorded_tables["group_records"]).collect()
    assert rows and len({row.group_id for row in rows}) == len(rows)


def test_a_group_that_has_members_by_its_newest_record_is_not_known_as_empty_however_often_it_was(
    spark: SparkSession, recorded_tables: dict[str, DataFrame]
) -> None:
    records = recorded_tables["group_records"].where("record_type = 2 and not tombstone")
    peopled = records.where("size(group_metadata.members) > 0").groupBy("group_id").agg(F.max("log_offset").alias("at"))
    until = records.join(peopled, on="group_id").where("log_offset <= at").drop("at")
    once = table_of(spark, [("s-java-auto5", START), ("another", START)], "group_id string, empty_since timestamp")
    assert until.where("size(group_metadata.members) = 0").count() > 0
    assert emptied(until).collect() == []
    assert [row.group_id for row in emptied(until, once).collect()] == ["another"]
