"""The status of a group partition over a window of samples, with the figures that decide it."""

from pathlib import Path
from typing import Any

import pytest
from lag_histories import HISTORIES, MINUTE_MS, STEP_MS, rows_over
from pyspark.sql import SparkSession
from snapshot_builder import HOUR_MS

from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.catalogue.rows.groups import STATUSES
from spark_jobs.lag.status import IDLE_MS, RULES

pytestmark = pytest.mark.spark

LAG_DOC = (Path(__file__).parents[2] / "docs" / "lag.md").read_text()

CASES: dict[str, dict[str, Any]] = {
    # What a share group's start offset has not passed counts as what a commit has not.
    "share-level": {"status": "OK", "lag": 0, "burrow": None},
    "share-lost": {"status": "LOST", "lost": 60, "burrow": None},
    "leaderless": {"status": "NOT_ASSESSED", "lag": None, "status_window_ms": None, "produced_per_s": None},
    "never-committed": {"status": "NO_COMMIT", "lag": None, "lost": None, "margin": None},
    "orphan": {"status": "ORPHAN", "lag": None, "truncated": None, "burrow": None},
    "abandoned": {"status": "ABANDONED", "lag": 60},
    "lost-and-drained": {"status": "LOST", "lost": 60, "lag": 0, "margin": -60},
    "lost-and-behind": {"status": "LOST", "lost": 60, "lag": 400, "margin": -60},
    "beyond": {"status": "LOST", "beyond_end": 300, "lag": 0, "lag_ms": None, "recreated": False, "truncated": 0},
    "truncated": {"status": "LOST", "beyond_end": 300, "truncated": 300, "produced_per_s": None},
    "truncated-and-grown": {"status": "OK", "truncated": 300, "recreated": False},
    "recreated": {"status": "OK", "recreated": True, "truncated": 0, "status_window_ms": 2 * STEP_MS},
    "recreated-beyond": {"status": "LOST", "recreated": True, "truncated": None, "beyond_end": 890},
    "idle": {"status": "OK", "lag": 0, "lag_ms": 0, "lag_ms_method": "caught up", "catch_up_ms": 0, "time_to_loss_ms": None},
    "idle-once": {"status": "OK", "lag_ms_method": "caught up", "recreated": None, "truncated": None, "consumed_per_s": None},
    "idle-empty": {"status": "OK", "expires_in_ms": None},  # since when it has been empty the history does not show
    "end-read-before-commit": {"status": "OK", "lag": 0, "beyond_end": 0, "truncated": 0},
    "marker": {"status": "OK", "lag": 1, "only_markers_unread": True, "lag_ms": 0},
    "markers": {"status": "OK", "lag": 10, "only_markers_unread": True, "lag_ms": 0, "lag_ms_method": "caught up"},
    "one-record": {"status": "STALLED", "lag": 1, "only_markers_unread": False, "lag_ms": HOUR_MS, "lag_ms_method": "record timestamp"},
    "open-transaction": {"status": "OK", "lag": 100, "last_stable": 900},
    "open-transaction-left": {"status": "STOPPED", "lag": 100, "last_stable": 900},
    "first-commit": {"status": "INSUFFICIENT_HISTORY", "produced_per_s": None, "detected_within_ms": None, "lag_ms_method": "at least"},
    "two-samples": {"status": "INSUFFICIENT_HISTORY", "consumed_per_s": 0, "produced_per_s": pytest.approx(1 / 3)},
    "added-in-mid-window": {"status": "INSUFFICIENT_HISTORY", "lag": 180, "status_window_ms": STEP_MS},
    "rewound": {"status": "REWOUND", "committed": 100, "committed_before": 900, "consumed_per_s": None},
    "a-step-back": {"status": "REWOUND", "committed_before": 850, "rewinds": 1},
    "recovered": {"status": "OK", "committed_before": 950, "rewinds": 1},
    "stalled": {"status": "STALLED", "consumed_per_s": 0, "produced_per_s": pytest.approx(200 / 1200), "catch_up_ms": None},
    "stopped": {"status": "STOPPED", "lag": 300},
    # 25 minutes ago there were members yet, and offsets are kept for a day.
    "left-and-lag-grows": {"status": "STOPPED", "expires_in_ms": 24 * HOUR_MS - 25 * MINUTE_MS, "status_window_ms": 4 * STEP_MS},
    "batches": {"status": "OK", "status_window_ms": 12 * STEP_MS},  # commits 20 minutes apart
    **{f"half-hourly-{number}": {"status": "OK"} for number in range(6)},
    "dip": {"status": "GROWING", "lag": 800, "status_window_ms": 4 * STEP_MS, "detected_within_ms": 5 * STEP_MS},
    "zero": {"status": "GROWING", "lag": 80_000},
    "just-written": {"status": "OK", "lag": 1},
    "keeps-up": {"status": "OK", "lag": 60, "time_to_loss_ms": None},
    "slow": {"status": "SLOW", "lag": 5_000, "catch_up_ms": None},
    "catching-up": {"status": "OK", "lag": 5_200, "catch_up_ms": 1_950_000, "behind_sla": None},  # 5200 / (1000 - 200 in 300 s)
    "timed-catching-up": {"status": "SLOW", "catch_up_ms": 1_950_000, "behind_sla": True, "sla_seconds_asked": 600},
    "timed-steady": {"status": "OK", "behind_sla": False, "lag_ms": 450_000, "lag_ms_method": "record timestamp"},
    "timed-behind": {"status": "SLOW", "behind_sla": True},
    "timed-hole": {"status": "OK", "compacted": True, "behind_sla": False},  # no record is left between the commit and the demanded offset
    "timed-level": {"status": "OK", "behind_sla": False, "sla_seconds_asked": None},
    "timed-not-asked": {"status": "SLOW", "behind_sla": None, "sla_seconds_asked": None},
    "losing-by-time": {"status": "LOSING", "time_to_loss_ms": 10 * MINUTE_MS, "time_to_loss_by": "retention.ms", "lag_ms": 50 * MINUTE_MS},
    # 30 minutes are left, and its age grows by half a minute a minute.
    "losing-slowly": {"status": "LOSING", "time_to_loss_ms": HOUR_MS, "catch_up_ms": None},
    # 420 offsets in 1800 s less 20 in 300 s: the margin of 200 is eaten at 1/6 a second.
    "losing-by-progress": {"status": "LOSING", "margin": 200, "time_to_loss_ms": 1_200_000}
    | {"time_to_loss_by": "measured log start progress", "expired_per_s": pytest.approx(420 / 1800)},
    "in-flight": {"status": "OK", "lag": 3, "time_to_loss_ms": None},
    # What is 1,000 s old is not deleted within a day because yesterday's day was written two hundred times as fast as this night.
    "slow-at-night": {"status": "SLOW", "time_to_loss_ms": None, "consumed_per_s": 1},
    # The log start would reach the commit in 71,400 s, but its record is 4,300 s old, and its age grows by half a second a second.
    "falls-behind-by-day": {"status": "GROWING", "time_to_loss_ms": 164_200_000, "time_to_loss_by": "retention.ms"},
    "slow-at-night-by-size": {"status": "SLOW", "time_to_loss_ms": None},
    "stuck-by-size": {"status": "LOSING", "margin": 180_000, "time_to_loss_ms": 900_000, "time_to_loss_by": "measured log start progress"},
    "compacted-only": {"status": "STALLED", "compacted": True, "deletes": False, "time_to_loss_ms": None},
    "clock-ahead": {"status": "SLOW", "lag_ms": 2 * STEP_MS, "lag_ms_method": "interpolated", "lag_ms_least": STEP_MS},
    "clock-a-little-ahead": {"status": "OK", "lag_ms": 0, "lag_ms_method": "record timestamp"},
    "clock-behind": {"status": "SLOW", "lag_ms": 2 * STEP_MS, "lag_ms_method": "interpolated"},
    "written-long-before": {"status": "LOSING", "lag_ms": 400 * HOUR_MS, "lag_ms_method": "record timestamp", "time_to_loss_ms": 0},
}


