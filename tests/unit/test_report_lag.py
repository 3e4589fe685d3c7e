"""Lag and loss in the report: lost records, time to loss, SLAs and histories of groups."""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from lag_rows import group_sla, lag_bucket, series_table, sla_table
from report_audit import GROUP_PARTITIONS, HOSTILE_GROUPS, FakeAudit, group_partition
from test_report_html import Page

from kafka_audit.errors import IntegrityError
from kafka_audit.report import Report, read_report
from kafka_audit.report.html import render
from kafka_audit.report.json_report import as_json
from kafka_audit.report.lag_history import read_histories
from kafka_audit.report.words import lag_time

HOUR = 3_600_000
DAY = 24 * HOUR


def read(root: Path, partitions: list[dict[str, object]], **further: Any) -> Report:
    fake = FakeAudit(root, ())
    fake.settings([])
    fake.lag([], partitions, **further)
    return read_report(*fake.inputs.args, **fake.inputs.kwargs)


def text_of(report: Report) -> str:
    return Page(render(report)).text


def test_loss_that_happened_and_the_soonest_loss_stand_beside_the_verdict(tmp_path: Path) -> None:
    rows = [
        group_partition("a", "t", 0, lost=1200, status="LOST"),
        group_partition("a", "t", 1, lost=34, status="LOST"),
        group_partition("b", "t", 0, lag=9, time_to_loss_ms=3 * HOUR, time_to_loss_by="retention.ms", status="LOSING"),
        group_partition("c", "t", 0, lag=9, time_to_loss_ms=2 * DAY, status="OK"),
    ]
    report = read(tmp_path, rows)
    loss = report.lag.loss
    assert (loss.records, loss.partitions, loss.groups, loss.within_a_day) == (1234, 2, 1, 1)
    assert [one.group_id for one in loss.next] == ["b", "c"]
    sentence = (
        "Up to 1,234 records were deleted unread on 2 partitions of 1 group. At the rates seen, 1 partition loses unread records in 3 h."
    )
    assert as_json(report)["lag"]["loss"]["sentence"] == sentence
    text = text_of(report)
    assert "Loss that has happened 1,234 records at most, deleted unread on 2 partitions of 1 group." in text
    assert "About to be lost in 3 h first t-0, unread by b; 1 partition within a day, at the rates seen." in text


def test_without_loss_nothing_is_said_beside_the_verdict(tmp_path: Path) -> None:
    report = read(tmp_path, [group_partition("a", "t", 0, time_to_loss_ms=2 * DAY)])
    assert as_json(report)["lag"]["loss"]["sentence"] == ""
    text = text_of(report)
    assert "Loss that has happened None No record was deleted before its group read it, on 1 partition." in text
    assert "No partition with known offsets lost a record" in text


def test_lag_results_without_a_column_are_refused(tmp_path: Path) -> None:
    with pytest.raises(IntegrityError, match=r"it has no columns .*status.*time_to_loss_ms.*run the step that writes it again"):
        read(tmp_path, [group_partition("a", "t", 0, lag=9)], schema=GROUP_PARTITIONS)


@pytest.mark.parametrize("name", ["group_slas", "lag_series"])
def test_lag_results_without_one_of_their_files_are_refused(tmp_path: Path, name: str) -> None:
    fake = FakeAudit(tmp_path, ())
    fake.settings([])
    fake.lag([], [group_partition("a", "t", 0)])
    shutil.rmtree(fake.audit.lag / f"{name}.parquet")
    with pytest.raises(IntegrityError, match=f"{name}.parquet: cannot be read as Parquet"):
        read_report(*fake.inputs.args, **fake.inputs.kwargs)


def test_a_group_without_slas_and_history_says_so(tmp_path: Path) -> None:
    report = read(tmp_path, [group_partition("a", "t", 0)], group_slas=sla_table([]), lag_series=series_table([]))
    (group,) = report.lag.groups
    assert (group.slas, group.history, group.lag_ms, group.time_to_loss_ms) == ((), None, None, None)
    text = text_of(report)
    assert "No SLA covers this group" in text
    assert "No history of this group's lag" in text


def test_statuses_of_a_group_are_counted_worst_first_and_a_missing_one_is_not_assessed(tmp_path: Path) -> None:
    words = ("OK", "STALLED", "OK", None)
    report = read(tmp_path, [group_partition("a", "t", number, status=word) for number, word in enumerate(words)])
    assert report.lag.groups[0].statuses == (("STALLED", 1), ("NOT_ASSESSED", 1), ("OK", 2))
    assert as_json(report)["lag"]["groups"][0]["statuses"] == {"STALLED": 1, "NOT_ASSESSED": 1, "OK": 2}


