"""Processes are recognized by more than their pid, and none survives a stop."""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kafka_audit.sandbox import processes
from kafka_audit.sandbox.processes import ProcessRecord

SLEEPS = "import sys, time; print('ready', flush=True); time.sleep(60)"
DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); " + SLEEPS


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[list[ProcessRecord]]:
    records: list[ProcessRecord] = []
    yield records
    processes.stop([found for record in records if (found := record.find())], grace=0)


def launch(tmp_path: Path, launched: list[ProcessRecord], program: str = SLEEPS) -> ProcessRecord:
    argument, log = str(tmp_path / "plan.json"), tmp_path / "logs" / "it.log"
    record = processes.launch("it", [sys.executable, "-c", program, argument], argument=argument, log=log, cwd=tmp_path)
    launched.append(record)
    while "ready" not in log.read_text(encoding="utf-8"):
        time.sleep(0.02)
    return record


def test_a_process_is_known_again_by_pid_start_time_and_argument(tmp_path: Path, launched: list[ProcessRecord]) -> None:
    record = launch(tmp_path, launched)
    assert record.find() == psutil.Process(record.pid)
    assert record.model_copy(update={"started": record.started - 60}).find() is None
    assert record.model_copy(update={"argument": "/another/plan.json"}).find() is None


def test_a_process_is_found_from_its_very_first_moment(tmp_path: Path, launched: list[ProcessRecord]) -> None:
    argument, log = str(tmp_path / "plan.json"), tmp_path / "it.log"
    for _ in range(20):  # Popen returns while the kernel may still be replacing the child's program, with no command line to read
        launched.append(processes.launch("it", [sys.executable, "-c", SLEEPS, argument], argument=argument, log=log, cwd=tmp_path))
        assert launched[-1].find() is not None


def test_a_process_without_a_command_line_is_starting_up_unless_it_ended(
    tmp_path: Path, launched: list[ProcessRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    record = launch(tmp_path, launched)
    monkeypatch.setattr(psutil.Process, "cmdline", lambda self: [])
    assert record.find() == psutil.Process(record.pid)
    assert record.model_copy(update={"started": record.started - 60}).find() is None


def test_a_process_that_no_state_file_names_is_found_by_its_exact_argument(tmp_path: Path, launched: list[ProcessRecord]) -> None:
    record = launch(tmp_path, launched)
    assert [process.pid for process in processes.running([record.argument])] == [record.pid]
    assert processes.running([record.argument[:-1]]) == []


def test_a_process_that_ignores_sigterm_is_killed(tmp_path: Path, launched: list[ProcessRecord]) -> None:
    record = launch(tmp_path, launched, DEAF)
    process = record.find()
    assert process is not None
    processes.stop([process], grace=0.3)
    assert record.find() is None
    assert processes.running([record.argument]) == []


def test_it_runs_in_a_session_of_its_own(tmp_path: Path, launched: list[ProcessRecord]) -> None:
    import os

    record = launch(tmp_path, launched)
    assert os.getsid(record.pid) == record.pid != os.getsid(0)


def test_the_tail_of_a_log_is_short(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    assert processes.tail(log) == "(no log)"
    log.write_text("".join(f"line {n} {'x' * 900}\n" for n in range(100)), encoding="utf-8")
    assert len(processes.tail(log, lines=3)) < 3 * 310
    assert processes.tail(log, lines=1).startswith("  line 99 ")
