"""A sealed folder may contain only regular files that its manifest lists, so that only hashed files are read."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sealed_audits import CLUSTER, WholeAudit, forge, sealed_folder, snapshot

from kafka_audit.errors import IntegrityError
from kafka_audit.store import manifest, sealed
from kafka_audit.store.behaviour_tables import BehaviourFolder
from kafka_audit.store.history import read_history
from kafka_audit.store.lag_days import LagDay
from kafka_audit.store.layout import EvidenceRoot, Snapshot, seal_audit, unseal_audit
from kafka_audit.store.sealed import KINDS, OFFSETS, Sealed, place_of

PART = pa.table({"status": ["pass"] * 3})


@pytest.fixture
def whole(tmp_path: Path) -> WholeAudit:
    return WholeAudit(tmp_path / "root")


def test_a_table_replaced_by_a_link_to_a_folder_with_an_extra_part_is_refused(whole: WholeAudit, tmp_path: Path) -> None:
    findings, elsewhere = whole.audit.settings / "findings.parquet", tmp_path / "elsewhere"
    findings.rename(elsewhere)
    pq.write_table(PART, elsewhere / "part-00001.parquet")
    findings.symlink_to(elsewhere)
    assert pq.read_table(findings).num_rows == 5
    assert "settings/findings.parquet: is a link; evidence is never read through one" in Sealed.open(whole.audit.path).problems()


def test_a_file_replaced_by_a_link_to_the_same_bytes_is_refused(whole: WholeAudit, tmp_path: Path) -> None:
    file = whole.snapshot.dataset("topics")
    shutil.move(file, tmp_path / "topics")
    file.symlink_to(tmp_path / "topics")
    with pytest.raises(IntegrityError, match="is a link"):
        Sealed.verified(whole.snapshot.path)


def test_a_sealed_folder_is_not_read_through_a_link(whole: WholeAudit, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(whole.snapshot.path)
    with pytest.raises(IntegrityError, match="is a link; name the folder itself"):
        Sealed.verified(link)


@pytest.mark.parametrize("name", ["_part-00001.parquet", ".part-00001.parquet", "part-00001.parquet", "more/part-00001.parquet", ".more/x"])
def test_a_part_that_was_added_is_named_whether_or_not_a_reader_would_look_at_it(whole: WholeAudit, name: str) -> None:
    added = whole.audit.settings / "findings.parquet" / name
    added.parent.mkdir(exist_ok=True)
    pq.write_table(PART, added)
    assert Sealed.open(whole.audit.path).problems() == [f"settings/findings.parquet/{name}: is not in the manifest, so it was added later"]


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        (os.mkfifo, "is neither a file nor a folder"),
        (lambda file: file.mkdir(), "is missing"),
        (lambda file: file.symlink_to("/dev/zero"), "is a link"),
    ],
)
def test_what_is_no_file_is_refused_and_nothing_waits_for_it(whole: WholeAudit, harm: Callable[[Path], object], said: str) -> None:
    file = whole.snapshot.dataset("topics")
    file.unlink()
    harm(file)
    assert any(said in problem for problem in Sealed.open(whole.snapshot.path).problems())


def test_a_manifest_that_is_a_pipe_ends_the_command_at_once(whole: WholeAudit) -> None:
    for folder in (whole.snapshot.path, whole.audit.path):
        (folder / "manifest.json").unlink()
        os.mkfifo(folder / "manifest.json")
        done = subprocess.run(
            [sys.executable, "-m", "kafka_audit.cli", "verify", str(folder)], capture_output=True, timeout=600, check=False
        )
        assert done.returncode == 5, done.stderr
        assert b"is not a regular file" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"files": {}, "files": {}}', "'files' stands there twice"),
        ('{"kind": "snapshot", "files": {"a": {"sha256": "0", "sha256": "1"}}}', "'sha256' stands there twice"),
        ("[" * 100_000, "cannot be read as JSON"),
        ("[]", "an object is expected"),
        (" " * (33 << 20), "longer than 32 MiB"),
        ("\udcff", "cannot be read as JSON"),
    ],
)
def test_a_manifest_that_two_programs_could_read_differently_is_refused(whole: WholeAudit, text: str, said: str) -> None:
    (whole.snapshot.path / "manifest.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    for read in (Sealed.verified, Snapshot.open):
        with pytest.raises(IntegrityError, match=said):
            read(whole.snapshot.path)


@pytest.mark.parametrize("entry", [None, "x", {}, {"sha256": None}])
def test_an_entry_without_a_hash_is_a_problem_and_no_traceback(whole: WholeAudit, entry: object) -> None:
    file = whole.snapshot.path / "manifest.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "files": {"topics.parquet": entry}}))
    assert len(Sealed.open(whole.snapshot.path).problems()) == 1


def test_other_names_for_a_file_of_the_folder_are_not_that_file(whole: WholeAudit) -> None:
    file = whole.snapshot.path / "manifest.json"
    manifest = json.loads(file.read_text())
    for name in ("./topics.parquet", "x/../topics.parquet", str(whole.snapshot.dataset("topics"))):
        file.write_text(json.dumps({**manifest, "files": {name: manifest["files"]["topics.parquet"]}}))
        assert len(Sealed.open(whole.snapshot.path).problems()) == 2


def test_a_folder_of_another_kind_or_place_is_not_opened(whole: WholeAudit) -> None:
    for kind, folder in ((LagDay, whole.snapshot.path), (Snapshot, whole.day), (BehaviourFolder, whole.day), (Snapshot, whole.audit.path)):
        with pytest.raises(IntegrityError, match=f"is not the manifest of a {' or '.join(kind.kinds)}"):
            kind.open(folder)
    with pytest.raises(IntegrityError, match="belongs here"):
        Snapshot.open(whole.snapshot.path, whole.root.place(CLUSTER, OFFSETS))
    with pytest.raises(IntegrityError, match=r"has no manifest\.json"):
        Sealed.open(whole.root.path)


def test_every_kind_has_its_own_place(whole: WholeAudit) -> None:
    review = whole.root.reviews(CLUSTER) / whole.audit.path.name
    folders = (whole.snapshot.path, whole.offsets.path, whole.audit.path, whole.day, whole.behaviour, review)
    places = [place_of(folder) for folder in folders]
    assert [place and place.parent for place in places] == [folder.parent for folder in folders]
    assert {place.kind for place in places if place} == set(KINDS)


def test_history_and_days_with_a_link_are_left_out_before_anything_reads_them(whole: WholeAudit, tmp_path: Path) -> None:
    elsewhere = sealed_folder(tmp_path / "elsewhere", 5)
    for file in (whole.day / "groups.parquet", whole.earlier.path / "more.parquet"):
        file.unlink(missing_ok=True)
        file.symlink_to(elsewhere / "groups.parquet")
    with pytest.raises(IntegrityError, match="is a link"):
        LagDay.verified(whole.day)
    history = read_history(whole.snapshot, 10)
    assert history.snapshots == ()
    assert "more.parquet: is a link" in history.unusable[0]


def test_a_folder_with_a_link_or_a_hidden_file_cannot_be_sealed(whole: WholeAudit) -> None:
    assert unseal_audit(whole.audit)
    for name, make in (("gate", lambda path: path.symlink_to("/etc")), (".hidden", lambda path: path.write_text("x"))):
        make(whole.audit.path / name)
        with pytest.raises(IntegrityError, match="cannot be sealed"):
            whole.seal()
        (whole.audit.path / name).unlink()
    whole.seal()
    assert Sealed.verified(whole.audit.path)


def test_what_a_killed_process_left_behind_is_removed_before_the_seal(whole: WholeAudit) -> None:
    assert unseal_audit(whole.audit)
    (whole.audit.path / ".settings.0123abcd").mkdir()
    (whole.audit.path / ".settings.0123abcd" / "part.parquet").write_text("half")
    (whole.audit.path / "gate").mkdir()
    (whole.audit.path / "gate" / ".evidence.json.0123abcd").write_text("half")
    whole.seal()
    assert not any(name.startswith(".") or "/." in name for name in Sealed.verified(whole.audit.path).manifest["files"])
    assert Sealed.open(whole.audit.path).problems() == []


def test_a_snapshot_is_durable_before_its_manifest_and_its_name_after_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, bool]] = []
    monkeypatch.setattr(sealed, "sync_tree", lambda folder: seen.append((folder.name[:1], (folder / "manifest.json").exists())))
    monkeypatch.setattr(sealed, "sync_folder", lambda folder: seen.append((folder.name[:1], (folder / "manifest.json").exists())))
    taken = snapshot(EvidenceRoot(path=tmp_path), 0)
    assert seen == [(".", False), (".", True), (CLUSTER[0], False)]
    assert taken.path.is_dir()


def test_a_forged_manifest_of_a_folder_is_what_the_next_tests_stand_on(whole: WholeAudit) -> None:
    (whole.audit.report / "report.json").write_text("{}")
    assert Sealed.open(whole.audit.path).problems()
    forge(whole.audit.path)
    assert Sealed.open(whole.audit.path).problems() == []
    with pytest.raises(IntegrityError, match="its manifest was changed after it was sealed"):
        seal_audit(whole.root, CLUSTER, whole.audit.path.name, {})


@pytest.mark.parametrize("name", ["x" * 300, "../prod", "\0", 7, None])
def test_a_link_to_an_audit_that_can_have_no_folder_is_a_broken_chain_and_no_traceback(whole: WholeAudit, name: object) -> None:
    forge(whole.audit.path, {"previous": {"audit_id": name, "sequence": 1, "manifest_sha256": "0" * 64}})
    (problem,) = Sealed.open(whole.audit.path).problems()
    assert "its manifest is missing, so the chain is broken" in problem


class _Counted(str):
    """A key that counts how often it is compared with another."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        _Counted.compared += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def test_a_key_that_stands_twice_is_found_in_one_pass_through_the_keys() -> None:
    names = [str(number) for number in range(1000)]
    with pytest.raises(ValueError, match="the key '999' stands there twice"):
        manifest._once([(_Counted(name), 0) for name in [*names, "999"]])
    assert _Counted.compared < 10 * len(names)
