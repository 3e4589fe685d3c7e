"""However the block around a child process ends, no process that the child started survives."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from kafka_audit.airflow.process_group import interruptible, stopped_at_exit

# A child that starts a grandchild in a session of its own which ignores SIGINT and SIGTERM, and then waits.
FAMILY = """
import subprocess, sys, time
stubborn = "import time, signal as s; s.signal(s.SIGINT, s.SIG_IGN); s.signal(s.SIGTERM, s.SIG_IGN); print(1, flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", stubborn], stdout=subprocess.PIPE, start_new_session=True)
child.stdout.readline()
print(child.pid, flush=True)
time.sleep(600)
"""


def start_family() -> tuple["subprocess.Popen[bytes]", int]:
    process = subprocess.Popen([sys.executable, "-c", FAMILY], stdout=subprocess.PIPE, start_new_session=True)
    assert process.stdout is not None
    return process, int(process.stdout.readline())


def is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_a_grandchild_that_ignores_every_polite_signal_is_gone_after_an_error() -> None:
    process, grandchild = start_family()
    with pytest.raises(RuntimeError), stopped_at_exit(process, grace_seconds=0.2):
        raise RuntimeError
    assert process.poll() is not None
    assert not is_alive(grandchild)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_to_us_ends_the_family_and_the_former_handlers_are_back(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    process, grandchild = start_family()
    with pytest.raises(KeyboardInterrupt), stopped_at_exit(process, grace_seconds=0.2):
        os.kill(os.getpid(), number)
        signal.pause()
    assert not is_alive(process.pid)
    assert not is_alive(grandchild)
    assert signal.getsignal(number) == before


def test_a_process_that_ended_by_itself_keeps_its_exit_status(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(7)"], start_new_session=True)
    with stopped_at_exit(process):
        process.wait()
    assert process.returncode == 7


def test_a_child_obeys_ctrl_c_although_we_were_started_to_ignore_it() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = interruptible([sys.executable, "-c", "import time; print(1, flush=True); time.sleep(600)"], stdout=subprocess.PIPE)
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert process.stdout is not None
    process.stdout.readline()
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=600) != 0
