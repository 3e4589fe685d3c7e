"""Which snapshots a day is made of, which of them may go once it is rolled up, and which never do."""

import os
import shutil
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from typer.testing import CliRunner

from kafka_audit import durable_files, retention
from kafka_audit.cli import app
from kafka_audit.durable_files import replaced_folder, write_json
from kafka_audit.evidence import OFFSETS, EvidenceRoot, Snapshot, new_id, open_snapshot
from kafka_audit.lag_days import can_be_replaced, day_start_ms, manifest_of, needs_work, open_day, read_days, snapshot_days
from kafka_audit.lag_samples import DAY_MS, DUPLICATE, OTHER_CLUSTER, OTHER_SCOPE, Samples, read_samples
from kafka_audit.manifest import tree_files
from kafka_audit.policy import shipped_policy_folder
from kafka_audit.policy.tiers import History
from kafka_audit.retention import Decision, delete_expired

DAY = date(2026, 7, 20)
LATER = date(2026, 8, 20)
HOUR_MS = 3_600_000


class Day:
    """Offsets snapshots of one UTC day, and the day as the roll-up makes it of them (its tables do not matter here)."""

    def __init__(self, root: Path) -> None:
        self.root = EvidenceRoot(path=root)

    def take(self, hour: float, cluster_id: str | None = "own", **fields: object) -> Snapshot:
        at = datetime(DAY.year, DAY.month, DAY.day, tzinfo=timezone.utc) + timedelta(hours=hour)
        with self.root.snapshot_writer("prod", new_id(at, f"{hour} {cluster_id}"), OFFSETS) as writer:
            writer.write("offsets", pa.table({"log_end": [hour]}))
            said = {"cluster_id": cluster_id, "started_at": at.isoformat(), "finished_at": at.isoformat(), **fields}
            return open_snapshot(writer.seal(said))

    def samples(self, before: str | None = None) -> Samples:
        start = day_start_ms(DAY)
        found = {"first_ms": start, "last_ms": start + DAY_MS, "interval_ms": HOUR_MS}
        return read_samples(self.root, "prod", **found, cluster_id=None, before=before)

    def roll_up(self, before: str | None = None) -> Path:
        place = self.root.lag_days("prod") / DAY.isoformat()
        with replaced_folder(place) as folder:
            (folder / "groups.parquet").write_bytes(b"rows")
            said = manifest_of("prod", DAY, self.samples(before), HOUR_MS, None)
            write_json(folder / "manifest.json", {**said, "files": tree_files(folder)})
        return place

    def delete(self, today: date = LATER, **how: bool) -> dict[str, Decision]:
        return {one.name: one for one in delete_expired(self.root, "prod", History(), today, **how)}

    @property
    def kept(self) -> set[str]:
        return set(self.root.snapshot_ids("prod", OFFSETS))


@pytest.fixture
def day(tmp_path: Path) -> Day:
    return Day(tmp_path)


def names(snapshots: Sequence[Snapshot]) -> list[str]:
    return [one.snapshot_id for one in snapshots]


def test_one_stray_snapshot_at_the_end_takes_no_day_away_and_is_not_deleted_with_it(day: Day) -> None:
    own, stray = [day.take(hour) for hour in range(24)], day.take(23.9, "stray")
    assert names(day.samples().used) == names(own)
    assert day.samples().left_out == ((stray.snapshot_id, OTHER_CLUSTER),)
    day.roll_up()
    decided = day.delete()
    assert {name for name, one in decided.items() if one.goes} == set(names(own))
    assert day.kept == {stray.snapshot_id}
    assert str(decided[stray.snapshot_id]) == (
        f"{stray.snapshot_id} stays: the rolled-up day 2026-07-20 left it out: it is of another cluster that had this name"
    )


def test_ten_foreign_snapshots_of_one_hour_do_not_outvote_two_hours(day: Day) -> None:
    own = [day.take(hour) for hour in range(2)]
    for number in range(10):
        day.take(1 + number / 20, "foreign")
    assert names(day.samples().used) == names(own)


