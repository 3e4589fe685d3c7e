"""Evidence folders: sealed last, hashed, chained, never half-written."""

import errno
import json
import re
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kafka_audit.errors import CollectionError, ConfigurationError, IntegrityError
from kafka_audit.store.durable_files import replaced_folder, write_json
from kafka_audit.store.layout import EvidenceRoot, new_id, seal_audit
from kafka_audit.store.sealed import Sealed

NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=timezone.utc)
TABLE = pa.table({"topic": ["orders"], "partition": pa.array([0], pa.int32())})


def sealed(root: EvidenceRoot, snapshot_id: str) -> Path:
    with root.snapshot_writer("prod", snapshot_id) as writer:
        writer.write("partitions", TABLE)
        return writer.seal({"cluster_id": "abc"})


def test_ids_are_the_same_for_the_same_run_and_sort_by_time() -> None:
    assert new_id(NOON, "scheduled__1") == new_id(NOON, "scheduled__1")
    assert new_id(NOON, "scheduled__1") != new_id(NOON, "scheduled__2")
    assert new_id(NOON, "x") < new_id(NOON.replace(hour=13), "a")


def test_ids_carry_64_bits_of_their_run_and_shorter_ones_are_refused(tmp_path: Path) -> None:
    assert re.fullmatch(r"20261120T120000Z-[0-9a-f]{16}", new_id(NOON, "scheduled__1"))
    with pytest.raises(ConfigurationError, match="not a snapshot or audit id"):
        EvidenceRoot(path=tmp_path).audit("prod", "20261120T120000Z-ab12cd34")


def test_a_sealed_snapshot_verifies_and_is_found_again(tmp_path: Path) -> None:
    root, sid = EvidenceRoot(path=tmp_path), new_id(NOON, "a")
    folder = sealed(root, sid)
    assert Sealed.verified(folder).manifest["files"]["partitions.parquet"]["rows"] == 1
    assert root.snapshot("prod", sid).manifest["cluster_id"] == "abc"
    assert root.sealed_ids("prod") == [sid]


def test_an_edited_a_missing_and_an_added_file_are_each_named(tmp_path: Path) -> None:
    folder = sealed(EvidenceRoot(path=tmp_path), new_id(NOON, "a"))
    (folder / "extra.txt").write_text("x")
    pq.write_table(TABLE.slice(0, 0), folder / "partitions.parquet")
    with pytest.raises(IntegrityError, match=r"(?s)partitions\.parquet: its sha256 differs.*extra\.txt: is not in the manifest"):
        Sealed.verified(folder)
    (folder / "partitions.parquet").unlink()
    assert Sealed.open(folder).problems()[0] == "partitions.parquet: is missing"


def test_a_manifest_that_names_a_file_outside_its_folder_is_refused(tmp_path: Path) -> None:
    folder = sealed(EvidenceRoot(path=tmp_path), new_id(NOON, "a"))
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"]["../../secret"] = {"sha256": "0"}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(IntegrityError, match="outside the folder"):
        Sealed.verified(folder)


def test_a_snapshot_that_was_not_sealed_leaves_nothing_behind(tmp_path: Path) -> None:
    root, sid = EvidenceRoot(path=tmp_path), new_id(NOON, "a")
    with pytest.raises(KeyboardInterrupt), root.snapshot_writer("prod", sid) as writer:
        writer.write("partitions", TABLE)
        raise KeyboardInterrupt
    assert list((tmp_path / "evidence" / "prod").iterdir()) == []
    assert root.find_snapshot("prod", sid) is None


def test_a_full_disk_is_one_clear_error_and_earlier_evidence_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = EvidenceRoot(path=tmp_path)
    earlier = sealed(root, new_id(NOON, "a"))

    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(CollectionError, match="the disk is full") as caught, root.snapshot_writer("prod", new_id(NOON, "b")) as writer:
        writer.write("partitions", TABLE)
    assert caught.value.exit_code == 1
    assert Sealed.verified(earlier)
    assert [path.name for path in (tmp_path / "evidence" / "prod").iterdir()] == [earlier.name]


def test_a_step_that_fails_keeps_the_result_of_its_earlier_run(tmp_path: Path) -> None:
    target = tmp_path / "gate"
    with replaced_folder(target) as folder:
        (folder / "verdict").write_text("first")
    with pytest.raises(RuntimeError), replaced_folder(target) as folder:
        (folder / "verdict").write_text("second")
        raise RuntimeError
    assert (target / "verdict").read_text() == "first"
    assert [p.name for p in tmp_path.iterdir()] == ["gate"]


def test_audits_are_chained_and_a_changed_predecessor_is_found(tmp_path: Path) -> None:
    root = EvidenceRoot(path=tmp_path)
    first, second = new_id(NOON, "a"), new_id(NOON.replace(hour=13), "b")
    for audit_id in (first, second):
        write_json(root.audit("prod", audit_id).run_file, {"audit_id": audit_id})
        seal_audit(root, "prod", audit_id, {})
    folder = root.audit("prod", second).path
    assert Sealed.verified(folder).manifest["previous"]["audit_id"] == first
    earlier = root.audit("prod", first).path / "manifest.json"
    earlier.write_text(earlier.read_text() + " ")
    with pytest.raises(IntegrityError, match="was changed after this audit was sealed"):
        Sealed.verified(folder)


@pytest.mark.parametrize("name", ["", "../etc", "Prod", "a" * 64, "a/b", ".hidden"])
def test_a_cluster_name_that_is_no_folder_name_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="cluster name"):
        EvidenceRoot(path=tmp_path).snapshot_dir(name, new_id(NOON, "a"))


def test_an_id_cannot_walk_out_of_the_root(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="not a snapshot or audit id"):
        EvidenceRoot(path=tmp_path).audit("prod", "../../etc")


@pytest.mark.parametrize("name", ["audits[1]", "a*", "what?", "{a,b}", "back\\slash"])
def test_a_root_that_spark_would_take_for_a_pattern_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="reads as a pattern"):
        EvidenceRoot(path=tmp_path / name)
