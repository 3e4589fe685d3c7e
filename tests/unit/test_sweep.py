"""The next start removes unfinished files of killed processes, but not those of living ones and nothing that is sealed."""

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from snapshot_taking import fake_cluster, snapshot_taker  # noqa: F401  (fixtures)

from kafka_audit.errors import AuditError
from kafka_audit.store import durable_files, unfinished
from kafka_audit.store.durable_files import replaced_folder, write_json
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.store.sealed import Sealed
from kafka_audit.store.sweep import OLDEST_SECONDS, sweep, sweep_folder
from kafka_audit.store.unfinished import hidden_name, hold_new, is_at, is_free

NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
SEALED, UNFINISHED = new_id(NOON, "sealed"), new_id(NOON + timedelta(hours=1), "unfinished")
ELSEWHERE = f".{UNFINISHED}.0badb007.12345678"
"""A name as another machine gives it, or this one before it was restarted."""

SNAPSHOT = f"""
import sys
import pyarrow as pa
from pathlib import Path
from kafka_audit.store.layout import EvidenceRoot
with EvidenceRoot(path=Path(sys.argv[1])).snapshot_writer("prod", "{UNFINISHED}") as writer:
    writer.write("topics", pa.table({{"topic": ["orders"]}}))
    print("ready", flush=True)
    input()
    writer.seal({{"cluster_id": "abc"}})
"""
BETWEEN_TWO_RENAMES = """
import sys
from pathlib import Path
from kafka_audit.store import durable_files, unfinished
durable_files._exchange = lambda one, other: False  # a file system that cannot, as NFS
rename = Path.rename
def waiting(self, target):
    if target.name == "2026-11-20":
        print("ready", flush=True)
        input()
    return rename(self, target)
Path.rename = waiting
with durable_files.replaced_folder(Path(sys.argv[1]) / "history/prod/lag/2026-11-20") as folder:
    (folder / "manifest.json").write_text("new")
"""


