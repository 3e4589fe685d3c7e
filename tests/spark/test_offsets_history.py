"""The folder of a commit history: what it keeps and refuses, and how completeness is computed. Needs no Kafka."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from coordinator_records import recorded
from pyspark.sql import SparkSession

from kafka_audit.errors import IntegrityError
from kafka_audit.store import durable_files
from kafka_audit.store.commit_batches import REPAIR_OF_DECODED, note_reached, verify_batch
from kafka_audit.store.durable_files import sync_tree, write_json
from kafka_audit.store.unfinished import hidden_name
from spark_jobs.commit_history.describe.behaviour_tables import newest_record
from spark_jobs.commit_history.history import History
from spark_jobs.commit_history.read.raw_writer import coverage, totals
from spark_jobs.commit_history.read.source import TOPIC, Bounds

START = {0: 0, 1: 0}


def bounds(*, cluster: str = "cluster", end: int = 10_000, start: int = 0) -> Bounds:
    every = dict.fromkeys(range(50), end)
    return Bounds(cluster_id=cluster, topic_id="topic", log_start=dict.fromkeys(every, start), last_stable=every, log_end=every)


def planned(folder: Path, *ends: int) -> History:
    """A checkpoint as Spark leaves it when the batches up to ``ends`` are planned."""
    history = History(path=folder)
    for name, offset in [("sources/0/0", 0), *((f"offsets/{n}", end) for n, end in enumerate(ends))]:
        path = folder / "checkpoint" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        offsets = json.dumps({TOPIC: {str(partition): offset for partition in range(50)}})
        path.write_text(f"\0v1\n{offsets}" if name.startswith("sources") else f"v1\n{{}}\n{offsets}\n")
    (folder / "checkpoint" / "metadata").write_text('{"id":"query"}')
    return history


def test_a_run_sweeps_what_a_killed_one_left(tmp_path: Path) -> None:
    left = [hidden_name(tmp_path / kind / "b-00000000") for kind in ("raw", "decoded", "behaviour")]
    for folder in left:
        folder.mkdir(parents=True)
    with History(path=tmp_path).claimed():
        assert [folder for folder in left if folder.exists()] == []
    assert (tmp_path / ".lock").is_file()


def test_every_offset_of_a_range_is_accounted_for() -> None:
    found = coverage({0: 100, 1: 0, 2: 5}, {0: 200, 1: 50, 2: 5}, {0: 130, 1: 0, 2: 0}, {0: 60, 1: 50})
    assert [(each["partition"], each["rows"], each["lost"], each["skipped"]) for each in found] == [(0, 60, 30, 10), (1, 50, 0, 0)]
    assert totals(found) == {"expected": 150, "rows": 110, "lost": 30, "skipped": 10}


def test_a_range_that_ends_before_its_start_is_refused() -> None:
    with pytest.raises(IntegrityError, match="partition 0 was read up to 1000, and ends at 800"):
        coverage({0: 1000}, {0: 800}, {0: 0}, {})


def test_a_range_wholly_before_the_log_start_is_lost() -> None:
    (found,) = coverage({0: 10}, {0: 20}, {0: 500}, {})
    assert (found["rows"], found["lost"], found["skipped"]) == (0, 10, 0)


@pytest.mark.spark
def test_a_batch_is_kept_once_and_its_first_copy_stays(spark: SparkSession, tmp_path: Path) -> None:
    history = planned(tmp_path, 3_000_000)
    rows = recorded(spark)
    history.land(rows, 0, bounds().log_start)
    before = {path: path.read_bytes() for path in tmp_path.glob("raw/**/*") if path.is_file()}
    history.land(rows.limit(10), 0, bounds().log_start)  # as after a kill, when the broker has compacted meanwhile
    assert {path: path.read_bytes() for path in tmp_path.glob("raw/**/*") if path.is_file()} == before
    (batch,) = history.raw_batches()
    manifest = history.raw_manifest(batch)
    assert (manifest["totals"]["rows"], manifest["totals"]["expected"]) == (4169, 150_000_000)
    history.decode(spark, batch)
    decoded = tmp_path / "decoded" / batch
    assert json.loads((decoded / "manifest.json").read_text())["rows"] == {"offset_commits": 3942, "group_records": 227, "undecoded": 0}
    assert pq.read_table(decoded / "offset_commits.parquet").num_rows == 3942
    assert list(tmp_path.glob("*/.*")) == []


@pytest.mark.spark
def test_raw_and_decoded_batches_are_durable_before_they_count_and_for_owner_and_group_only(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, steps = planned(tmp_path, 3_000_000), []

    def put(fresh: Path, target: Path) -> None:
        steps.append(f"named {target.parent.name}")
        fresh.rename(target)

    def synced(folder: Path) -> None:
        steps.append(f"synced {folder.parent.name}")
        sync_tree(folder)

    monkeypatch.setattr(durable_files, "sync_tree", synced)
    monkeypatch.setattr(durable_files, "_put_in_place", put)
    before = os.umask(0o022)
    try:
        history.land(recorded(spark), 0, bounds().log_start)
        (batch,) = history.raw_batches()
        history.decode(spark, batch)
    finally:
        os.umask(before)
    assert steps == ["synced raw", "named raw", "synced decoded", "named decoded"]
    for kind in ("raw", "decoded"):
        made = [tmp_path / kind, *(tmp_path / kind).rglob("*")]
        assert {oct(path.stat().st_mode & 0o777) for path in made if path.is_dir()} == {"0o750"}
        assert {oct(path.stat().st_mode & 0o777) for path in made if path.is_file()} == {"0o640"}


@pytest.mark.spark
def test_a_raw_batch_that_was_altered_is_not_decoded_anew(spark: SparkSession, tmp_path: Path) -> None:
    history = planned(tmp_path, 3_000_000)
    history.land(recorded(spark), 0, bounds().log_start)
    (batch,) = history.raw_batches()
    history.decode(spark, batch)
    shutil.rmtree(tmp_path / "decoded" / batch)
    part = min((tmp_path / "raw" / batch / "records.parquet").iterdir())
    rows = pq.read_table(part)
    pq.write_table(rows.set_column(rows.schema.get_field_index("key"), "key", rows["key"].take([0] * len(rows))), part)
    with pytest.raises(IntegrityError, match=f"records.parquet/{part.name}: its sha256 differs .*; .* restore it from a copy"):
        history.decode(spark, batch)
    assert list((tmp_path / "decoded").iterdir()) == []


@pytest.mark.spark
def test_a_batch_without_records_is_decoded_and_whole(spark: SparkSession, tmp_path: Path) -> None:
    history = planned(tmp_path, 5)
    history.land(recorded(spark).limit(0), 0, bounds().log_start)
    (batch,) = history.raw_batches()
    history.decode(spark, batch)
    verify_batch(tmp_path / "decoded" / batch, REPAIR_OF_DECODED)
    written = (tmp_path / "decoded" / batch / "manifest.json").stat().st_mtime
    assert newest_record(tmp_path / "decoded" / batch).timestamp() == pytest.approx(written, abs=1e-3)


@pytest.mark.spark
def test_records_outside_of_a_batchs_range_are_not_kept(spark: SparkSession, tmp_path: Path) -> None:
    history = planned(tmp_path, 1)
    with pytest.raises(IntegrityError, match="outside of its range"):
        history.land(recorded(spark), 0, bounds().log_start)
    assert history.raw_batches() == []


@pytest.mark.spark
def test_a_kept_batch_that_is_planned_with_another_range_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    planned(tmp_path, 3_000_000).land(recorded(spark), 0, bounds().log_start)
    with pytest.raises(IntegrityError, match=r"partitions \[0, 1.*move the checkpoint folder away"):
        planned(tmp_path, 3_000_001).land(recorded(spark), 0, bounds().log_start)


@pytest.mark.spark
@pytest.mark.parametrize("begins", [2_000_000, 4_000_000])
def test_a_batch_that_does_not_begin_where_the_kept_ones_end_is_refused(spark: SparkSession, tmp_path: Path, begins: int) -> None:
    planned(tmp_path, 3_000_000).land(recorded(spark), 0, bounds().log_start)
    with pytest.raises(IntegrityError, match="move the checkpoint folder away"):
        planned(tmp_path, begins, 5_000_000).land(recorded(spark).limit(0), 1, bounds().log_start)
    history = planned(tmp_path, 3_000_000, 5_000_000)
    history.land(recorded(spark).limit(0), 1, bounds().log_start)
    assert len(history.raw_batches()) == 2


@pytest.mark.spark
def test_a_batch_of_a_topic_that_lost_its_end_is_not_kept(spark: SparkSession, tmp_path: Path) -> None:
    history = planned(tmp_path, 500, 400)
    with pytest.raises(IntegrityError, match="lost records at its end"):
        history.land(recorded(spark).limit(0), 1, bounds().log_start)
    assert history.raw_batches() == []


def keep(folder: Path, batch: str, **ends: int) -> None:
    """A raw batch as far as its ranges go: ``p3=20`` for partition 3 up to offset 20."""
    partitions = [{"partition": int(name[1:]), "end": end} for name, end in ends.items()]
    write_json(folder / "raw" / batch / "manifest.json", {"partitions": partitions})


def test_a_lost_checkpoint_goes_on_after_what_is_kept(tmp_path: Path) -> None:
    history = History(path=tmp_path)
    assert history.next_offsets(bounds(start=7)) == dict.fromkeys(range(50), 7)
    keep(tmp_path, "b-00000000", p3=30)
    keep(tmp_path, "a-00000000", p3=20, p7=900)
    assert [history.next_offsets(bounds())[partition] for partition in (3, 4, 7)] == [30, 0, 900]
    note_reached(tmp_path)
    shutil.rmtree(tmp_path / "raw" / "a-00000000")
    assert [history.next_offsets(bounds())[partition] for partition in (3, 4, 7)] == [30, 0, 900]


def test_a_topic_that_lost_its_end_is_refused_without_a_checkpoint_too(tmp_path: Path) -> None:
    keep(tmp_path, "a-00000000", p0=1000)
    history = History(path=tmp_path)
    history.check_source(bounds(end=1000))
    with pytest.raises(IntegrityError, match=r"partitions \[0\] end before offsets that were already read"):
        history.check_source(bounds(end=800))
    note_reached(tmp_path)
    shutil.rmtree(tmp_path / "raw")
    with pytest.raises(IntegrityError, match="end before offsets that were already read"):
        history.check_source(bounds(end=800))


def test_a_history_refuses_another_cluster_and_a_topic_that_lost_its_end(tmp_path: Path) -> None:
    history = planned(tmp_path, 500)
    history.check_source(bounds())
    history.check_source(bounds())
    with pytest.raises(IntegrityError, match="use another folder"):
        history.check_source(bounds(cluster="other"))
    with pytest.raises(IntegrityError, match="end before offsets that were already read"):
        history.check_source(bounds(end=499))


def test_a_topic_may_have_more_partitions_than_before_and_not_fewer(tmp_path: Path) -> None:
    history = planned(tmp_path, 500)
    more, fewer = (dict.fromkeys(range(count), 900) for count in (60, 40))
    history.check_source(replace(bounds(), log_start=more, last_stable=more, log_end=more))
    with pytest.raises(IntegrityError, match=r"partitions \[40, 41"):
        history.check_source(replace(bounds(), log_start=fewer, last_stable=fewer, log_end=fewer))


def test_a_damaged_checkpoint_says_what_to_do(tmp_path: Path) -> None:
    history = planned(tmp_path, 500)
    (tmp_path / "checkpoint" / "offsets" / "0").write_text("v1\n{}\n-")
    with pytest.raises(IntegrityError, match="move the checkpoint folder away"):
        history.checkpoint.last()
