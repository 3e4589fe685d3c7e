"""Computes since when each partition of the offsets topic was read without a hole."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_audit.store.durable_files import write_json
from spark_jobs.commit_history.decode.commits import SCHEMA
from spark_jobs.commit_history.describe.read_coverage import Reading, new_batches, readings

NOON = datetime(2026, 11, 21, 12, tzinfo=timezone.utc)
LATER = NOON + timedelta(minutes=15)


@dataclass(frozen=True, kw_only=True)
class Commit:
    """A commit at ``offset`` of the log; ``request``: at which second a transaction committed it, None for one outside of transactions."""

    offset: int
    key: int
    request: int | None = None
    group: str = "g"
    tombstone: bool = False

    def row(self) -> dict[str, Any]:
        time = NOON + timedelta(seconds=self.request or 0)
        topic_id = "id" if self.request is None else None
        place = {"log_partition": 0, "log_offset": self.offset, "group_id": self.group, "topic": "orders", "partition": self.key}
        return place if self.tombstone else {**place, "version": 4, "topic_id": topic_id, "commit_time": time}


def batch(history: Path, name: str, *ranges: dict[str, int], commits: Iterable[Commit] = (), other: int = 0, undecoded: int = 0) -> Path:
    """A batch of partition 0 (or as ``ranges`` say) with these commits; ``other``: how many records of another type follow them."""
    whole = [{"partition": 0, "lost": 0, "skipped": 0, **each} for each in ranges]
    write_json(history / "raw" / name / "manifest.json", {"partitions": whole})
    folder = history / "decoded" / name
    write_json(folder / "manifest.json", {"rows": {"undecoded": undecoded}})
    rows = [commit.row() for commit in commits]
    after = rows[-1]["log_offset"] + 1 if rows else 0
    places = [{"log_partition": 0, "log_offset": after + n} for n in range(other)]
    for table, of_table in (("offset_commits", rows), ("group_records", places), ("undecoded", [{"log_partition": 0}])):
        (folder / f"{table}.parquet").mkdir(parents=True)
        pq.write_table(pa.Table.from_pylist(of_table, schema=SCHEMA), folder / f"{table}.parquet" / "part-0.parquet")
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


def transactions(start: int, end: int, *, each: int, keys: int | None = None, ended: int = 1) -> list[Commit]:
    """Transactions of ``each`` commits in one request, followed by ``ended`` offsets without a record; every key again after ``keys``."""
    offsets = [offset for offset in range(start, end) if (offset - start) % (each + ended) < each]
    return [Commit(offset=at, key=n % (keys or each), request=at // (each + ended)) for n, at in enumerate(offsets)]


def skipped(start: int, end: int, commits: list[Commit], other: int = 0) -> dict[str, int]:
    return {"start": start, "end": end, "skipped": end - start - len(commits) - other}


CASES: dict[str, tuple[list[Commit], int, bool]] = {
    "one marker after each transaction": (transactions(0, 90, each=2), 90, True),
    "many groups, each with its own transactions": (
        [Commit(offset=at, key=0, request=at, group=f"g-{at // 2 % 30}") for at in range(0, 600, 2)],
        600,
        True,
    ),
    "transactions that were aborted, between commits of the same keys": (
        [each for each in transactions(0, 300, each=2) if not 120 <= each.offset < 180],
        300,
        True,
    ),
    "one transaction of ten commits, and ten skipped offsets": (transactions(0, 10, each=10), 20, False),
    "a compacted log without transactions": ([Commit(offset=at, key=at) for at in range(0, 60, 3)], 60, False),
    "a compacted log of transactions": ([Commit(offset=at, key=at, request=at) for at in range(0, 60, 3)], 60, False),
    "a log that was compacted while it was read": (
        [Commit(offset=at, key=at % 5) for at in range(1000)] + [Commit(offset=at, key=at, request=at) for at in range(1000, 60_000, 20)],
        60_000,
        False,
    ),
    "tombstones, which no transaction writes, in a compacted log": (
        [Commit(offset=at, key=at, tombstone=True) for at in range(0, 60, 2)],
        60,
        False,
    ),
    "nothing but skipped offsets": ([], 5, False),
}


@pytest.mark.parametrize("name", CASES)
def test_skipped_offsets_are_no_hole_where_they_cannot_be_compacted_records(tmp_path: Path, name: str) -> None:
    commits, end, complete = CASES[name]
    found = read(tmp_path, batch(tmp_path, "00000001", skipped(0, end, commits), commits=commits))
    assert (found.complete_since, found.lost_until) == (None if complete else NOON, None)


def test_a_marker_whose_transaction_the_batch_before_holds_is_no_hole(tmp_path: Path) -> None:
    first = read(tmp_path, batch(tmp_path, "00000001", {"start": 0, "end": 10}))
    commits = transactions(11, 90, each=2)
    found = read(tmp_path, batch(tmp_path, "00000002", skipped(10, 90, commits), commits=commits), before=(first,), end=LATER)
    assert (found.next_offset, found.complete_since) == (90, None)


def test_records_of_other_types_are_not_taken_for_skipped_offsets(tmp_path: Path) -> None:
    commits = transactions(0, 9, each=2)
    found = read(tmp_path, batch(tmp_path, "00000001", skipped(0, 11, commits, other=3), commits=commits, other=3))
    assert found.complete_since is None


def test_what_an_open_transaction_holds_back_ends_the_reading_at_the_newest_record(tmp_path: Path) -> None:
    first = read(tmp_path, batch(tmp_path, "00000001", {"start": 0, "end": 10}))
    record = NOON + timedelta(minutes=3)
    assert read(tmp_path, before=(first,), end=LATER, held=record).read_to == record
    assert read(tmp_path, before=(first,), end=LATER, held=None).read_to == NOON  # until then it was read to the end
    assert read(tmp_path, before=(first,), end=LATER).read_to == LATER
