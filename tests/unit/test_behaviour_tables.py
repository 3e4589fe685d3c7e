"""Which behaviour tables an audit uses: the newest before its snapshot, unchanged; the same ones if it is repeated; or none, with a reason."""

import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from kafka_audit.errors import IntegrityError
from kafka_audit.store.behaviour_tables import KEPT, Behaviour, find_behaviour
from kafka_audit.store.durable_files import sha256_of, write_json
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from kafka_audit.store.manifest import tree_files
from kafka_audit.times import stamp

TAKEN = datetime(2026, 11, 20, 23, 15, tzinfo=timezone.utc)
SNAPSHOT_ID = "20261120T231500Z-ab12cd34ab12cd34"


def snapshot(root: Path) -> Snapshot:
    with EvidenceRoot(path=root).snapshot_writer("kafka", SNAPSHOT_ID) as writer:
        return Snapshot.open(writer.seal({"cluster_id": "own", "started_at": TAKEN.isoformat()}))


def tables(root: Path, minutes: float, **changes: Any) -> Path:
    """Behaviour tables that end so many minutes before the snapshot."""
    end = TAKEN - timedelta(minutes=minutes)
    folder = root / "history" / "kafka" / "commits" / "behaviour" / stamp(end)
    folder.mkdir(parents=True)
    (folder / "groups.parquet").write_text("a table")
    about = {"schema_version": 1, "kind": "commit_behaviour", "cluster_id": "own", "end": end.isoformat(), "gap_count": 0}
    start = (end - timedelta(hours=24)).isoformat()
    write_json(folder / "manifest.json", {**about, "start": start, "observed_from": start, "files": tree_files(folder), **changes})
    return folder


def test_the_newest_tables_that_are_not_after_the_snapshot_are_used_and_recorded(tmp_path: Path) -> None:
    for minutes in (30, 15, 0.5, -15):
        tables(tmp_path, minutes)
    record = find_behaviour(snapshot(tmp_path)).record()
    assert (record["folder"], record["hours"], record["reason"]) == ("behaviour/20261120T231430Z", 24.0, None)
    used = tmp_path / "history" / "kafka" / "commits" / record["folder"]
    assert record["manifest_sha256"] == sha256_of(used / "manifest.json")


def test_tables_that_end_within_the_second_of_the_snapshot_are_not_from_before_it(tmp_path: Path) -> None:
    tables(tmp_path, 15)
    tables(tmp_path, 0, end=(TAKEN + timedelta(milliseconds=5)).isoformat())
    assert find_behaviour(snapshot(tmp_path)).record()["folder"] == "behaviour/20261120T230000Z"


@pytest.mark.parametrize(
    ("minutes", "changes", "reason"),
    [
        (None, {}, "no commit history was read for this cluster"),
        (121, {}, "ends 2026-11-20 21:14Z, 2.0 h before the snapshot; at most 2 h are allowed"),
        (15, {"cluster_id": "other"}, "of cluster other, not of this one"),
        (-15, {}, f"no tables from before the snapshot, the oldest end at 20261120T233000Z (the newest {KEPT} of them are kept)"),
    ],
)
def test_without_usable_tables_the_record_says_why(tmp_path: Path, minutes: float | None, changes: dict[str, Any], reason: str) -> None:
    if minutes is not None:
        tables(tmp_path, minutes, **changes)
    found = find_behaviour(snapshot(tmp_path))
    assert (found.path, found.record()["folder"]) == (None, None)
    assert reason in found.record()["reason"]


def changed(folder: Path) -> None:
    (folder / "groups.parquet").write_text("another table")


def added(folder: Path) -> None:
    (folder / "more.parquet").write_text("")


def unreadable(folder: Path) -> None:
    (folder / "manifest.json").write_text("{")


def foreign(folder: Path) -> None:
    write_json(folder / "manifest.json", {"kind": "lag_day", "schema_version": 1, "files": {}})


def timeless(folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    write_json(folder / "manifest.json", {**manifest, "end": "yesterday"})


@pytest.mark.parametrize("harm", [changed, added, unreadable, foreign, timeless])
def test_tables_that_are_not_as_they_were_written_end_the_audit_and_are_named(tmp_path: Path, harm: Any) -> None:
    tables(tmp_path, 30)
    folder = tables(tmp_path, 15)
    harm(folder)
    with pytest.raises(IntegrityError, match=folder.name):
        find_behaviour(snapshot(tmp_path))


def test_a_repeated_audit_uses_the_same_tables_although_newer_ones_have_come(tmp_path: Path) -> None:
    tables(tmp_path, 30)
    first = find_behaviour(snapshot(tmp_path)).record()
    tables(tmp_path, 15)
    again = find_behaviour(EvidenceRoot(path=tmp_path).snapshot("kafka", SNAPSHOT_ID), first)
    assert again.record() == first


def repeated(root: Path, record: dict[str, Any]) -> Behaviour:
    return find_behaviour(EvidenceRoot(path=root).snapshot("kafka", SNAPSHOT_ID), record)


def test_a_repeated_audit_says_that_its_tables_have_been_deleted_and_goes_on_saying_it(tmp_path: Path) -> None:
    folder = tables(tmp_path, 15)
    first = find_behaviour(snapshot(tmp_path)).record()
    for file in folder.iterdir():
        file.unlink()
    second = repeated(tmp_path, first).record()
    assert second["folder"] is None
    assert second["changed_since"] == "an earlier run of this audit used behaviour/20261120T230000Z, which has been deleted since"
    assert repeated(tmp_path, second).record() == second


def test_a_repeated_audit_refuses_tables_that_were_made_again_under_the_same_name(tmp_path: Path) -> None:
    folder = tables(tmp_path, 15)
    first = find_behaviour(snapshot(tmp_path)).record()
    manifest = json.loads((folder / "manifest.json").read_text())
    write_json(folder / "manifest.json", {**manifest, "gap_count": 1})
    with pytest.raises(IntegrityError, match="not the one that this audit used before"):
        repeated(tmp_path, first)


def test_a_record_that_names_another_place_is_not_followed(tmp_path: Path) -> None:
    taken = snapshot(tmp_path)
    outside = tmp_path / "history" / "kafka" / "commits" / "elsewhere"
    outside.mkdir(parents=True)
    (outside / "manifest.json").write_text("{}")
    found = find_behaviour(taken, {"folder": "behaviour/../elsewhere", "manifest_sha256": sha256_of(outside / "manifest.json")})
    assert found.path is None
