"""Runs a program on a terminal of its own, whose size a test can change."""

import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping

_SECONDS = 300


class PseudoTerminal:
    """A Python script whose standard streams are a terminal; ``written`` is all that it has written there."""

    def __init__(self, script: str, *arguments: str, columns: int, lines: int = 24, env: Mapping[str, str] | None = None) -> None:
        self._ours, theirs = os.openpty()
        self.resize(columns, lines)
        clean = {name: value for name, value in os.environ.items() if name not in {"COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"}}
        self.process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            **dict.fromkeys(("stdin", "stdout", "stderr"), theirs),
            env={**clean, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm-256color", **(env or {})},
            start_new_session=True,
        )
        os.close(theirs)
        self.written = ""

    def resize(self, columns: int, lines: int = 24) -> None:
        """As a window's frame is pulled."""
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def read_until(self, *texts: str) -> str:
        """Read until all of these were written after what was read before; returns what was read."""
        began, start = time.monotonic(), len(self.written)
        while not all(text in self.written[start:] for text in texts):
            assert time.monotonic() < began + _SECONDS, f"{texts} were not written, but {self.written[start:]!r}"
            assert self._read(), f"ended without {texts}: {self.written[start:]!r}"
        return self.written[start:]

    def read_to_end(self) -> str:
        """Read until the program has ended; returns what was read."""
        start = len(self.written)
        while self._read():
            pass
        self.process.wait(timeout=_SECONDS)
        return self.written[start:]

    def close(self) -> None:
        """End the program, if it still runs."""
        self.process.kill()
        self.process.wait(timeout=_SECONDS)
        os.close(self._ours)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._ours], [], [], 1)
        if not ready:
            return True
        try:
            read = os.read(self._ours, 65536)
        except OSError:  # Linux says EIO when the last process has closed its end
            return False
        self.written += read.decode("utf-8", errors="replace")
        return bool(read)
