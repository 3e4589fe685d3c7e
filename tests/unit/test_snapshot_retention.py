"""Which snapshots go into a rolled-up day, which of them may be deleted afterwards, and which never."""

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from offsets_day import DAY, HOUR_MS, LATER, Day, names
from typer.testing import CliRunner

from kafka_audit.cli.main import app
from kafka_audit.policy import shipped_policy_folder
from kafka_audit.store import durable_files, retention
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.lag_days import LagDay, day_start_ms, needs_work
from kafka_audit.store.samples import DAY_MS, DUPLICATE, OTHER_CLUSTER, OTHER_SCOPE, read_samples


@pytest.fixture
def day(tmp_path: Path) -> Day:
    return Day(tmp_path)


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
    assert LagDay.verified(place).cluster_id == "own"
    assert not needs_work(LagDay.verified(place), day.samples(), HOUR_MS, None), (
        "a day made of what is gone is not made again of the stray one"
    )
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
    made = LagDay.verified(day.roll_up())
    write_json(one.path / "manifest.json", {**one.manifest, "note": "edited"})
    assert not needs_work(made, day.samples(), HOUR_MS, None)


def test_a_day_is_made_anew_of_another_cluster_only_while_all_that_it_was_made_of_is_there(day: Day) -> None:
    stray = day.take(1, "stray")
    made = LagDay.verified(day.roll_up())
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