def test_groups_that_lost_come_before_groups_that_will_and_these_before_the_stalled(tmp_path: Path) -> None:
    rows = [
        group_partition("growing", "t", 0, lag=10**9, status="GROWING"),
        group_partition("stalled", "t", 0, lag=1, status="STALLED"),
        group_partition("losing", "t", 0, lag=1, status="LOSING", time_to_loss_ms=HOUR),
        group_partition("lost", "t", 0, lost=1, status="LOST"),
    ]
    assert [one.group_id for one in read(tmp_path, rows).lag.groups] == ["lost", "losing", "stalled", "growing"]


def test_a_groups_lag_in_time_is_a_bound_when_a_partitions_is_one_or_not_known(tmp_path: Path) -> None:
    exact = {"lag": 5, "lag_ms": 2 * HOUR, "lag_ms_method": "record timestamp", "lag_ms_is_bound": False}
    rows = [
        group_partition("exact", "t", 0, **exact),
        group_partition("bound", "t", 0, **exact),
        group_partition("bound", "t", 1, lag=5, lag_ms=HOUR, lag_ms_method="at least", lag_ms_is_bound=True),
        group_partition("unknown", "t", 0, **exact),
        group_partition("unknown", "t", 1, lag=5, lag_ms=None),
        group_partition("none", "t", 0, lag=5, lag_ms=None),
    ]
    shown = {
        one.group_id: (lag_time(one.lag_ms, one.lag_ms_is_bound, one.lag_ms_method), one.lag_ms_method)
        for one in read(tmp_path, rows).lag.groups
    }
    assert shown == {
        "exact": ("2 h", "record timestamp"),
        "bound": ("\u2265 2 h", "record timestamp"),
        "unknown": ("\u2265 2 h", "record timestamp"),
        "none": ("\u2013", None),
    }


def test_an_sla_shows_availability_target_and_what_is_left_of_the_error_budget(tmp_path: Path) -> None:
    spent = {"availability_percent": 98.75, "minutes_out": 540, "budget_used_minutes": 540.0, "budget_left_minutes": -324.0}
    slas = [group_sla("good"), group_sla("bad", **spent)]
    report = read(tmp_path, [group_partition(one, "t", 0) for one in ("good", "bad")], group_slas=sla_table(slas))
    assert [(one.group_id, one.slas[0].target_met) for one in report.lag.groups] == [("bad", False), ("good", True)]
    text = text_of(report)
    assert "Below target SLA interactive" in text
    assert (
        "Inside in 98.75% of the time that is known, target 99.5% over 30 days. Error budget 216 min: 540 min used, overspent by 324 min."
        in text
    )
    assert "Inside in 99.9% of the time that is known, target 99.5% over 30 days. Error budget 216 min: 44 min used, 172 min left." in text


def test_an_sla_of_which_too_little_is_known_is_neither_met_nor_missed(tmp_path: Path) -> None:
    little = {"minutes_in": 600, "minutes_out": 0, "minutes_not_assessed": 42_600, "availability_percent": 100.0}
    nothing = {"minutes_in": 0, "minutes_out": 0, "minutes_not_assessed": 43_200, "availability_percent": None}
    slas = sla_table([group_sla("a", **little), group_sla("b", **nothing), group_sla("c", sla=None)])
    report = read(tmp_path, [group_partition(one, "t", 0) for one in "abc"], group_slas=slas)
    assert [[sla.target_met for sla in one.slas] for one in report.lag.groups] == [[None], [None], []]
    assert "Target met" not in text_of(report)


def test_an_availability_of_seconds_says_how_little_is_known(tmp_path: Path) -> None:
    seconds = {"minutes_in": 0, "minutes_out": 0, "minutes_not_assessed": 43_200, "availability_percent": 100.0}
    report = read(tmp_path, [group_partition("a", "t", 0)], group_slas=sla_table([group_sla("a", **seconds)]))
    assert "Inside in 100% of the time that is known (less than a minute), target 99.5% over 30 days." in text_of(report)


def test_buckets_that_are_absent_or_of_which_nothing_is_known_stay_gaps(tmp_path: Path) -> None:
    series = [lag_bucket("a", 0, 7), lag_bucket("a", 2, 0, known_share=0.0), lag_bucket("b", 1), lag_bucket("b", 3, known_share=0.5)]
    report = read(tmp_path, [group_partition(one, "t", 0) for one in "ab"], lag_series=series_table(series))
    a, b = (one.history for one in report.lag.groups)
    assert a is not None
    assert b is not None
    assert (a.lag, a.known_share, a.in_sla_share) == ((7, None, None, None), (1.0, 0.0, 0.0, 0.0), (1.0, None, None, None))
    assert (b.lag, b.known_share) == ((None, 5, None, 5), (0.0, 1.0, 0.0, 0.5))
    assert a.step_ms == HOUR


