"""A secret is passed to a process without being written to disk."""

import json
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from kafka_audit.airflow.secret_pipe import readable_once
from kafka_audit.cluster.connection_file import read_keys

KEYS = {"sasl.jaas.config": 'password="hunter2"', "ssl.keystore.key": "PEM " * 50_000}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_reader_gets_all_of_it_by_a_private_pipe_that_is_gone_afterwards(folder: Path) -> None:
    with readable_once("client.json", json.dumps(KEYS)) as pipe:
        assert stat.S_ISFIFO(pipe.stat().st_mode)
        assert (stat.S_IMODE(pipe.stat().st_mode), stat.S_IMODE(pipe.parent.stat().st_mode)) == (0o600, 0o700)
        assert read_keys(pipe, pipe=True) == KEYS
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("length", [10, 1_000_000])
def test_nobody_reads_it_and_nothing_waits_for_a_reader(folder: Path, length: int) -> None:
    began = time.monotonic()
    with pytest.raises(RuntimeError), readable_once("client.json", "x" * length):
        raise RuntimeError
    assert time.monotonic() - began < 30
    assert list(folder.iterdir()) == []


def test_a_killed_process_leaves_no_secret_and_the_next_one_removes_its_empty_folder(folder: Path) -> None:
    code = f"""
import tempfile, time
tempfile.tempdir = {str(folder)!r}
from kafka_audit.airflow.secret_pipe import readable_once
with readable_once("client.json", "hunter2"):
    print(1, flush=True)
    time.sleep(600)
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert [path for path in folder.rglob("*") if path.is_file()] == []
    (left,) = folder.iterdir()
    with readable_once("client.json", "x"):
        assert not left.exists()


def test_the_pipe_of_a_living_task_in_another_container_stays(folder: Path) -> None:
    """Containers may share the folder for temporary files, and a process number of one means nothing in another."""
    code = f"""
import os, tempfile
tempfile.tempdir = {str(folder)!r}
os.getpid = lambda: 2**22 + 1  # no process here has it
from kafka_audit.airflow.secret_pipe import readable_once
with readable_once("client.json", "hunter2") as pipe:
    print(pipe, flush=True)
    input()
"""
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pipe = Path(process.stdout.readline().strip())
        with readable_once("client.json", "x"):
            assert pipe.read_text() == "hunter2"
        process.communicate("\n")
    assert list(folder.iterdir()) == []
