"""A broken snapshot or rolled-up day is reported and kept, and stops neither the roll-up nor the retention."""

import os
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from offsets_day import DAY, HOUR_MS, LATER, Day, names

from kafka_audit.store import durable_files
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.lag_days import LagDay, can_be_replaced, needs_work, read_days, snapshot_days


@pytest.fixture
def day(tmp_path: Path) -> Day:
    return Day(tmp_path)


BROKEN: dict[str, dict[str, object]] = {
    "a list as scope": {"scope": [1]},
    "a number as topics": {"scope": {"topics": 5}},
    "a time before the calendar": {"started_at": "0001-01-01T00:00:00+14:00"},
    "a time after the calendar": {"started_at": "9999-12-31T23:59:59-14:00"},
    "an end that is no time": {"finished_at": "0001-01-01T00:00:00+14:00"},
    "a list as cluster": {"cluster_id": ["own"]},
    "no id": {"snapshot_id": None},
    "another cluster's name": {"cluster": "other"},
    "half a character": {"files": {"\ud800": {}}},
    "deep JSON": {},
}


@pytest.mark.parametrize("harm", BROKEN)
def test_a_broken_snapshot_is_left_out_with_the_reason_and_never_deleted_and_stops_nothing(day: Day, harm: str) -> None:
    own, broken = day.take(1), day.take(2)
    write_json(broken.path / "manifest.json", {**broken.manifest, **BROKEN[harm]})
    if not BROKEN[harm]:
        (broken.path / "manifest.json").write_text('{"a":' * 100_000)
    assert names(day.samples().used) == [own.snapshot_id]
    ((left_out, reason),) = day.samples().left_out
    assert (left_out, bool(reason)) == (broken.snapshot_id, True)
    place = day.roll_up()
    assert not needs_work(LagDay.verified(place), day.samples(), HOUR_MS, None)
    for today in (LATER, LATER + timedelta(days=1000)):
        decided = day.delete(today)
        assert not decided[broken.snapshot_id].goes
        assert decided[broken.snapshot_id].reason
    assert day.kept == {broken.snapshot_id}
    assert place.is_dir(), "it tells that the snapshot was left out"


def test_a_copy_of_a_snapshot_under_another_id_is_no_sample_and_stays(day: Day) -> None:
    own = day.take(1)
    copy = own.path.with_name(f"{own.snapshot_id[:-1]}{'0' if own.snapshot_id[-1] != '0' else '1'}")
    shutil.copytree(own.path, copy)
    assert names(day.samples().used) == [own.snapshot_id]
    day.roll_up()
    assert {name: one.goes for name, one in day.delete().items()} == {own.snapshot_id: True, copy.name: False}


@pytest.mark.parametrize("days", [-1, 0, 1])
def test_a_day_stays_while_an_unreadable_snapshot_is_there_that_it_may_name(day: Day, days: int) -> None:
    """An id carries the time for which a run was planned, and the day before or after it may be that of the manifest."""
    day.take(1)
    unreadable = day.take(24 * days + 2)
    (unreadable.path / "manifest.json").write_text("{")
    place = day.roll_up()
    assert [name for name, _ in day.samples().left_out] == [unreadable.snapshot_id]
    much_later = LATER + timedelta(days=1000)
    assert not day.delete(much_later)["2026-07-20"].goes
    durable_files.remove_folder(unreadable.path)
    assert day.delete(much_later)["2026-07-20"].goes
    assert not place.exists()


def test_only_a_folder_that_is_named_as_days_are_is_one(day: Day) -> None:
    day.take(1)
    place = day.roll_up()
    others = [place.with_name(name) for name in ("20260720", "2026-W30-1", "2026-07-20.copy")]
    for other in others:
        shutil.copytree(place, other)
    assert day.delete(LATER + timedelta(days=1000))["2026-07-20"].goes
    assert not place.exists()
    assert all(other.is_dir() for other in others)


@pytest.mark.parametrize("stamp", ["20261399", "00010101", "99991231"])
def test_an_id_of_an_impossible_day_stops_neither_the_roll_up_nor_the_retention(day: Day, stamp: str) -> None:
    own = day.take(1)
    stray = own.path.with_name(f"{stamp}T000000Z-0123456789abcdef")
    shutil.copytree(own.path, stray)
    assert DAY in snapshot_days(day.root, "prod")
    assert not day.delete()[stray.name].goes


@pytest.mark.parametrize("content", ['{"a":' * 100_000, "fifo"], ids=["deep", "pipe"])
def test_a_day_whose_manifest_cannot_be_read_keeps_its_snapshots_and_stops_nothing(day: Day, content: str) -> None:
    one = day.take(1)
    manifest = day.roll_up() / "manifest.json"
    if content == "fifo":
        manifest.unlink()
        os.mkfifo(manifest)
    else:
        manifest.write_text(content)
    for today in (DAY + timedelta(days=1), LATER):
        assert not any(found.goes for found in day.delete(today).values())
    days, problems = read_days(day.root, "prod", DAY, DAY)
    assert (days, len(problems)) == ([], 1)
    assert not can_be_replaced(manifest.parent, day.samples())
    assert day.kept == {one.snapshot_id}