def test_every_history_has_its_case() -> None:
    assert list(CASES) == list(HISTORIES)


@pytest.mark.parametrize("case", CASES)
def test_a_history_and_its_status(case: str, lag_rows) -> None:
    row = lag_rows[case]
    assert {name: row[name] for name in CASES[case]} == CASES[case], row["status_reason"]


REASONS = {
    "leaderless": "committed 95, but the log could not be read: LEADER_NOT_AVAILABLE",
    "lost-and-behind": "up to 60 deleted unread; committed 40, log 100 to 500; 400 unread",
    "truncated": "300 beyond the end: the log went back by 300",
    "recreated-beyond": "890 beyond the end: the topic was recreated",
    "rewound": "committed 900 before, 800 back; committed 100",
    "open-transaction": "an open transaction holds 100 back",
    "stopped": "no members, state Empty; unchanged in 5 samples; 300 unread; 5 samples of 1200 s",
    "dip": "lag from 100 to 800; 0.917 records/s written, 0.333 read; 5 samples of 1200 s",
    "losing-by-time": "loss in 600 s by retention.ms; at these rates never caught up; 300 unread",
    "timed-catching-up": "caught up in 1950 s at these rates; SLA 600 s; 5200 unread",
    "first-commit": "1 of 3 samples",
}


