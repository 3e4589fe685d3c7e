"""Windows over the lag history: figures equal those counted by hand, whether days are rolled up or not."""

import errno
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from lag_samples import FRIDAY, cluster_at, now, policy_folder, sample, write_samples
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from snapshot_builder import CLUSTER, HOUR_MS, READ_AT

from kafka_audit.errors import CollectionError, IntegrityError
from kafka_audit.policy import Policy, load_policy
from kafka_audit.policy.burn_rates import MINUTES
from kafka_audit.policy.slas import LagSla
from kafka_audit.store.history import read_history
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from kafka_audit.store.retention import Decision, delete_expired
from kafka_audit.store.samples import OTHER_SCOPE
from kafka_audit.store.sealed import OFFSETS
from kafka_audit.store.unfinished import hidden_name
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import table_of
from spark_jobs.lag import days
from spark_jobs.lag.burns import sla_burns
from spark_jobs.lag.days import read_window, roll_up
from spark_jobs.lag.series import partition_figures
from spark_jobs.lag.slas import sla_figures, sla_samples, sla_spans
from spark_jobs.roll_up_offsets import main
from spark_jobs.rows.tiers import sla_number

pytestmark = pytest.mark.spark

DAY = date(2025, 2, 28)
Figures = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Policy:
    return load_policy(policy_folder(tmp_path_factory.mktemp("policy")))


@pytest.fixture(scope="module")
def evaluated(spark: SparkSession, policy: Policy) -> Callable[[Path], Figures]:
    """Group partition or "group sla" -> figures of the window that ends with the newest snapshot below a root."""

    def evaluate(root: Path) -> Figures:
        place = EvidenceRoot(path=root)
        snapshot = place.snapshot(CLUSTER, place.sealed_ids(CLUSTER)[-1])
        evidence = Evidence(spark=spark, snapshot=snapshot, history=read_history(snapshot, 30), small_cluster=True)
        window = read_window(evidence, policy)
        found = {f"{row.group_id}:{row.topic}-{row.partition}": row.asDict() for row in partition_figures(window).collect()}
        samples = sla_samples(window, policy.slas, sla_number(policy, "group_id", "topic"), F.lit(None).cast("string"))
        figures = sla_figures(samples, window.samples.last_ms)
        judged = figures.collect()
        for row in sla_burns(figures, window.samples, policy.slas).collect():
            found[f"newest {row.group_id} {row.sla}"] = row.asDict()
        spans = {number: (length, quiet) for number, length, quiet, *_ in sla_spans(window.samples, policy.slas)}
        for row in judged:
            length, quiet = spans[row.sla]
            hours = {"in": row.in_ms, "out": row.out_ms, "quiet": quiet, "not assessed": length - quiet - row.in_ms - row.out_ms}
            found[f"{row.group_id} {policy.slas[row.sla].name}"] = row.asDict() | {name: ms / HOUR_MS for name, ms in hours.items()}
        return found

    return evaluate


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("root")
    write_samples(place)
    now(place)
    return place


@pytest.fixture(scope="module")
def raw(root: Path, evaluated: Callable[[Path], Figures]) -> Figures:
    return evaluated(root)


