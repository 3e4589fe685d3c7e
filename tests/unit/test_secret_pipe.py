"""A secret is handed over without ever being on disk."""

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
    assert time.monotonic() - began < 5
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