def test_of_a_day_that_two_clusters_share_neither_half_is_lost(day: Day) -> None:
    old, new = [day.take(hour) for hour in range(12)], [day.take(12 + hour, "rebuilt") for hour in range(12)]
    assert names(day.samples().used) == names(old)  # seen first
    assert names(day.samples(before="rebuilt").used) == names(new)
    day.roll_up(before="own")
    day.delete()
    assert day.kept == set(names(new))
    start = day_start_ms(DAY)
    audited = read_samples(day.root, "prod", first_ms=start, last_ms=start + DAY_MS, interval_ms=HOUR_MS, cluster_id="rebuilt")
    assert names(audited.used) == names(new)


def test_a_snapshot_that_does_not_name_its_cluster_is_of_none(day: Day) -> None:
    own, nameless = day.take(1), day.take(2, None)
    assert names(day.samples().used) == [own.snapshot_id]
    assert day.samples().left_out == ((nameless.snapshot_id, "does not say which cluster it is of"),)


def test_what_was_left_out_as_changed_or_of_another_scope_stays_and_is_named_in_every_run(day: Day) -> None:
    own, changed, narrow = day.take(1), day.take(2), day.take(3, scope={"topics": ["orders"]})
    changed.dataset("offsets").write_bytes(b"!")
    day.roll_up()
    for today in (DAY + timedelta(days=1), LATER, LATER):
        decided = day.delete(today)
        assert decided[narrow.snapshot_id].reason == f"the rolled-up day 2026-07-20 left it out: it {OTHER_SCOPE}"
        assert "sha256 differs" in decided[changed.snapshot_id].reason
        assert not any(decided[one.snapshot_id].goes for one in (changed, narrow))
    assert day.kept == {changed.snapshot_id, narrow.snapshot_id}
    assert own.snapshot_id not in day.kept


def test_a_second_snapshot_of_an_interval_goes_with_the_first(day: Day) -> None:
    first, second = day.take(1), day.take(1.5)
    assert day.samples().left_out == ((second.snapshot_id, DUPLICATE),)
    day.roll_up()
    assert {name for name, one in day.delete().items() if one.goes} == {first.snapshot_id, second.snapshot_id}


def test_a_day_stays_however_old_while_a_snapshot_that_it_left_out_is_there(day: Day) -> None:
    day.take(1)
    day.take(2)
    stray = day.take(2.5, "stray")
    place = day.roll_up()
    much_later = LATER + timedelta(days=1000)
    assert day.delete(much_later)["2026-07-20"].reason == "it tells why snapshots of that day were left out, and these are still there"
    assert open_day(place).cluster_id == "own"
    assert not needs_work(open_day(place), day.samples(), HOUR_MS, None), "a day made of what is gone is not made anew of the stray one"
    durable_files.remove_folder(stray.path)
    assert day.delete(much_later)["2026-07-20"].goes
    assert not place.exists()


@pytest.mark.parametrize("harm", ["a file of it", "its manifest", "another cluster's"])
def test_snapshots_stay_when_their_day_is_not_what_was_sealed(day: Day, harm: str) -> None:
    one = day.take(1)
    place = day.roll_up()
    if harm == "a file of it":
        (place / "groups.parquet").write_bytes(b"other")
    elif harm == "its manifest":
        (place / "manifest.json").write_text('{"kind": "lag_day", "schema_version": 1, "files": {}}')
    else:
        write_json(place / "manifest.json", {**durable_files.read_json(place / "manifest.json"), "cluster": "other"})
    assert not day.delete()[one.snapshot_id].goes
    assert day.kept == {one.snapshot_id}


