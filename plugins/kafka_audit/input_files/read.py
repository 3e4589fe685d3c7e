"""Reads a file that a person wrote for this tool; refuses anything but a regular file of a reasonable size."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from kafka_audit.errors import ConfigurationError

MOST_BYTES = 1_000_000
"""No policy, control, connection or client file has more bytes."""
MOST_HASHED = 50_000_000
"""All files that show what people attest have no more bytes together; they are copied into every audit."""


def refuse_outside(folder: Path, path: Path) -> None:
    """ConfigurationError when a file lies outside of a folder, also by a link.

    Errors, reports and hashes would say something of a file that the author of the folder may not read, but the audit may.
    """
    try:
        if path.resolve().is_relative_to(folder.resolve()):
            return
    except (OSError, RuntimeError, ValueError):  # a loop of links; a NUL in the name
        pass
    raise ConfigurationError(f"lies outside of the folder {folder}: copy the file into it, and name it relative to the folder")


def read_input(path: Path, advice: str, *, pipe: bool = False) -> bytes:
    """All bytes of a file; FileNotFoundError when there is none.

    ConfigurationError when it cannot be read, is a folder, a pipe or a device, or has more than MOST_BYTES; ``advice`` says what to name.
    With ``pipe``, a pipe is read too: secrets are handed over by one, and its reader waits until somebody has written into it.
    """
    with _opened(path, advice, pipe=pipe) as stream:
        raw = stream.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        raise ConfigurationError(f"{path}: has more than {MOST_BYTES:,} bytes; {advice}")
    return raw


def hash_input(path: Path, advice: str) -> tuple[str, int]:
    """The sha256 of a file of at most MOST_HASHED bytes, as hexadecimal digits, and its length; FileNotFoundError when there is none.

    ConfigurationError when it cannot be read, is no regular file, or is longer.
    """
    digest, length = hashlib.sha256(), 0
    for part in _parts(path, advice):
        digest.update(part)
        length += len(part)
    return digest.hexdigest(), length


def copy_input(path: Path, target: Path, within: Path) -> None:
    """Copy a file of at most MOST_HASHED bytes; ConfigurationError when it is gone, lies outside of ``within`` or is no regular file."""
    advice = "put the file back that the audit began with"
    try:
        refuse_outside(within, path)
        with target.open("xb") as copy:
            for part in _parts(path, advice):
                copy.write(part)
    except FileNotFoundError as problem:
        raise ConfigurationError(f"{path}: the file is gone; {advice}") from problem


def _parts(path: Path, advice: str) -> Iterator[bytes]:
    """The bytes of a regular file, which may grow meanwhile: never more than MOST_HASHED."""
    left = MOST_HASHED
    with _opened(path, advice) as stream:
        if os.fstat(stream.fileno()).st_size > left:
            raise ConfigurationError(f"{path}: has more than {MOST_HASHED:,} bytes; {advice}")
        while left and (part := stream.read(min(left, 1 << 20))):
            left -= len(part)
            yield part


@contextmanager
def _opened(path: Path, advice: str, *, pipe: bool = False) -> Iterator[BinaryIO]:
    """The file, open for reading; what goes wrong in the block while it is read is a ConfigurationError too, but for FileNotFoundError."""
    try:
        waiting = pipe and path.is_fifo()
        flags = os.O_RDONLY | os.O_CLOEXEC | (0 if waiting else os.O_NONBLOCK)
        with os.fdopen(os.open(path, flags), "rb") as stream:
            mode = os.fstat(stream.fileno()).st_mode
            if not (stat.S_ISREG(mode) or (waiting and stat.S_ISFIFO(mode))):
                raise ConfigurationError(f"{path}: is not a regular file; {advice}")
            yield stream
    except FileNotFoundError:
        raise
    except OSError as problem:
        raise ConfigurationError(f"{path}: cannot be read ({problem.strerror}); {advice}") from problem
    except ValueError as problem:  # a NUL in the name
        raise ConfigurationError(f"{str(path)!r}: is no name of a file; {advice}") from problem
