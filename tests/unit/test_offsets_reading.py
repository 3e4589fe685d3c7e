"""Computes since when each partition of the offsets topic was read without a hole."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_audit.store.durable_files import write_json
from spark_jobs.commit_history.describe.read_coverage import Reading, new_batches, readings

NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
LATER = NOON + timedelta(minutes=15)


def batch(history: Path, name: str, *ranges: dict[str, int], transactional: int = 0, undecoded: int = 0) -> Path:
    """A batch of partition 0 (or as ``ranges`` say), whose rows are as many transactional commits and undecoded rows."""
    whole = [{"partition": 0, "lost": 0, "skipped": 0, **each} for each in ranges]
    write_json(history / "raw" / name / "manifest.json", {"partitions": whole})
    folder = history / "decoded" / name
    write_json(folder / "manifest.json", {"rows": {"undecoded": undecoded}})
    plain = {"log_partition": [0], "version": [4], "topic_id": ["id"]}
    commits = {**plain} if not transactional else {"log_partition": [0] * transactional, "version": [4] * transactional}
    commits.setdefault("topic_id", [None] * transactional)
    schema = pa.schema([("log_partition", pa.int32()), ("version", pa.int16()), ("topic_id", pa.string())])
    for table, columns in (("offset_commits", commits), ("undecoded", {**plain, "log_partition": [0]})):
        (folder / f"{table}.parquet").mkdir(parents=True)
        pq.write_table(pa.table(columns, schema=schema), folder / f"{table}.parquet" / "part-0.parquet")
    return folder


def read(history: Path, *batches: Path, before: tuple[Reading, ...] = (), end: datetime = NOON, **held: datetime | None) -> Reading:
    said = {0: held["held"]} if held else {}
    (found,) = readings(history, batches, before, end=end, partitions=1, held=said)
    assert Reading.from_json(found.as_json()) == found
    return found


def test_a_partition_that_is_read_from_its_first_offset_on_is_complete(tmp_path: Path) -> None:
    found = read(tmp_path, batch(tmp_path, "00000001", {"start": 0, "end": 10}), batch(tmp_path, "00000002", {"start": 10, "end": 30}))
    assert (found.next_offset, found.complete_since, found.lost_until, found.read_to) == (30, None, None, NOON)


def test_one_without_records_is_complete_too(tmp_path: Path) -> None:
    assert read(tmp_path).complete_since is None


def test_what_was_compacted_before_a_history_began_makes_it_incomplete_but_loses_no_newest_record(tmp_path: Path) -> None:
    first = read(tmp_path, batch(tmp_path, "00000001", {"start": 0, "end": 10, "skipped": 3}))
    assert (first.complete_since, first.lost_until) == (NOON, None)
    late = read(tmp_path, batch(tmp_path, "00000002", {"start": 5, "end": 10}))
    assert (late.complete_since, late.lost_until) == (NOON, None)


@pytest.mark.parametrize(
    ("ranges", "undecoded"),
    [
        ([{"start": 10, "end": 20, "lost": 4}], 0),
        ([{"start": 12, "end": 20}], 0),  # a batch was removed by hand
        ([{"start": 10, "end": 20}], 1),
        ([{"start": 10, "end": 12}, {"start": 15, "end": 20}], 0),
    ],
)
def test_a_hole_counts_until_it_was_found_and_is_remembered(tmp_path: Path, ranges: list[dict[str, int]], undecoded: int) -> None:
    first = read(tmp_path, batch(tmp_path, "00000001", {"start": 0, "end": 10}))
    holed = read(tmp_path, batch(tmp_path, "00000002", *ranges, undecoded=undecoded), before=(first,), end=LATER)
    assert (holed.complete_since, holed.lost_until) == (LATER, LATER)
    much_later = LATER + timedelta(hours=1)
    after = read(tmp_path, batch(tmp_path, "00000003", {"start": 20, "end": 21}), before=(holed,), end=much_later)
    assert (after.next_offset, after.complete_since, after.lost_until, after.read_to) == (21, LATER, LATER, much_later)


def test_a_batch_is_judged_once(tmp_path: Path) -> None:
    batches = [batch(tmp_path, "00000001", {"start": 0, "end": 10, "skipped": 1}), batch(tmp_path, "00000002", {"start": 10, "end": 12})]
    first = read(tmp_path, *batches)
    assert new_batches(tmp_path, batches, (first,)) == []
    assert new_batches(tmp_path, batches, (Reading(partition=0, next_offset=10, read_to=NOON),)) == batches[1:]
    assert read(tmp_path, *batches, before=(first,), end=LATER).complete_since == NOON


def test_gaps_that_markers_of_the_transactions_that_were_read_explain_are_no_holes(tmp_path: Path) -> None:
    first = read(tmp_path, batch(tmp_path, "00000001", {"start": 0, "end": 10, "skipped": 2}, transactional=2))
    assert first.complete_since is None
    second = read(
        tmp_path, batch(tmp_path, "00000002", {"start": 10, "end": 20, "skipped": 3}, transactional=2), before=(first,), end=LATER
    )
    assert (second.complete_since, second.lost_until) == (LATER, None)


def test_what_an_open_transaction_holds_back_ends_the_reading_at_the_newest_record(tmp_path: Path) -> None:
    first = read(tmp_path, batch(tmp_path, "00000001", {"start": 0, "end": 10}))
    record = NOON + timedelta(minutes=3)
    assert read(tmp_path, before=(first,), end=LATER, held=record).read_to == record
    assert read(tmp_path, before=(first,), end=LATER, held=None).read_to == NOON  # until then it was read to the end
    assert read(tmp_path, before=(first,), end=LATER).read_to == LATER