def test_a_limit_that_is_proven_broken_is_outside_although_not_all_of_the_lag_is_known(tmp_path: Path) -> None:
    series = [lag_bucket("a", 0, known_share=0.0, in_sla_share=0.0), lag_bucket("a", 1, known_share=0.0, in_sla_share=1.0)]
    found = read(tmp_path, [group_partition("a", "t", 0)], lag_series=series_table(series)).lag.groups[0].history
    assert found is not None
    assert (found.in_sla_share, found.lag) == ((0.0, None), (None, None))


def test_only_an_sla_of_the_whole_group_is_a_limit_of_its_lag(tmp_path: Path) -> None:
    slas = [group_sla("whole"), group_sla("part", partition_count=1), group_sla("two"), group_sla("two", sla="other")]
    rows = [group_partition(one, "t", number) for one, number in (("whole", 0), ("part", 0), ("part", 1), ("two", 0))]
    report = read(tmp_path, rows, group_slas=sla_table(slas))
    assert {one.group_id: one.limit_records for one in report.lag.groups} == {"whole": 1000, "part": None, "two": None}


def test_a_long_history_is_folded_to_the_worst_of_each_column(tmp_path: Path) -> None:
    series = [lag_bucket("a", hour, hour, in_sla_share=0.0 if hour == 700 else 1.0) for hour in range(720) if hour != 5]
    report = read(tmp_path, [group_partition("a", "t", 0)], lag_series=series_table(series))
    found = report.lag.groups[0].history
    assert found is not None
    assert (len(found.lag), found.step_ms, found.lag[0], found.lag[-1]) == (240, 3 * HOUR, 2, 719)
    assert found.known_share[1] == round(2 / 3, 6)
    assert found.in_sla_share[233] == round(2 / 3, 6)


def test_every_group_with_a_history_has_a_chart_with_ids_of_its_own(tmp_path: Path) -> None:
    names = [*HOSTILE_GROUPS, *(f"g{number}" for number in range(8))]
    series = [lag_bucket(name, hour) for name in names for hour in range(3)]
    page = Page(render(read(tmp_path, [group_partition(name, "t", 0) for name in names], lag_series=series_table(series))))
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert sum(attributes.get("role") == "img" for _, attributes in page.tags) == len(names)
    assert len(ids) == len(set(ids))


def test_a_partition_shows_status_figures_and_what_burrow_would_say(tmp_path: Path) -> None:
    row = group_partition(
        *("a", "t", 0),
        **{"lag": 9, "status": "STALLED", "status_reason": "no commit moved in 2 h", "burrow": "STALL", "margin": 77, "compacted": True},
        **{"lag_ms": HOUR, "lag_ms_method": "interpolated", "lag_ms_least": HOUR, "lag_ms_most": HOUR + 300_000, "truncated": 12},
        **{"produced_per_s": 2.0, "consumed_per_s": 0.0, "expired_per_s": 0.5, "behind_sla": True, "only_markers_unread": True},
    )
    text = text_of(read(tmp_path, [row]))
    for part in (
        *("STALLED", "behind its SLA", "no commit moved in 2 h", "Burrow would say STALL", "compacted: upper bounds"),
        *("transactional: only markers or aborted records unread", "log end went back by 12", "interpolated, 1 h to 1 h 5 min"),
        *("written 2/s, read 0/s, deleted 1,800/h",),
    ):
        assert part in text


def test_the_json_of_lag_is_plain_json(tmp_path: Path) -> None:
    report = read(
        tmp_path,
        [group_partition("a", "t", 0, lost=1, time_to_loss_ms=0)],
        group_slas=sla_table([group_sla("a")]),
        lag_series=series_table([lag_bucket("a", 0)]),
    )
    lag = json.loads(json.dumps(as_json(report)["lag"]))
    assert lag["groups"][0]["slas"][0]["target_met"] is True
    assert lag["groups"][0]["history"]["lag"] == [5]
    assert lag["loss"]["happened"][0]["group_id"] == "a"
    assert lag["loss"]["sentence"].endswith("1 partition loses unread records now.")


def test_a_cluster_without_groups_has_no_histories(tmp_path: Path) -> None:
    pq.write_table(series_table([]), tmp_path / "lag_series.parquet")
    assert read_histories(tmp_path / "lag_series.parquet", ()) == {}
