"""The hidden names of folders that are being written, and the lock that shows others that the writer still lives.

A folder is written as ``.<name>.<boot>.<random>`` beside its place and renamed when it is whole. ``<boot>`` is the kernel's id since it
started, which all containers of a machine share. The writer holds a lock on the folder itself, which the kernel releases when the writer
dies: on the same boot the lock tells who lives; of another boot, or another machine, only the folder's age tells.
"""

import contextlib
import fcntl
import functools
import os
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

HIDDEN = re.compile(r"\.(?P<name>.+?)(?P<old>\.old)?\.(?P<token>(?P<boot>[0-9a-f]{8})\.[0-9a-f]{8})")
"""Names of what one process writes."""

PARTS = ".parts"
"""How the names of folders of parts end. Nobody holds a lock on one: only its age tells whether it is left over."""


def hidden_name(target: Path) -> Path:
    """The name under which a file or folder is written before it is renamed to ``target``."""
    return target.with_name(f".{target.name}.{_boot()}.{uuid.uuid4().hex[:8]}")


def parts_name(target: Path) -> Path:
    """The hidden folder in which several processes, perhaps of several machines, put the parts of ``target``."""
    return target.with_name(f".{target.name}{PARTS}")


def old_name(fresh: Path, target: Path) -> Path:
    """The name under which ``target`` steps aside for ``fresh``, which :func:`hidden_name` named."""
    return target.with_name(f".{target.name}.old{fresh.name.removeprefix(f'.{target.name}')}")


@contextlib.contextmanager
def held_folder(folder: Path, mode: int) -> Iterator[None]:
    """Make a folder and hold it for the block: no sweep on this machine removes it while its writer lives. OSError when refused."""
    held = hold_new(folder, mode)
    try:
        yield
    finally:
        os.close(held)


def hold_new(folder: Path, mode: int) -> int:
    """Make a folder and lock it; returns the descriptor, which releases it when it is closed. OSError when refused."""
    while True:
        folder.mkdir(mode=mode)
        # A sweep may come between two of these steps: then it has the lock, or the folder is gone.
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue
        if is_free(descriptor) is False:  # it removes by name: the next folder of that name, too, if there is one before it is done
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if is_at(descriptor, folder):
            return descriptor
        os.close(descriptor)


def is_free(descriptor: int) -> bool | None:
    """Lock what is open: True when that was done, False when another process has it, None when the file system knows no locks."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def is_of_this_boot(boot: str) -> bool:
    """Whether a name was given on this machine since it started, so that its lock tells whether the writer lives."""
    return boot == _boot() != _UNKNOWN


def is_at(descriptor: int, folder: Path) -> bool:
    """Whether what is open is what the name stands for now."""
    try:
        return os.path.samestat(os.fstat(descriptor), folder.lstat())
    except FileNotFoundError:
        return False


_UNKNOWN = "0" * 8


@functools.cache
def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")[:8]
    except OSError:
        return _UNKNOWN
