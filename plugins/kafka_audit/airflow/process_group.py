"""Ends a child process and everything that it started, however the parent itself ends."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, cast

import psutil

_KILLED_SECONDS = 5  # a killed process ends at once, unless the kernel is busy with its disk


@contextmanager
def stopped_at_exit(process: "subprocess.Popen[bytes]", *, grace_seconds: float = 10) -> Iterator[None]:
    """However the block is left, also by Ctrl-C, SIGTERM or SIGHUP, nothing that ``process`` started outlives it.

    The process gets SIGINT (Airflow stops its children cleanly on SIGINT, and leaves them running on SIGTERM); what is left of
    its family after ``grace_seconds`` is killed, by process id.
    """
    try:
        with handling(signal.SIGTERM, signal.SIGHUP, to=_interrupt):
            yield
    finally:
        with handling(signal.SIGINT, to=signal.SIG_IGN):  # an impatient second Ctrl-C must not leave half of it running
            _stop(process, grace_seconds)


def interruptible(*arguments: Any, **keywords: Any) -> "subprocess.Popen[bytes]":  # noqa: ANN401  (those of Popen)
    """``subprocess.Popen`` in a session of its own, for a child that obeys SIGINT.

    A background job of a script is started with SIGINT ignored, and its children would inherit that; then Airflow could only be killed.
    """
    with handling(signal.SIGINT, to=signal.default_int_handler):
        return cast("subprocess.Popen[bytes]", subprocess.Popen(*arguments, **keywords, start_new_session=True))


@contextmanager
def handling(*numbers: signal.Signals, to: Any) -> Iterator[None]:  # noqa: ANN401  (a handler or signal.SIG_IGN)
    """Handle these signals by ``to`` while the block runs; without effect outside the main thread, where Python forbids it."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, to) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _stop(process: "subprocess.Popen[bytes]", grace_seconds: float) -> None:
    # Noted before anything ends: the children of a process that is gone can no longer be found through it.
    seen = family(process.pid)
    if process.poll() is None:
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
    until = time.monotonic() + grace_seconds
    while time.monotonic() < until and (process.poll() is None or alive(seen)):
        seen |= family(process.pid)
        time.sleep(0.2)
    stubborn = alive(seen)
    for one in stubborn:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    process.wait()
    _wait_for(stubborn)


def family(pid: int) -> set[psutil.Process]:
    """The process, its descendants, and whoever else is in the session that it leads."""
    found: set[psutil.Process] = set()
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(pid)
        found |= {parent, *parent.children(recursive=True)}
    for one in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, ProcessLookupError, PermissionError):
            if os.getsid(one.pid) == pid:
                found.add(one)
    return found


def alive(processes: Iterable[psutil.Process]) -> list[psutil.Process]:
    """Those that still run: a zombie does not, nor does another process that got the same id."""
    found = []
    for one in processes:
        with suppress(psutil.NoSuchProcess):
            if one.is_running() and one.status() != psutil.STATUS_ZOMBIE:
                found.append(one)
    return found


def end_marked(name: str, value: str) -> int:
    """Kill every process of this user that has ``name=value`` in its environment, with its descendants; returns how many there were."""
    found: set[psutil.Process] = set()
    for one in psutil.process_iter():
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if one.environ().get(name) == value and one.pid != os.getpid():
                found |= {one, *one.children(recursive=True)}
    left = alive(found)
    for one in left:
        with suppress(psutil.NoSuchProcess):
            one.kill()
    _wait_for(left)
    return len(left)


def _wait_for(killed: Sequence[psutil.Process]) -> None:
    """Until none of them runs. psutil would wait until their parent has asked for their exit codes, too; some parents take seconds."""
    until = time.monotonic() + _KILLED_SECONDS
    while alive(killed) and time.monotonic() < until:
        time.sleep(0.01)
