"""Starts the sandbox's processes, each in its own session, and recognizes them later by pid, start time and argument."""

import os
import subprocess
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path

import psutil

from kafka_audit.input_files.fields import Strict

# Kept so that a stopped child can be reaped, and so that Python does not warn about a child that outlives its Popen.
_children: list[subprocess.Popen[bytes]] = []


class ProcessRecord(Strict):
    """A started process: role (broker-1, workload), pid, start time in epoch seconds, and an argument to recognize it by."""

    role: str
    pid: int
    started: float
    argument: str

    def find(self) -> psutil.Process | None:
        """Return the live process, or None if it ended or its pid now belongs to another process."""
        try:
            process = psutil.Process(self.pid)
            words = process.cmdline()
            # While the kernel replaces a new child's program, its command line is empty: it is starting, it has not ended.
            same = abs(process.create_time() - self.started) < 2 and (not words or self.argument in words)
            return process if same and process.status() != psutil.STATUS_ZOMBIE else None
        except (psutil.NoSuchProcess, psutil.ZombieProcess, psutil.AccessDenied):
            return None


def launch(role: str, command: Sequence[str], *, argument: str, log: Path, cwd: Path) -> ProcessRecord:
    """Start a command in its own session, so that Ctrl-C in the terminal does not reach it; append its output to log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, start_new_session=True, cwd=cwd, env=os.environ
        )
    _children.append(child)
    try:
        started = psutil.Process(child.pid).create_time()
    except psutil.NoSuchProcess:  # it has ended already: the caller that waits for it reports why
        started = time.time()
    return ProcessRecord(role=role, pid=child.pid, started=started, argument=argument)


def running(arguments: Iterable[str]) -> list[psutil.Process]:
    """Return every live process of this user that has one of these exact arguments, including those that no state file lists."""
    wanted = set(arguments)
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words: list[str] = process.info["cmdline"] or []
        if wanted.intersection(words) and process.info["status"] != psutil.STATUS_ZOMBIE and process.pid != os.getpid():
            found.append(process)
    return found


def stop(targets: Sequence[psutil.Process], *, grace: float) -> None:
    """Send SIGTERM to all, wait up to grace seconds in total, then SIGKILL those that are left and wait until they are gone."""
    for process in targets:
        with suppress(psutil.NoSuchProcess):
            process.terminate()
    _, left = psutil.wait_procs(list(targets), timeout=grace)
    for process in left:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=10)
    _children[:] = [child for child in _children if child.poll() is None]


def tail(log: Path, lines: int = 8) -> str:
    """Return the last lines of a log, each cut to 300 characters, for an error message."""
    if not log.is_file():
        return "(no log)"
    with log.open("rb") as handle:
        handle.seek(max(0, log.stat().st_size - 20_000))
        text = handle.read().decode("utf-8", errors="replace")
    return "\n".join(f"  {line[:300]}" for line in text.splitlines()[-lines:]) or "  (empty log)"
