"""Whichever process is killed with SIGKILL, all processes it started end, and a living run is never mistaken for a dead one."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from kafka_audit.airflow.guard import guarded
from kafka_audit.airflow.run_dag import only_one
from kafka_audit.errors import CollectionError

# A command that starts a child which is nobody's: in a session of its own, its parent gone, deaf to every polite signal. It tells both ids.
COMMAND = """
import os, signal, sys, time
from pathlib import Path
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    Path(sys.argv[1], "orphan").write_text(str(os.getpid()))
    time.sleep(600)
Path(sys.argv[1], "command").write_text(str(os.getpid()))
time.sleep(600)
"""

# What ``kafka-audit audit`` does: it holds the home's lock, starts a guarded command that inherits it, and waits.
STARTER = f"""
import subprocess, sys
from pathlib import Path
from kafka_audit.airflow.guard import guarded
from kafka_audit.airflow.process_group import interruptible
from kafka_audit.airflow.run_dag import MARK, only_one
import os
home = Path(sys.argv[1])
with only_one(home) as lock:
    process = interruptible(
        guarded([sys.executable, "-c", {COMMAND!r}, str(home)], lock=lock), pass_fds=[lock], env={{**os.environ, MARK: str(home)}}
    )
    (home / "guard").write_text(str(process.pid))
    process.wait()
"""


def is_alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def until(found: Callable[[], bool], seconds: float = 120) -> bool:
    end = time.monotonic() + seconds
    while not found() and time.monotonic() < end:
        time.sleep(0.05)
    return found()


class Run:
    """A started command with its guard, its child and an orphan."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.starter = subprocess.Popen([sys.executable, "-c", STARTER, str(home)])
        assert until(lambda: all((home / name).is_file() and (home / name).read_text() for name in ("guard", "command", "orphan")))

    def pid(self, name: str) -> int:
        return int((self.home / name).read_text())

    @property
    def living(self) -> list[str]:
        return [name for name in ("guard", "command", "orphan") if is_alive(self.pid(name))]

    def kill(self, *pids: int) -> None:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        self.starter.wait()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run(tmp_path)


def test_a_killed_command_takes_everything_along_and_its_lock_is_held_as_long_as_any_of_it_lives(run: Run) -> None:
    with pytest.raises(CollectionError, match="another audit"), only_one(run.home):
        pass
    run.kill(run.starter.pid)
    end = time.monotonic() + 300
    while True:
        try:
            with only_one(run.home):
                assert run.living == []
                break
        except CollectionError:
            assert time.monotonic() < end, f"still alive: {run.living}"


def test_a_stopped_guard_of_a_killed_command_keeps_the_lock_so_that_its_run_is_not_taken_for_dead(run: Run) -> None:
    os.kill(run.pid("guard"), signal.SIGSTOP)
    run.kill(run.starter.pid)
    with pytest.raises(CollectionError, match="another audit"), only_one(run.home):
        pass
    assert run.living == ["guard", "command", "orphan"]
    os.kill(run.pid("guard"), signal.SIGCONT)
    assert until(lambda: run.living == [])


def test_a_killed_guard_takes_its_command_along_and_the_next_start_ends_the_rest(run: Run) -> None:
    os.kill(run.starter.pid, signal.SIGSTOP)  # or it would do that itself
    run.kill(run.pid("guard"), run.starter.pid)
    assert until(lambda: "command" not in run.living)
    assert run.living == ["orphan"]
    with only_one(run.home):
        assert run.living == []


def test_a_process_that_is_needed_besides_the_parent_ends_the_command_too(tmp_path: Path) -> None:
    needed = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    guard = subprocess.Popen(guarded([sys.executable, "-c", COMMAND, str(tmp_path)], needs=[needed.pid]))
    assert until(lambda: (tmp_path / "orphan").is_file() and (tmp_path / "command").is_file())
    needed.kill()  # not waited for: a zombie counts as gone
    assert guard.wait(timeout=600) == 1
    assert not is_alive(int((tmp_path / "orphan").read_text()))
    needed.wait()


@pytest.mark.parametrize(("body", "code"), [("", 0), ("raise SystemExit(5)", 5), ("import os; os.kill(os.getpid(), 9)", 137)])
def test_the_guard_ends_as_its_command_does(body: str, code: int) -> None:
    assert subprocess.run(guarded([sys.executable, "-c", body]), check=False).returncode == code


def test_a_command_that_ends_at_once_is_not_missed() -> None:
    assert [subprocess.run(guarded(["sh", "-c", "exit 5"]), check=False).returncode for _ in range(10)] == [5] * 10


def test_what_a_command_leaves_behind_at_its_end_is_killed(tmp_path: Path) -> None:
    body = COMMAND.rsplit("time.sleep", 1)[0] + "\nwhile not Path(sys.argv[1], 'orphan').is_file(): time.sleep(0.05)\n"
    assert subprocess.run(guarded([sys.executable, "-c", body, str(tmp_path)]), check=False, timeout=600).returncode == 0
    assert not is_alive(int((tmp_path / "orphan").read_text()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_reach_the_command_which_decides_how_it_ends(number: signal.Signals) -> None:
    body = f"import signal, sys, time\nsignal.signal({int(number)}, lambda *_: sys.exit(7))\nprint(1, flush=True)\ntime.sleep(600)"
    guard = subprocess.Popen(guarded([sys.executable, "-c", body]), stdout=subprocess.PIPE)
    assert guard.stdout is not None
    guard.stdout.readline()
    guard.send_signal(number)
    assert guard.wait(timeout=600) == 7


def test_a_descriptor_that_is_handed_over_is_closed_when_the_command_closes_it() -> None:
    reader, writer = os.pipe()
    body = f"import os, time\nos.write({writer}, b'x')\nos.close({writer})\ntime.sleep(600)"
    guard = subprocess.Popen(guarded([sys.executable, "-c", body], hand_over=[writer]), pass_fds=[writer])
    os.close(writer)
    with os.fdopen(reader, "rb") as stream:
        assert stream.read() == b"x"  # its end: nobody else has it
    guard.kill()
    guard.wait()
