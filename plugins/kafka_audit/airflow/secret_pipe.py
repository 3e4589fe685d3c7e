"""Hands a secret to another process of this user by a named pipe: it is never on disk, and a killed task leaves none behind."""

import os
import re
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

_FOLDER = re.compile(r"kafka-audit-pipe-(\d+)-\w+")


@contextmanager
def readable_once(name: str, text: str) -> Iterator[Path]:
    """The path of a pipe ``name`` from which one reader gets ``text``; it is gone at the end of the block, read or not.

    Its folder is private. The empty folders of killed processes are removed first.
    """
    _sweep()
    with tempfile.TemporaryDirectory(prefix=f"kafka-audit-pipe-{os.getpid()}-") as folder:  # its mode is 0700
        pipe = Path(folder) / name
        os.mkfifo(pipe, 0o600)
        # Opening it waits for the reader; a daemon thread, so that it cannot hold up the end of this process.
        writer = threading.Thread(target=_write, args=(pipe, text.encode()), daemon=True)
        writer.start()
        try:
            yield pipe
        finally:
            _release(pipe, writer)


def _write(pipe: Path, content: bytes) -> None:
    with suppress(BrokenPipeError), pipe.open("wb", buffering=0) as stream:
        stream.write(content)


def _release(pipe: Path, writer: threading.Thread) -> None:
    """Read what nobody read, so that the writer ends."""
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        while writer.is_alive():
            with suppress(BlockingIOError):
                os.read(reader, 65536)
            writer.join(0.05)
    finally:
        os.close(reader)


def _sweep() -> None:
    for folder in Path(tempfile.gettempdir()).glob("kafka-audit-pipe-*"):
        found = _FOLDER.fullmatch(folder.name)
        if found and not psutil.pid_exists(int(found[1])):
            shutil.rmtree(folder, ignore_errors=True)  # another user's stays: it may not be removed