@pytest.mark.parametrize("case", REASONS)
def test_the_figures_that_decided_are_named(case: str, lag_rows) -> None:
    assert REASONS[case] in lag_rows[case]["status_reason"]


def test_every_status_is_seen_in_some_history() -> None:
    assert {case["status"] for case in CASES.values()} == {rule.status for rule in RULES} == set(STATUSES)


def test_the_document_gives_the_rules_in_their_order_and_words() -> None:
    written = [line.split(" | ") for line in LAG_DOC.split("## Status")[1].split("\n## ")[0].splitlines() if line.startswith("| `")]
    assert [(cells[0].strip("| `"), cells[1]) for cells in written] == [(rule.status, rule.words) for rule in RULES]


# How many minutes before, newest first: one that overlaps this one, a late one, and before that none for three hours.
IRREGULAR = [1 / 60, 7, 187, 192]


@pytest.fixture(scope="module")
def irregular(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    return rows_over(spark, tmp_path_factory.mktemp("root"), [float(minutes) for minutes in IRREGULAR])


def test_a_snapshot_that_was_taken_twice_is_one_sample(irregular) -> None:
    assert irregular["two-samples"]["status_reason"].startswith("1 of 3 samples")
    assert irregular["two-samples"]["consumed_per_s"] is None


def test_a_late_snapshot_counts_with_the_time_it_was_taken_at(irregular) -> None:
    row = irregular["lost-and-behind"]
    assert (row["status"], row["status_window_ms"]) == ("LOST", 7 * MINUTE_MS)
    assert row["produced_per_s"] == pytest.approx(200 / 420)


def test_a_gap_makes_the_window_and_the_time_of_detection_longer(irregular) -> None:
    row = irregular["stalled"]
    assert (row["status"], row["status_window_ms"], row["detected_within_ms"]) == ("STALLED", 187 * MINUTE_MS, 12 * HOUR_MS)
    assert "3 samples of 11220 s" in row["status_reason"]


def test_snapshots_seconds_apart_do_not_tell_that_a_group_stands_still(spark: SparkSession, tmp_path: Path) -> None:
    rows = rows_over(spark, tmp_path, [number * 0.3 for number in range(1, 5)])
    assert {name: rows[name]["status"] for name in ("stopped", "stalled", "one-record")} == dict.fromkeys(
        ("stopped", "stalled", "one-record"), "INSUFFICIENT_HISTORY"
    )
    assert "unchanged for 72 of 600 s" in rows["stopped"]["status_reason"]


def test_a_status_and_its_control_wait_for_the_same_time() -> None:
    control = next(one for one in load_catalogue().controls if one.code == "CON-06")
    assert control.parameters["idle_ms"].default == IDLE_MS


def test_a_snapshot_that_overlaps_a_newer_one_shows_no_rewind(irregular) -> None:
    row = irregular["a-step-back"]
    assert (row["status"], row["rewinds"], row["committed_before"]) == ("INSUFFICIENT_HISTORY", 0, 700)