def test_a_snapshot_that_is_not_the_one_that_was_rolled_up_stays(day: Day) -> None:
    one, other = day.take(1), day.take(2)
    day.roll_up()
    one.dataset("offsets").write_bytes(b"!")
    write_json(other.path / "manifest.json", {**other.manifest, "note": "edited"})
    reasons = {name: found.reason for name, found in day.delete().items()}
    assert "it was changed since the day 2026-07-20 was rolled up: offsets.parquet: its sha256 differs" in reasons[one.snapshot_id]
    assert reasons[other.snapshot_id] == "it was changed since the day 2026-07-20 was rolled up"
    assert day.kept == set(names([one, other]))


def test_a_day_that_was_made_is_kept_when_one_of_its_snapshots_was_rewritten(day: Day) -> None:
    one = day.take(1)
    made = open_day(day.roll_up())
    write_json(one.path / "manifest.json", {**one.manifest, "note": "edited"})
    assert not needs_work(made, day.samples(), HOUR_MS, None)


def test_a_day_is_made_anew_of_another_cluster_only_while_all_that_it_was_made_of_is_there(day: Day) -> None:
    stray = day.take(1, "stray")
    made = open_day(day.roll_up())
    for hour in range(2, 5):
        day.take(hour)  # they come late, from a collector without a network
    assert needs_work(made, day.samples(), HOUR_MS, None)
    durable_files.remove_folder(stray.path)
    assert not needs_work(made, day.samples(), HOUR_MS, None)


def test_a_day_is_durable_before_the_first_of_its_snapshots_goes(day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    day.take(1)
    place = day.roll_up()
    done: list[tuple[str, Path]] = []

    def noted(name: str, call: Callable[[Path], None]) -> Callable[[Path], None]:
        return lambda path: (done.append((name, path)), call(path))[1]

    for name in ("sync_tree", "sync_folder", "remove_folder"):
        monkeypatch.setattr(retention, name, noted(name, getattr(retention, name)))
    day.delete()
    before = [path for name, path in done[: [name for name, _ in done].index("remove_folder")]]
    assert before == [place, *place.parents[:4]]
    assert place.parents[3] == day.root.path


def test_without_a_durable_day_nothing_goes(day: Day, monkeypatch: pytest.MonkeyPatch) -> None:
    one = day.take(1)
    day.roll_up()

    def refused(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(retention, "sync_tree", refused)
    assert "cannot be made durable" in day.delete()[one.snapshot_id].reason
    assert day.kept == {one.snapshot_id}


def test_the_command_lists_what_would_go_and_what_stays_and_deletes_only_by_a_policy_that_is_named(
    day: Day, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, stray = [day.take(hour) for hour in range(3)], day.take(2.5, "stray")
    day.roll_up()

    def run(*arguments: str) -> tuple[int, str, BaseException | None]:
        done = CliRunner().invoke(app, ["retention", "--cluster", "prod", "--root", str(day.root.path), *arguments])
        return done.exit_code, done.output, done.exception

    policy = tmp_path / "policy"
    policy.mkdir()
    for file in ("tiers.yaml", "slas.yaml"):
        shutil.copy(shipped_policy_folder() / file, policy)
    monkeypatch.delenv("KAFKA_AUDIT_POLICY", raising=False)
    assert "evidence is not deleted by the shipped one" in str(run()[2])
    code, said, _ = run("--dry-run")
    assert (code, said.splitlines()[-1]) == (0, "3 would go, 1 expired or left out stay")
    assert said.startswith("Policy shipped: keeps offsets snapshots ")
    assert f"{own[0].snapshot_id} goes: it is older than" in said
    assert f"{stray.snapshot_id} stays: the rolled-up day" in said
    assert day.kept == set(names([*own, stray]))
    assert "check --root and --cluster" in str(run("--dry-run", "--cluster", "typo")[2])
    monkeypatch.setenv("KAFKA_AUDIT_POLICY", str(policy))
    assert run()[1].splitlines()[-1] == "3 deleted, 1 expired or left out stay"
    assert day.kept == {stray.snapshot_id}


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
    assert not needs_work(open_day(place), day.samples(), HOUR_MS, None)
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
