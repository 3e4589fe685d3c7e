"""Files are synced to disk before they are used, and only their owner and group may read them."""

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest

from kafka_audit.errors import CollectionError, ConfigurationError, IntegrityError
from kafka_audit.store import durable_files
from kafka_audit.store.durable_files import make_folder, new_file, read_json, remove_folder, replaced_folder, sync_tree, write_json
from kafka_audit.store.layout import EvidenceRoot, new_id

SNAPSHOT = new_id(datetime(2026, 11, 20, 12, tzinfo=timezone.utc), "x")


@pytest.fixture
def open_umask() -> Iterator[None]:
    """A shell that lets everyone read what is written."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Path]]:
    """What was made durable ("sync") and what got its name ("rename"), in this order."""
    seen: list[tuple[str, Path]] = []
    fsync, rename, replace, exchange = os.fsync, Path.rename, Path.replace, durable_files._exchange

    def synced(descriptor: int) -> None:
        seen.append(("sync", Path(f"/proc/self/fd/{descriptor}").readlink()))
        fsync(descriptor)

    def named(call: Callable) -> Callable:
        return lambda source, target: (seen.append(("rename", target)), call(source, target))[1]

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", named(rename))
    monkeypatch.setattr(Path, "replace", named(replace))
    monkeypatch.setattr(durable_files, "_exchange", named(exchange))
    return seen


def modes(folder: Path) -> set[str]:
    return {oct(path.stat().st_mode & 0o777) + ("/" if path.is_dir() else "") for path in [folder, *folder.rglob("*")]}


def test_json_is_durable_with_its_name_and_the_names_of_new_folders(tmp_path: Path, events: list) -> None:
    target = tmp_path / "audits" / "prod" / "run.json"
    write_json(target, {"a": 1})
    assert [path for kind, path in events if kind == "sync"][:2] == [tmp_path, tmp_path / "audits"]
    assert events[-3][0] == "sync"
    assert events[-3][1].name.startswith(".run.json.")
    assert events[-2:] == [("rename", target), ("sync", target.parent)]


@pytest.mark.parametrize("times", [1, 2])
def test_a_replaced_folder_is_durable_to_the_last_file_before_it_has_its_name(tmp_path: Path, events: list, times: int) -> None:
    target = tmp_path / "lag" / "2026-11-20"
    for _ in range(times):
        events.clear()
        with replaced_folder(target) as folder:
            (folder / "rows.parquet").mkdir()
            for name in ("rows.parquet/part-0", "manifest.json"):
                (folder / name).write_text("x")
    named = events.index(("rename", target))
    before = {path for kind, path in events[:named] if kind == "sync"}
    assert {folder, folder / "rows.parquet", folder / "rows.parquet/part-0", folder / "manifest.json"} <= before
    assert events[named + 1] == ("sync", target.parent)


def test_a_removed_folder_is_durably_no_evidence_before_its_files_go(tmp_path: Path, events: list) -> None:
    (tmp_path / "batch").mkdir()
    remove_folder(tmp_path / "batch")
    assert events == [("rename", tmp_path / ".batch.deleted"), ("sync", tmp_path)]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failing", ["sync_tree", "sync_folder"])
def test_a_disk_that_refuses_the_new_folder_keeps_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failing: str) -> None:
    target = tmp_path / "2026-11-20"
    with replaced_folder(target) as folder:
        (folder / "value").write_text("old")

    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(durable_files, failing, full)
    with pytest.raises(CollectionError, match="the disk is full"), replaced_folder(target) as folder:
        (folder / "value").write_text("new")
    assert (target / "value").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.usefixtures("open_umask")
def test_evidence_is_for_owner_and_group_only(tmp_path: Path) -> None:
    root = EvidenceRoot(path=tmp_path / "root")
    with root.snapshot_writer("prod", SNAPSHOT) as writer:
        writer.write("acls", pa.table({"principal": ["User:alice"]}))
        writer.seal({"cluster_id": "abc"})
    audit = root.audit("prod", SNAPSHOT)
    write_json(audit.run_file, {})
    with replaced_folder(audit.report) as folder:
        (folder / "report.html").write_text("x")
        (folder / "data_docs").mkdir()
    assert modes(root.path) == {"0o640", "0o750/"}


@pytest.mark.usefixtures("open_umask")
def test_rights_are_only_taken_away(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    for name, mode in (("secret", 0o600), ("open", 0o666), ("kept", 0o440)):
        (folder / name).touch()
        (folder / name).chmod(mode)
    sync_tree(folder)
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in (folder, *folder.iterdir())} == {
        "folder": "0o700",
        "secret": "0o600",
        "open": "0o640",
        "kept": "0o440",
    }
    make_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("umask", "mode"), [(0, 0o640), (0o022, 0o640), (0o077, 0o600)])
def test_what_a_command_writes_is_private_whatever_its_shell_says(tmp_path: Path, umask: int, mode: int) -> None:
    program = "import sys; from pathlib import Path; from kafka_audit.cli.main import main; main(lambda: Path(sys.argv[1]).touch())"
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "file")], umask=umask, check=True)
    assert (tmp_path / "file").stat().st_mode & 0o777 == mode


def test_a_new_file_overwrites_nothing_and_leaves_nothing_when_it_cannot_be_written(tmp_path: Path) -> None:
    target = tmp_path / "new"
    with new_file(target) as stream:
        stream.write(b"whole")
    assert target.read_bytes() == b"whole"
    with pytest.raises(ConfigurationError, match="is there already and is not overwritten"), new_file(target):
        pass
    assert target.read_bytes() == b"whole"
    other = tmp_path / "other"
    for problem, raised in ((OSError(28, "full"), CollectionError), (KeyboardInterrupt(), KeyboardInterrupt)):
        with pytest.raises(raised), new_file(other) as stream:
            stream.write(b"half")
            raise problem
        assert [path.name for path in tmp_path.iterdir()] == ["new"]


def test_a_link_in_a_folder_that_is_to_be_sealed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "groups.parquet").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        sync_tree(tmp_path / "folder")


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a": ' * 100_000, '{"a": ' + "9" * 5000 + "}"], ids=["list", "object", "number"])
def test_json_that_python_cannot_read_is_refused_with_the_files_name(tmp_path: Path, content: str) -> None:
    (tmp_path / "run.json").write_text(content)
    with pytest.raises(IntegrityError, match=r"run\.json: cannot be read as JSON"):
        read_json(tmp_path / "run.json")


def test_half_a_character_is_written_as_json_that_reads_back_as_the_same(tmp_path: Path) -> None:
    """A changed manifest may name such a file, and the reason for which it is left out is written down."""
    write_json(tmp_path / "day.json", {"reason": "\ud800: \udcff is missing", "name": "\u00fc"})
    assert read_json(tmp_path / "day.json") == {"reason": "\ud800: \udcff is missing", "name": "\u00fc"}


def test_a_json_file_that_is_too_long_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_bytes(b"{}" + b" " * 99)
    assert read_json(path, 101) == {}
    with pytest.raises(IntegrityError, match="longer than 100 bytes"):
        read_json(path, 100)


def test_a_pipe_in_place_of_a_json_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.json")
    with pytest.raises(IntegrityError, match="cannot be read as JSON"):
        read_json(tmp_path / "run.json")