@contextlib.contextmanager
def writer(program: str, root: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that is in the middle of writing, until it is killed or gets a line."""
    process = subprocess.Popen([sys.executable, "-c", program, str(root)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def kill(process: "subprocess.Popen[str]") -> None:
    process.kill()
    process.wait()


@pytest.fixture
def root(tmp_path: Path) -> EvidenceRoot:
    """Evidence with one sealed snapshot."""
    found = EvidenceRoot(path=tmp_path / "root")
    with found.snapshot_writer("prod", SEALED) as snapshot:
        snapshot.write("topics", pa.table({"topic": ["orders"]}))
        snapshot.seal({"cluster_id": "abc"})
    return found


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_snapshot_of_a_killed_writer_is_swept_and_the_sealed_one_stays_as_it_was(root: EvidenceRoot) -> None:
    place = root.snapshot_dir("prod", SEALED).parent
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (place / SEALED).iterdir()}
    with writer(SNAPSHOT, root.path) as process:
        kill(process)
    assert len(names(place)) == 2
    said: list[str] = []
    sweep(root, "prod", said.append)
    assert names(place) == [SEALED]
    assert len(said) == 1
    assert f".{UNFINISHED}." in said[0]
    assert said[0].endswith("removed, a writer that was killed had left it")
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (place / SEALED).iterdir()} == before


def test_a_living_writer_is_left_alone_and_finishes(root: EvidenceRoot) -> None:
    with writer(SNAPSHOT, root.path) as process:
        half = hidden_folder(root)
        os.utime(half, (0, 0))  # however old it looks
        sweep(root, "prod")
        assert process.stdin
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.wait(timeout=600) == 0
    assert Sealed.verified(root.snapshot_dir("prod", UNFINISHED))


def hidden_folder(root: EvidenceRoot) -> Path:
    (found,) = root.snapshot_dir("prod", SEALED).parent.glob(".*")
    return found


def test_the_next_snapshot_sweeps_what_the_last_one_left(take, tmp_path: Path) -> None:
    left = tmp_path / "offsets" / "fake" / hidden_name(Path(UNFINISHED))
    left.mkdir(parents=True)
    take()
    assert not left.exists()


def test_of_another_machine_only_what_nobody_touched_for_a_day_is_swept(root: EvidenceRoot) -> None:
    place = root.snapshot_dir("prod", SEALED).parent
    long_ago = time.time() - OLDEST_SECONDS - 60
    untouched, written = place / ELSEWHERE, place / ELSEWHERE.replace("1234", "4321")
    for folder in (untouched, written):
        (folder / "findings.parquet" / "_temporary").mkdir(parents=True)
    (written / "findings.parquet" / "_temporary" / "part").touch()
    for path in (untouched, *untouched.rglob("*"), written, written / "findings.parquet"):
        os.utime(path, (long_ago, long_ago))
    sweep(root, "prod")
    assert names(place) == [written.name, SEALED]


def test_a_file_half_written_is_swept_after_a_day(root: EvidenceRoot) -> None:
    run = root.audit("prod", UNFINISHED).run_file
    write_json(run, {})
    half = [hidden_name(run), hidden_name(run.parent / "gate" / "evidence.json")]
    for path in half:
        path.parent.mkdir(exist_ok=True)
        path.touch()
    sweep(root, "prod")
    assert all(path.exists() for path in half)
    for path in half:
        os.utime(path, (0, 0))
    sweep(root, "prod")
    assert not any(path.exists() for path in half)
    assert run.is_file()


@pytest.mark.parametrize("place", [f"audits/prod/{UNFINISHED}", f"audits/prod/{UNFINISHED}/gate", "history/prod/lag"])
def test_a_folder_half_replaced_is_swept_wherever_a_step_writes_one(root: EvidenceRoot, place: str) -> None:
    with pytest.raises(RuntimeError), replaced_folder(root.path / place / "result") as folder:
        killed = folder.with_name(hidden_name(root.path / place / "result").name)  # as one that a kill left: its writer's lock is gone
        killed.mkdir()
        raise RuntimeError
    assert killed.is_dir()
    sweep(root, "prod")
    assert names(root.path / place) == []


def test_names_that_no_writer_gives_stay(root: EvidenceRoot) -> None:
    place = root.snapshot_dir("prod", SEALED).parent
    others = [".lock", ".keep", ".nfs000000000001", f".{SEALED}", f"{SEALED}.0badb007.12345678"]
    for name in others:
        (place / name).touch()
        os.utime(place / name, (0, 0))
    sweep(root, "prod")
    assert names(place) == sorted([*others, SEALED])


def test_what_a_killed_deletion_left_is_swept_and_a_link_is_not_followed(root: EvidenceRoot, tmp_path: Path) -> None:
    place, outside = root.snapshot_dir("prod", SEALED).parent, tmp_path / "outside"
    (place / f".{UNFINISHED}.deleted").mkdir()
    outside.mkdir()
    (outside / "file").touch()
    for name in (f".{UNFINISHED}x.deleted", ELSEWHERE):
        (place / name).symlink_to(outside)
        os.utime(place / name, (0, 0), follow_symlinks=False)
    sweep(root, "prod")
    assert names(place) == [SEALED]
    assert names(outside) == ["file"]


def test_a_folder_whose_replacement_was_killed_gets_its_name_back_once_the_writer_is_dead(root: EvidenceRoot) -> None:
    place = root.lag_days("prod")
    with replaced_folder(place / "2026-11-20") as folder:
        (folder / "manifest.json").write_text("old")
    with writer(BETWEEN_TWO_RENAMES, root.path) as process:
        assert not (place / "2026-11-20").exists()
        sweep(root, "prod")
        assert not (place / "2026-11-20").exists()
        kill(process)
    said: list[str] = []
    sweep(root, "prod", said.append)
    assert (place / "2026-11-20" / "manifest.json").read_text() == "old"
    assert names(place) == ["2026-11-20"]
    assert any("restored, because what was to replace it was never finished" in line for line in said)


def test_where_names_cannot_be_exchanged_a_folder_is_replaced_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_files, "_exchange", lambda _one, _other: False)
    for text in ("first", "second"):
        with replaced_folder(tmp_path / "gate") as folder:
            (folder / "verdict").write_text(text)
    assert (tmp_path / "gate" / "verdict").read_text() == "second"
    assert names(tmp_path) == ["gate"]


def test_a_reader_finds_a_folder_at_every_moment_while_it_is_replaced_and_no_writer_is_swept(tmp_path: Path) -> None:
    with replaced_folder(tmp_path / "day") as folder:
        (folder / "value").write_text("0")
    missing, problems, done = 0, [], threading.Event()

    def write() -> None:
        try:
            for number in range(30):
                with replaced_folder(tmp_path / "day") as folder:
                    (folder / "value").write_text(str(number))
        except (OSError, AuditError) as problem:
            problems.append(problem)
        finally:
            done.set()

    writing = threading.Thread(target=write)
    writing.start()
    while not done.is_set():
        missing += not (tmp_path / "day").exists()
        sweep_folder(tmp_path)
    writing.join()
    assert (missing, problems) == (0, [])
    assert (tmp_path / "day" / "value").read_text() == "29"
    assert names(tmp_path) == ["day"]


def test_a_writer_waits_until_a_sweep_that_found_its_new_folder_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, sweeps = tmp_path / "fresh", []

    def sweep_comes_first(descriptor: int) -> bool | None:
        if sweeps:
            return is_free(descriptor)
        of_sweep = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        assert is_free(of_sweep)

        def remove() -> None:
            time.sleep(0.2)
            shutil.rmtree(folder)
            os.close(of_sweep)

        sweeps.append(threading.Thread(target=remove))
        sweeps[0].start()
        return is_free(descriptor)

    monkeypatch.setattr(unfinished, "is_free", sweep_comes_first)
    descriptor = hold_new(folder, 0o700)
    sweeps[0].join()
    (folder / "value").write_text("kept")
    assert is_at(descriptor, folder)
    os.close(descriptor)
