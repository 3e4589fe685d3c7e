"""The folder of a commit history: what it keeps and refuses, and how completeness is computed. Needs no Kafka."""

import json
import os
import shutil
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from coordinator_records import recorded
from pyspark.sql import DataFrame, SparkSession

from kafka_audit.errors import IntegrityError
from kafka_audit.store import durable_files
from kafka_audit.store.commit_batches import REPAIR_OF_DECODED, reached, verify_batch
from kafka_audit.store.durable_files import sync_tree, write_json
from kafka_audit.store.unfinished import hidden_name
from spark_jobs.commit_history.describe.behaviour_tables import newest_record
from spark_jobs.commit_history.history import History, Planned
from spark_jobs.commit_history.read.raw_writer import coverage, totals
from spark_jobs.commit_history.read.source import Bounds

NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)


def bounds(*, cluster: str = "cluster", end: int = 10_000, start: int = 0) -> Bounds:
    every = dict.fromkeys(range(50), end)
    return Bounds(cluster_id=cluster, topic_id="topic", log_start=dict.fromkeys(every, start), last_stable=every, log_end=every)


def planned(end: int, *, start: int = 0, batch: str = "00000001") -> Planned:
    return Planned(batch=batch, start=dict.fromkeys(range(50), start), end=dict.fromkeys(range(50), end))


def land(history: History, rows: DataFrame, end: int = 3_000_000, **more: Any) -> None:
    history.land(rows, planned(end, **more), bounds().log_start, NOON)


def test_a_run_sweeps_what_a_killed_one_left(tmp_path: Path) -> None:
    left = [hidden_name(tmp_path / kind / "00000001") for kind in ("raw", "decoded", "behaviour")]
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
def test_a_batch_holds_what_was_read_and_says_where_reading_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    history = History(path=tmp_path)
    land(history, recorded(spark))
    assert history.raw_batches() == ["00000001"]
    manifest = history.raw_manifest("00000001")
    assert (manifest["totals"]["rows"], manifest["totals"]["expected"]) == (4169, 150_000_000)
    assert reached(tmp_path) == dict.fromkeys(range(50), 3_000_000)
    history.decode(spark)
    decoded = tmp_path / "decoded" / "00000001"
    assert json.loads((decoded / "manifest.json").read_text())["rows"] == {"offset_commits": 3942, "group_records": 227, "undecoded": 0}
    assert pq.read_table(decoded / "offset_commits.parquet").num_rows == 3942
    assert list(tmp_path.glob("*/.*")) == []


