"""Runs a command as a separate process and reads from the kernel what it used."""

import os
import re
import subprocess
import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Usage:
    """Wall seconds, CPU seconds (user + system) and peak resident memory in MB of one finished process.

    Linux counts what the starting process held when it forked as the new process's own, so the peak is never less than that: let a small
    process that is started by a large one say its :func:`own_peak_mb`.
    """

    wall_s: float
    cpu_s: float
    peak_mb: float
    output: str


def run(command: list[str], *, log: Path, env: dict[str, str] | None = None, accepted: Collection[int] = (0,)) -> Usage:
    """Run the command to its end; RuntimeError with the end of the log if its exit code is not one of ``accepted``."""
    started = time.monotonic()
    with log.open("wb") as stream:
        process = subprocess.Popen(command, stdout=stream, stderr=subprocess.STDOUT, env={**os.environ, **(env or {})})
        _, status, used = os.wait4(process.pid, 0)
    wall = time.monotonic() - started
    output = log.read_text(encoding="utf-8", errors="replace")
    code = os.waitstatus_to_exitcode(status)
    if code not in accepted:
        raise RuntimeError(f"{command[0]} ended with {code}:\n{output[-2000:]}")
    return Usage(wall_s=wall, cpu_s=used.ru_utime + used.ru_stime, peak_mb=used.ru_maxrss / 1024, output=output)


def own_peak_mb() -> int:
    """Peak resident memory of this process in MB since its program was started (``VmHWM`` of ``/proc/self/status``)."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text(encoding="utf-8"))
    assert found, "/proc/self/status does not tell VmHWM"
    return round(int(found[1]) / 1024)
