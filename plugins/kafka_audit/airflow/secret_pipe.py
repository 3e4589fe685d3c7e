"""Hands a secret to another process of this user by a named pipe: it is never on disk, and a killed task leaves none behind."""

import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kafka_audit.store.unfinished import held_folder, is_at, is_free

_PREFIX = "kafka-audit-pipe-"


@contextmanager
def readable_once(name: str, text: str) -> Iterator[Path]:
    """The path of a pipe ``name`` from which one reader gets ``text``; it is gone at the end of the block, read or not.

    Its folder is private. The folders of killed processes, which hold no secret, are removed first.
    """
    _sweep()
    folder = Path(tempfile.gettempdir()) / f"{_PREFIX}{uuid.uuid4().hex}"
    with held_folder(folder, 0o700):
        try:
            pipe = folder / name
            os.mkfifo(pipe, 0o600)
            # Opening it waits for the reader; a daemon thread, so that it cannot hold up the end of this process.
            writer = threading.Thread(target=_write, args=(pipe, text.encode()), daemon=True)
            writer.start()
            try:
                yield pipe
            finally:
                _release(pipe, writer)
        finally:
            shutil.rmtree(folder, ignore_errors=True)


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
    """The lock of a folder tells whether its process lives: a process number of another container with this folder would tell nothing."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except OSError:  # another user's, or gone meanwhile
            continue
        try:
            if is_free(descriptor) and is_at(descriptor, folder):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(descriptor)