@pytest.mark.spark
def test_raw_and_decoded_batches_are_durable_before_they_count_and_for_owner_and_group_only(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, steps = History(path=tmp_path), []

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
        land(history, recorded(spark))
        history.decode(spark)
    finally:
        os.umask(before)
    assert steps == ["synced raw", "named raw", "synced decoded", "named decoded"]
    for kind in ("raw", "decoded"):
        made = [tmp_path / kind, *(tmp_path / kind).rglob("*")]
        assert {oct(path.stat().st_mode & 0o777) for path in made if path.is_dir()} == {"0o750"}
        assert {oct(path.stat().st_mode & 0o777) for path in made if path.is_file()} == {"0o640"}


@pytest.mark.spark
def test_a_raw_batch_that_was_altered_is_not_decoded_anew(spark: SparkSession, tmp_path: Path) -> None:
    history = History(path=tmp_path)
    land(history, recorded(spark))
    (batch,) = history.raw_batches()
    history.decode(spark)
    shutil.rmtree(tmp_path / "decoded" / batch)
    part = min((tmp_path / "raw" / batch / "records.parquet").iterdir())
    rows = pq.read_table(part)
    pq.write_table(rows.set_column(rows.schema.get_field_index("key"), "key", rows["key"].take([0] * len(rows))), part)
    with pytest.raises(IntegrityError, match=f"records.parquet/{part.name}: its sha256 differs .*; .* restore it from a copy"):
        history.decode(spark)
    assert list((tmp_path / "decoded").iterdir()) == []


@pytest.mark.spark
def test_a_batch_without_records_is_decoded_and_whole(spark: SparkSession, tmp_path: Path) -> None:
    history = History(path=tmp_path)
    land(history, recorded(spark).limit(0), 5)
    (batch,) = history.raw_batches()
    history.decode(spark)
    verify_batch(tmp_path / "decoded" / batch, REPAIR_OF_DECODED)
    assert newest_record(tmp_path / "decoded" / batch) == NOON


@pytest.mark.spark
def test_records_outside_of_a_batchs_range_are_not_kept(spark: SparkSession, tmp_path: Path) -> None:
    history = History(path=tmp_path)
    with pytest.raises(IntegrityError, match="outside of its range"):
        land(history, recorded(spark), 1)
    assert history.raw_batches() == []


def keep(folder: Path, batch: str, **upto: int) -> None:
    """A raw batch as far as its manifest says where reading goes on: ``p3=20`` for partition 3 at offset 20."""
    write_json(folder / "raw" / batch / "manifest.json", {"reached": {name[1:]: offset for name, offset in upto.items()}})


def test_reading_goes_on_where_the_newest_batch_ends_and_begins_at_the_log_start(tmp_path: Path) -> None:
    history = History(path=tmp_path)
    first = history.next_batch(bounds(start=7), 1_000_000)
    assert first == planned(10_000, start=7)
    keep(tmp_path, "00000008", p3=20)
    keep(tmp_path, "00000009", p3=10_000, p7=900)
    following = history.next_batch(bounds(), 1_000_000)
    assert following is not None and following.batch == "00000010"
    assert [(following.start[partition], following.end[partition]) for partition in (3, 4, 7)] == [
        (10_000, 10_000),
        (0, 10_000),
        (900, 10_000),
    ]
    keep(tmp_path, "00000010", **{f"p{partition}": 10_000 for partition in range(50)})
    assert history.next_batch(bounds(), 1_000_000) is None


def test_a_batch_reads_no_more_than_it_may_and_something_of_every_partition_with_new_records(tmp_path: Path) -> None:
    history = History(path=tmp_path)
    keep(tmp_path, "00000001", p0=0, **{f"p{partition}": 9_999 for partition in range(1, 49)}, p49=10_000)
    found = history.next_batch(bounds(), 1000)
    assert found is not None
    read = {partition: end - found.start[partition] for partition, end in found.end.items()}
    assert read == {0: 995, **dict.fromkeys(range(1, 49), 1), 49: 0}
    assert found.offsets == 1043  # the last one of a partition is never put off


def test_what_open_transactions_hold_back_waits_for_a_later_batch(tmp_path: Path) -> None:
    held = replace(bounds(), last_stable={**bounds().last_stable, 3: 40})
    keep(tmp_path, "00000001", p3=41)
    found = History(path=tmp_path).next_batch(held, 1_000_000)
    assert found is not None and (found.start[3], found.end[3]) == (41, 41)


def test_a_batch_that_does_not_say_how_far_it_was_read_is_refused(tmp_path: Path) -> None:
    write_json(tmp_path / "raw" / "00000001" / "manifest.json", {"reached": [1]})
    with pytest.raises(IntegrityError, match=r"00000001: its manifest does not say what was read; .* restore it from a copy"):
        History(path=tmp_path).next_batch(bounds(), 1)


def test_a_batch_with_the_last_number_was_added_by_somebody(tmp_path: Path) -> None:
    keep(tmp_path, "99999999", p0=1)
    with pytest.raises(IntegrityError, match="99999999: no run has made so many batches, so it was added: remove it"):
        History(path=tmp_path).next_batch(bounds(), 1)


def test_a_history_refuses_another_cluster_and_a_topic_that_lost_its_end(tmp_path: Path) -> None:
    history = History(path=tmp_path)
    keep(tmp_path, "00000001", p0=500)
    history.check_source(bounds(end=500))
    history.check_source(bounds(end=501))
    with pytest.raises(IntegrityError, match="use another folder"):
        history.check_source(bounds(cluster="other"))
    with pytest.raises(IntegrityError, match=r"partitions \[0\] end before offsets that were already read"):
        history.check_source(bounds(end=499))


def test_a_topic_may_have_more_partitions_than_before_and_not_fewer(tmp_path: Path) -> None:
    history = History(path=tmp_path)
    keep(tmp_path, "00000001", **{f"p{partition}": 500 for partition in range(50)})
    more, fewer = (dict.fromkeys(range(count), 900) for count in (60, 40))
    history.check_source(replace(bounds(), log_start=more, last_stable=more, log_end=more))
    with pytest.raises(IntegrityError, match=r"partitions \[40, 41"):
        history.check_source(replace(bounds(), log_start=fewer, last_stable=fewer, log_end=fewer))
