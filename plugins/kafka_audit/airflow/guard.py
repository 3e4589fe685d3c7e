"""Runs a command and ends it when a process it depends on ends: ``python -m kafka_audit.airflow.guard --needs PID -- COMMAND``.

A process that is killed (SIGKILL) cannot stop its children. The guard stands between the two: it starts the command, passes signals
on to it and ends with its exit code. When one of the processes that it needs is gone, it kills everything that the command started.
A lock that it was given is held until nothing of that is left.
"""

import argparse
import ctypes
import os
import select
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import FrameType

import psutil

from kafka_audit.airflow.process_group import alive, family

_LOOK_SECONDS = 0.3
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36  # <linux/prctl.h>
_PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def guarded(command: Sequence[str], *, needs: Iterable[int] = (), lock: int | None = None, hand_over: Iterable[int] = ()) -> list[str]:
    """The command line that runs ``command`` under a guard; to be started by this process, whose end ends it.

    ``needs``: further processes whose end ends it. ``lock``: a file descriptor that the guard alone keeps, to its end;
    ``hand_over``: those that only the command keeps. The guard must inherit both.
    """
    line = [sys.executable, "-m", "kafka_audit.airflow.guard"]
    for pid in (os.getpid(), *needs):
        line += ["--needs", str(pid)]
    if lock is not None:
        line += ["--lock", str(lock)]
    for descriptor in hand_over:
        line += ["--hand-over", str(descriptor)]
    return [*line, "--", *command]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command to its end, or to that of a process it needs; returns its exit code."""
    parser = argparse.ArgumentParser(prog="guard", description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--needs", type=int, action="append", required=True, help="a process; the first one is the guard's parent")
    parser.add_argument("--lock", type=int, help="a file descriptor that only the guard keeps")
    parser.add_argument("--hand-over", type=int, action="append", default=[], help="a file descriptor that only the command keeps")
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args(argv)
    parent, *others = arguments.needs
    try:
        needed = [psutil.Process(pid) for pid in others]
    except psutil.NoSuchProcess:
        return 1
    _adopt_orphans()
    woken = _wake_at_signals()
    if arguments.lock is not None:
        # An orphan of a killed guard must not hold it: the next start ends that orphan, for which it needs the lock.
        os.set_inheritable(arguments.lock, False)
    # Every other descriptor that the guard inherited is meant for the command; those of its own are not inheritable.
    process = subprocess.Popen(arguments.command, close_fds=False, preexec_fn=_end_with(os.getpid()))  # noqa: PLW1509  (no threads here)
    child = process.pid  # of the object no more is used, but it must be kept: one that is dropped takes the exit status away
    for descriptor in arguments.hand_over:
        os.close(descriptor)
    for number in _PASSED_ON:
        signal.signal(number, _pass_on_to(child))
    code = None
    while code is None and os.getppid() == parent and len(alive(needed)) == len(needed):
        select.select([woken], [], [], _LOOK_SECONDS)
        with suppress(BlockingIOError):
            os.read(woken, 4096)
        code = _exit_code_of(child)
    for number in _PASSED_ON:
        signal.signal(number, signal.SIG_IGN)
    _kill_descendants()
    process.returncode = 1 if code is None else code
    return process.returncode


def _adopt_orphans() -> None:
    """Be the parent of every descendant whose own parent ended, so that none is lost from sight (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _end_with(guard: int) -> Callable[[], None] | None:
    """What the command's process does before it becomes the command: ask the kernel to end it with the guard, however that ends (Linux)."""
    if sys.platform != "linux":
        return None
    prctl = ctypes.CDLL(None).prctl  # loaded before the fork

    def ask() -> None:
        prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != guard:  # it ended before it was asked
            os._exit(1)

    return ask


def _wake_at_signals() -> int:
    """A pipe that can be read after each signal, the end of a child included."""
    reader, writer = os.pipe()
    for end in (reader, writer):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return reader


def _pass_on_to(child: int) -> Callable[[int, FrameType | None], None]:
    def pass_on(number: int, frame: FrameType | None) -> None:
        with suppress(ProcessLookupError):
            os.kill(child, number)

    return pass_on


def _exit_code_of(child: int) -> int | None:
    """Bury the children that ended, adopted ones too; the exit code of ``child`` as a shell gives it, None while it runs."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return None
        if pid == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _kill_descendants() -> None:
    us = psutil.Process()
    while left := alive(family(us.pid) - {us}):
        for one in left:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        psutil.wait_procs(left, timeout=1)


if __name__ == "__main__":
    sys.exit(main())
