"""Which earlier snapshots an audit compares its own with."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa

from kafka_audit.evidence import EvidenceRoot, Snapshot, new_id, open_snapshot
from kafka_audit.history import read_history

FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)


def snapshot(root: Path, hour: int, cluster_id: str = "one") -> Snapshot:
    taken = FIRST + timedelta(hours=hour)
    with EvidenceRoot(path=root).snapshot_writer("prod", new_id(taken, "x")) as writer:
        writer.write("topics", pa.table({"topic": [f"t{hour}"]}))
        return open_snapshot(writer.seal({"cluster_id": cluster_id, "started_at": taken.isoformat()}))


def test_it_is_the_newest_of_those_before_oldest_first(tmp_path: Path) -> None:
    taken = [snapshot(tmp_path, hour) for hour in range(5)]
    history = read_history(taken[3], limit=2)
    assert [one.snapshot_id for one in history.snapshots] == [taken[1].snapshot_id, taken[2].snapshot_id]
    assert history.record()["used"][0]["manifest_sha256"] == taken[1].manifest_sha256


def test_without_earlier_ones_or_with_a_limit_of_none_it_is_empty(tmp_path: Path) -> None:
    first, second = snapshot(tmp_path, 0), snapshot(tmp_path, 1)
    assert read_history(first, limit=30).snapshots == ()
    assert read_history(second, limit=0).snapshots == ()


def test_a_snapshot_that_was_changed_is_left_out_with_the_reason(tmp_path: Path) -> None:
    taken = [snapshot(tmp_path, hour) for hour in range(3)]
    with taken[0].dataset("topics").open("ab") as stream:
        stream.write(b"!")
    (taken[1].path / "manifest.json").write_text("{")
    history = read_history(taken[2], limit=30)
    assert history.snapshots == ()
    assert "sha256 differs" in history.unusable[0]
    assert taken[1].snapshot_id in history.unusable[1]


def test_another_cluster_of_the_same_name_is_not_its_history(tmp_path: Path) -> None:
    other, own, last = snapshot(tmp_path, 0, "other"), snapshot(tmp_path, 1), snapshot(tmp_path, 2)
    history = read_history(last, limit=30)
    assert [one.snapshot_id for one in history.snapshots] == [own.snapshot_id]
    assert history.foreign == (other.snapshot_id,)
    assert history.unusable == ()