@pytest.fixture(scope="module")
def rolled_root(spark: SparkSession, root: Path, raw: Figures, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("rolled") / "root"
    shutil.copytree(root, place)
    before = os.umask(0o022)
    try:
        assert roll_up(spark, EvidenceRoot(path=place), CLUSTER, DAY, 3600) == [DAY]
    finally:
        os.umask(before)
    return place


# In the window of 48 hours, 12 lie before the first sample. The sample of 04:00 stands for 05:00, too, where one run was lost, and that of
# 17:00 until 18:45; after 09:00 three were lost, so that two hours (11:00 to 13:00) are known to nobody.
HOURS = {
    "late part": {"in": 30, "out": 4, "quiet": 0, "not assessed": 14},
    # Quiet from 23:00 to 03:00 in both nights: an hour of what is out, two and four hours of what is in, and one before the first sample.
    "night nights": {"in": 24, "out": 3, "quiet": 8, "not assessed": 13},
    # It stood still for more than five hours from 02:00 to 07:00 on Saturday. Whether it moved before 00:00 and 13:00 on Friday, where no
    # sample is near, nobody knows.
    "stuck moving": {"in": 27, "out": 5, "quiet": 0, "not assessed": 16},
    # Broken in every odd hour; 09:00 stands for two hours and 17:00 until 18:45.
    "timed fast": {"in": 16.25, "out": 17.75, "quiet": 0, "not assessed": 14},
}


# Minutes of the newest 6, 24 and 72 hours: those that count (without quiet hours), in, and out.
NEWEST = {
    # The window ends on Saturday at 12:00, and the hours 7, 9 and 11 are out. On Friday, 12:00 to 13:00 is not known.
    "timed fast": {360: (360, 180, 180), 60: (60, 0, 60), 5: (5, 0, 5)},
    "night nights": {360: (360, 360, 0), 1440: (1200, 1140, 0)},
}


@pytest.mark.parametrize("case", NEWEST)
def test_minutes_of_the_newest_hours_in_and_out_of_the_sla_are_those_of_a_hand_count(case: str, raw: Figures) -> None:
    newest = raw[f"newest {case}"]
    for minutes, figures in NEWEST[case].items():
        assert tuple(newest[f"{kind}_ms_{minutes}"] / 60_000 for kind in ("counted", "in", "out")) == figures


def test_an_sla_without_a_target_has_no_error_budget_to_burn(spark: SparkSession) -> None:
    times = [f"{kind}_ms_{minutes}" for minutes in MINUTES for kind in ("in", "out")]
    columns = ", ".join(["group_id string", "sla int", *(f"{name} bigint" for name in times)])
    figures = table_of(spark, [("billing", 0, *(1 for _ in times))], columns)
    window = SimpleNamespace(last_ms=round(FRIDAY.timestamp() * 1000))
    assert sla_burns(figures, window, [LagSla(pattern="*", name="free", max_lag_records=1)]).collect() == []


@pytest.mark.parametrize("case", HOURS)
def test_hours_in_and_out_of_the_sla_are_those_of_a_hand_count(case: str, raw: Figures) -> None:
    assert {name: raw[case][name] for name in HOURS[case]} == HOURS[case]


def test_a_sample_that_could_not_be_read_is_not_assessed(raw: Figures) -> None:
    assert raw["half part"]["out"] == 0
    assert raw["half part"]["in"] + raw["half part"]["not assessed"] == 48
    assert raw["half part"]["not assessed"] > 14


PARTITIONS: Figures = {
    "late:late-0": {"samples": 33, "worst_lag": 500, "rewinds": 1, "still_ms": None},
    "late:late-1": {"samples": 17, "worst_lag": 0, "produced": 0, "consumed": 0, "recreated": 0},
    "stuck:still-0": {"still_ms": 10 * HOUR_MS},
    "mover:moves-0": {"rewinds": 1, "ends_back": 1, "recreated": 1},
    "loser:eaten-0": {"worst_lost": 40},
}


@pytest.mark.parametrize("case", PARTITIONS)
def test_figures_of_a_partition_are_those_of_a_hand_count(case: str, raw: Figures) -> None:
    assert {name: raw[case][name] for name in PARTITIONS[case]} == PARTITIONS[case]


def test_a_rolled_up_day_gives_the_same_figures(raw: Figures, rolled_root: Path, evaluated: Callable[[Path], Figures]) -> None:
    assert evaluated(rolled_root) == raw


def test_a_rolled_up_day_says_what_it_is_made_of(rolled_root: Path) -> None:
    manifest = json.loads((rolled_root / f"history/{CLUSTER}/lag/{DAY}/manifest.json").read_text())
    assert len(manifest["sources"]) == 20
    assert [(gap["from"][11:16], gap["missing"]) for gap in manifest["gaps"]] == [("05:00", 1), ("10:00", 3)]
    assert [one["reason"] for one in manifest["left_out"]] == ["is not the first of its interval"] * 2
    assert set(manifest["files"]) == {"group_partitions.parquet", "groups.parquet"}


def test_a_day_is_made_again_only_when_its_snapshots_changed(spark: SparkSession, rolled_root: Path, tmp_path: Path) -> None:
    place = EvidenceRoot(path=shutil.copytree(rolled_root, tmp_path / "root"))
    folder = place.lag_days(CLUSTER) / DAY.isoformat()
    before = (folder / "manifest.json").read_bytes()
    assert roll_up(spark, place, CLUSTER, DAY, 3600) == []
    shutil.rmtree(folder)
    assert roll_up(spark, place, CLUSTER, DAY, 3600) == [DAY]
    assert (folder / "manifest.json").read_bytes() == before
    sample(place.path, FRIDAY + timedelta(hours=11))
    assert roll_up(spark, place, CLUSTER, DAY, 3600) == [DAY]
    assert len(json.loads((folder / "manifest.json").read_text())["sources"]) == 21


def test_the_job_rolls_up_finished_days_and_refuses_one_that_is_not_over(
    root: Path, rolled_root: Path, policy: Policy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = EvidenceRoot(path=shutil.copytree(root, tmp_path / "root"))
    arguments = ["--root", str(place.path), "--cluster", CLUSTER, "--policy", str(policy.folder)]
    killed = hidden_name(place.lag_days(CLUSTER) / DAY.isoformat())
    killed.mkdir(parents=True)
    assert main([*arguments, "--until", "2025-02-28"]) == 0
    assert "rolled up 1 days: 2025-02-28" in capsys.readouterr().out
    assert not killed.exists()
    made, before = (EvidenceRoot(path=one).lag_days(CLUSTER) / DAY.isoformat() / "manifest.json" for one in (place.path, rolled_root))
    assert made.read_bytes() == before.read_bytes()
    assert main([*arguments, "--until", "2999-01-01"]) == 2
    assert "this day is not over" in capsys.readouterr().err


def test_snapshots_go_only_when_their_day_is_rolled_up_and_whole(rolled_root: Path, policy: Policy, tmp_path: Path) -> None:
    place = EvidenceRoot(path=shutil.copytree(rolled_root, tmp_path / "root"))
    later, said = READ_AT.date() + timedelta(days=30), []
    asked = delete_expired(place, CLUSTER, policy.history, later, dry_run=True)
    decided = delete_expired(place, CLUSTER, policy.history, later, said.append)
    assert asked == decided == said
    assert sum(one.goes for one in decided) == 22
    assert {one.reason for one in decided if not one.goes} == {"its day 2025-03-01 is not rolled up"}
    much_later = delete_expired(place, CLUSTER, policy.history, later + timedelta(days=400))
    assert [one.name for one in much_later if one.goes] == [DAY.isoformat()]


@dataclass(frozen=True)
class Crowded:
    """The day rolled up again with three more snapshots, and what retention then decides."""

    stray: Snapshot
    narrow: Snapshot
    full: Snapshot
    manifest: dict[str, Any]
    decided: list[Decision]


@pytest.fixture(scope="module")
def crowded(spark: SparkSession, rolled_root: Path, policy: Policy, tmp_path_factory: pytest.TempPathFactory) -> Crowded:
    place = EvidenceRoot(path=shutil.copytree(rolled_root, tmp_path_factory.mktemp("crowded") / "root"))
    last, at = FRIDAY + timedelta(hours=23, minutes=59), FRIDAY + timedelta(hours=11)
    stray = cluster_at(last).write(place.path, last, OFFSETS, cluster_id="another")
    narrow = cluster_at(at).write(place.path, at, OFFSETS, scope={"topics": ["late"], "groups": ["*"]})
    full = sample(place.path, at + timedelta(minutes=1))
    folder = place.lag_days(CLUSTER) / DAY.isoformat()
    shutil.rmtree(folder)
    assert roll_up(spark, place, CLUSTER, DAY, 3600) == [DAY]
    decided = delete_expired(place, CLUSTER, policy.history, READ_AT.date() + timedelta(days=30))
    return Crowded(stray, narrow, full, json.loads((folder / "manifest.json").read_text()), decided)


def test_one_stray_snapshot_at_the_end_of_a_day_takes_none_of_its_samples_away(crowded: Crowded) -> None:
    assert (crowded.manifest["cluster_id"], len(crowded.manifest["sources"])) == ("cluster-id", 20 + 1)
    reason = "is of another cluster that had this name"
    assert {"snapshot_id": crowded.stray.snapshot_id, "reason": reason} in crowded.manifest["left_out"]
    assert sum(one.goes for one in crowded.decided) == 22 + 1
    assert crowded.stray.path.is_dir()


def test_a_narrow_snapshot_displaces_no_full_one_and_is_never_deleted(crowded: Crowded) -> None:
    assert crowded.full.snapshot_id in {source["snapshot_id"] for source in crowded.manifest["sources"]}
    assert {"snapshot_id": crowded.narrow.snapshot_id, "reason": OTHER_SCOPE} in crowded.manifest["left_out"]
    assert crowded.full.snapshot_id in {one.name for one in crowded.decided if one.goes}
    assert crowded.narrow.path.is_dir()


def test_a_rolled_up_day_is_for_owner_and_group_only_and_leaves_no_hidden_name(rolled_root: Path) -> None:
    made = [rolled_root / "history", *(rolled_root / "history").rglob("*")]
    assert {oct(path.stat().st_mode & 0o777) for path in made if path.is_dir()} == {"0o750"}
    assert {oct(path.stat().st_mode & 0o777) for path in made if path.is_file()} == {"0o640"}
    assert [path for path in made if path.name.startswith(".")] == []


def test_without_its_snapshots_a_rolled_up_day_gives_the_same_figures_and_stays(
    spark: SparkSession, rolled_root: Path, raw: Figures, evaluated: Callable[[Path], Figures], tmp_path: Path
) -> None:
    place = EvidenceRoot(path=shutil.copytree(rolled_root, tmp_path / "root"))
    for snapshot_id in place.sealed_ids(CLUSTER, OFFSETS):
        if snapshot_id.startswith("20250228"):
            shutil.rmtree(place.snapshot_dir(CLUSTER, snapshot_id, OFFSETS))
    assert evaluated(place.path) == raw
    assert roll_up(spark, place, CLUSTER, DAY, 3600) == []


def test_a_changed_snapshot_and_one_of_another_cluster_or_scope_are_left_out(
    root: Path, raw: Figures, evaluated: Callable[[Path], Figures], tmp_path: Path
) -> None:
    place = EvidenceRoot(path=shutil.copytree(root, tmp_path / "root"))
    foreign = sample(place.path, FRIDAY + timedelta(hours=11), lag=900)
    manifest = json.loads((foreign.path / "manifest.json").read_text())
    (foreign.path / "manifest.json").write_text(json.dumps({**manifest, "cluster_id": "another"}))
    set_back = sample(place.path, FRIDAY + timedelta(hours=12), lag=900)
    manifest = json.loads((set_back.path / "manifest.json").read_text())
    (set_back.path / "manifest.json").write_text(json.dumps({**manifest, "finished_at": "2025-02-28T11:00:00Z"}))
    at = FRIDAY + timedelta(hours=13)
    cluster_at(at - timedelta(hours=1), lag=900).write(place.path, at - timedelta(hours=1), scope={"topics": ["late"]})
    cluster_at(at, lag=900).write(place.path, at - timedelta(hours=2), OFFSETS, "narrow", scope={"groups": ["late"]})
    assert evaluated(place.path) == raw
    changed = place.sealed_ids(CLUSTER, OFFSETS)[3]
    with place.snapshot(CLUSTER, changed, OFFSETS).dataset("offsets").open("ab") as stream:
        stream.write(b"x")
    figures = evaluated(place.path)["late part"]  # the sample of 02:00 stands for 03:00, too
    assert (figures["samples"], figures["out"]) == (raw["late part"]["samples"] - 1, 4)


def test_a_disk_that_is_full_in_the_middle_of_a_roll_up_keeps_the_day_as_it_was(
    spark: SparkSession, rolled_root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = EvidenceRoot(path=shutil.copytree(rolled_root, tmp_path / "root"))
    sample(place.path, FRIDAY + timedelta(hours=11))
    before = {path: path.read_bytes() for path in place.path.rglob("*") if path.is_file()}

    def full(_tables: object, _rows: object, _order: object, target: Path) -> None:
        target.write_bytes(b"half")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(days, "write_one_file", full)
    with pytest.raises(CollectionError, match="the disk is full"):
        roll_up(spark, place, CLUSTER, DAY, 3600)
    assert {path: path.read_bytes() for path in place.path.rglob("*") if path.is_file()} == before


def test_a_broken_day_is_made_again_only_while_its_snapshots_are_there(spark: SparkSession, rolled_root: Path, tmp_path: Path) -> None:
    place = EvidenceRoot(path=shutil.copytree(rolled_root, tmp_path / "root"))
    broken = place.lag_days(CLUSTER) / DAY.isoformat() / "groups.parquet"
    broken.write_bytes(b"x")
    assert roll_up(spark, place, CLUSTER, DAY, 3600) == [DAY]
    broken.write_bytes(b"x")
    shutil.rmtree(place.snapshot_dir(CLUSTER, place.sealed_ids(CLUSTER, OFFSETS)[3], OFFSETS))
    with pytest.raises(IntegrityError, match=str(broken.parent)):
        roll_up(spark, place, CLUSTER, DAY, 3600)
    assert broken.read_bytes() == b"x"
