"""Which batches of a commit history are deleted, and which are kept regardless of their age."""

import fcntl
import os
import threading
from datetime import date, datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_audit.policy.tiers import CommitsHistory, History
from kafka_audit.store import locks
from kafka_audit.store.commit_batches import has_deleted, reached
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.retention import delete_expired
from spark_jobs.commit_history.read.raw_writer import RAW

TODAY = date(2026, 11, 21)
KEEP_10_DAYS = History(commits=CommitsHistory(keep_days=10))


class Commits:
    """A history whose batches are raw Parquet files, and decoded ones of which only the manifest matters here."""

    def __init__(self, root: Path) -> None:
        self.root = EvidenceRoot(path=root)
        self.path = self.root.commit_history("prod")
        self.said: list[str] = []

    def batch(self, number: int, *ages_in_days: float, decoded: bool = True, upto: int = 0) -> str:
        """A batch with one record of each age, a part file for each; ``upto``: how far partition 0 was read with it."""
        name = f"{number + 1:08d}"
        midnight = datetime(TODAY.year, TODAY.month, TODAY.day, tzinfo=timezone.utc)
        parts = self.path / "raw" / name / "records.parquet"
        parts.mkdir(parents=True)
        for age in ages_in_days:
            record = {"partition": 0, "offset": 1, "timestamp": midnight - timedelta(days=age), "key": b"", "value": None}
            pq.write_table(pa.Table.from_pylist([record], schema=RAW), parts / f"part-{len(list(parts.iterdir())):05d}.parquet")
        write_json(parts.parent / "manifest.json", {"reached": {"0": upto}})
        if decoded:
            (self.path / "decoded" / name).mkdir(parents=True)
            (self.path / "decoded" / name / "manifest.json").write_text("{}")
        return name

    def delete(self) -> list[str]:
        decided = delete_expired(self.root, "prod", KEEP_10_DAYS, TODAY, lambda one: self.said.append(str(one)))
        assert all(one.name.startswith("commits") for one in decided)
        return [one.name.removeprefix("commits/") for one in decided if one.goes]

    def kept(self, kind: str) -> set[str]:
        return {path.name for path in (self.path / kind).iterdir()}


@pytest.fixture
def commits(tmp_path: Path) -> Commits:
    return Commits(tmp_path)


def test_batches_go_raw_and_decoded_by_their_newest_record_oldest_first(commits: Commits) -> None:
    older, oldest = commits.batch(1, 12), commits.batch(0, 30, 20)
    kept = {commits.batch(2, 50, 9.9), commits.batch(3, 10), commits.batch(4, 1)}
    assert commits.delete() == [oldest, older]
    assert commits.kept("raw") == commits.kept("decoded") == kept
    assert commits.delete() == []


def test_the_newest_batch_stays_however_old(commits: Commits) -> None:
    commits.batch(0, 80)
    newest = commits.batch(1, 70)
    commits.delete()
    assert commits.kept("raw") == commits.kept("decoded") == {newest}


def test_a_batch_that_is_not_decoded_stays_and_is_named(commits: Commits) -> None:
    waiting = commits.batch(0, 80, decoded=False)
    commits.batch(1, 1)
    assert commits.delete() == []
    assert commits.said == [f"commits/{waiting} stays: it is not decoded; the next run of read_commits does that"]


def test_a_dry_run_names_what_would_go_and_touches_nothing_and_waits_for_nobody(commits: Commits) -> None:
    old, new = commits.batch(0, 80), commits.batch(1, 1)
    with (commits.path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        decided = delete_expired(commits.root, "prod", KEEP_10_DAYS, TODAY, dry_run=True)
    assert [str(one) for one in decided] == [f"commits/{old} goes: its newest record is older than 2026-11-11"]
    assert commits.kept("raw") == commits.kept("decoded") == {old, new}
    assert not has_deleted(commits.path)


def test_the_last_batch_stays_because_reading_goes_on_after_it(commits: Commits) -> None:
    gone, newest = commits.batch(0, 80), commits.batch(1, 60)
    last = commits.batch(2, 70, upto=30)  # a stray clock made it look older
    assert commits.delete() == [gone]
    assert commits.kept("raw") == commits.kept("decoded") == {newest, last}
    assert has_deleted(commits.path) and reached(commits.path) == {0: 30}


def test_a_batch_that_went_from_between_two_others_counts_as_deleted(commits: Commits) -> None:
    commits.batch(0, 80, 1)  # a bounded read: of one partition it holds newer records than the next batch has of another
    gone = commits.batch(1, 60)
    commits.batch(2, 1)
    assert commits.delete() == [gone]
    assert has_deleted(commits.path)


def test_a_batch_without_records_is_as_old_as_its_writing(commits: Commits) -> None:
    empty, fresh = commits.batch(0), commits.batch(1)
    commits.batch(2, 1)
    long_ago = datetime(2026, 10, 1, tzinfo=timezone.utc).timestamp()
    os.utime(commits.path / "raw" / empty / "manifest.json", (long_ago, long_ago))
    recently = datetime(2026, 11, 19, tzinfo=timezone.utc).timestamp()
    os.utime(commits.path / "raw" / fresh / "manifest.json", (recently, recently))
    assert commits.delete() == [empty]


def test_what_a_killed_deletion_left_is_removed_and_its_raw_batch_goes_once_it_is_decoded_again(commits: Commits) -> None:
    half = commits.batch(0, 80)
    commits.batch(1, 1)
    decoded = commits.path / "decoded" / half
    decoded.rename(decoded.with_name(f".{half}.deleted"))
    assert commits.delete() == []
    assert f".{half}.deleted" not in commits.kept("decoded")
    decoded.mkdir()
    (decoded / "manifest.json").write_text("{}")
    assert commits.delete() == [half]


def test_deleting_waits_until_no_run_reads_and_gives_up_with_a_reason(commits: Commits, monkeypatch: pytest.MonkeyPatch) -> None:
    old = commits.batch(0, 80)
    commits.batch(1, 1)
    with (commits.path / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        monkeypatch.setattr(locks, "_HISTORY_WAITS_SECONDS", 0)
        assert commits.delete() == []
        assert "a run has been reading into it for all the time" in commits.said[0]
        monkeypatch.undo()
        deleted: list[str] = []
        waiting = threading.Thread(target=lambda: deleted.extend(commits.delete()))
        waiting.start()
        assert waiting.is_alive()
    waiting.join(timeout=600)
    assert deleted == [old]


def test_batches_of_transactions_go_in_the_same_way(commits: Commits) -> None:
    commits.batch(0, 1)
    commits.path = commits.path / "transactions"
    old, new = commits.batch(0, 80), commits.batch(1, 1)
    assert [one.name for one in delete_expired(commits.root, "prod", KEEP_10_DAYS, TODAY)] == [f"commits/transactions/{old}"]
    assert commits.kept("raw") == commits.kept("decoded") == {new}


def test_a_history_of_which_nothing_expired_says_so(commits: Commits) -> None:
    commits.batch(0, 1)
    assert commits.delete() == []
    assert not has_deleted(commits.path)


def test_a_cluster_without_a_commit_history_has_nothing_to_delete_and_gets_no_folder(tmp_path: Path) -> None:
    commits = Commits(tmp_path)
    assert commits.delete() == []
    assert list(tmp_path.iterdir()) == []
