"""Locks on files, which the kernel releases when their holder dies: of a commit history, a cluster's audits, and what was told of one."""

import contextlib
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

from kafka_audit.errors import CollectionError
from kafka_audit.store.durable_files import FILE_MODE, make_folder, write_failed

LOCK = ".lock"
_MODE = 0o600
"""Whoever may open the file may lock it, and so keep every audit from being sealed: only the account that seals may."""
_SEAL_WAITS_SECONDS = 300.0
_CHECK_WAITS_SECONDS = 10.0
_TOLD_WAITS_SECONDS = 120.0
_POLL_SECONDS = 0.02
_HISTORY_WAITS_SECONDS = 900.0
"""How long to wait for a run of ``read_commits``, which starts every 15 minutes and takes less."""


@contextlib.contextmanager
def history_held(history: Path, seconds: float | None = None) -> Iterator[bool]:
    """Lock a commit history for the block, so that no other run writes to it; False when others had the lock for all of the ``seconds``.

    By default it waits for a quarter of an hour.
    """
    lock = history / LOCK
    lock.touch(mode=FILE_MODE)
    with lock.open("a") as file:
        yield _locked(file.fileno(), fcntl.LOCK_EX, _HISTORY_WAITS_SECONDS if seconds is None else seconds)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the lock of a cluster's audits for the block; CollectionError when another process does not give it up for five minutes."""
    lock = folder / LOCK
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise write_failed(lock, problem) from problem
    with _tried(lock, fcntl.LOCK_EX, _SEAL_WAITS_SECONDS) as refusal:
        if refusal:
            raise CollectionError(
                f"{lock}: {refusal}, so the audit could not get its place among the others: see with `fuser {lock}` which process has it "
                "(a check of the chain may take long) and end it, or correct the file, then clear the task"
            )
        yield


@contextlib.contextmanager
def told_held(folder: Path) -> Iterator[None]:
    """Hold the lock of what was told of a cluster for the block, so that nothing is told twice; CollectionError after two minutes."""
    lock = folder / LOCK
    try:
        make_folder(folder)
    except OSError as problem:
        raise write_failed(lock, problem) from problem
    with _tried(lock, fcntl.LOCK_EX, _TOLD_WAITS_SECONDS) as refusal:
        if refusal:
            raise CollectionError(f"{lock}: {refusal}, so nothing was told; the next run tells it. See with `fuser {lock}` who has it")
        yield


@contextlib.contextmanager
def held_to_read(folder: Path) -> Iterator[str | None]:
    """Keep others from sealing for the block; yields why the lock was not obtained (None if it was); the check continues without it.

    A copy has no lock, which is no reason to say anything.
    """
    lock = folder / LOCK
    if not os.path.lexists(lock):
        yield None
        return
    with _tried(lock, fcntl.LOCK_SH, _CHECK_WAITS_SECONDS) as refusal:
        advice = "an audit that is sealed meanwhile may look as if it was changed; check again then"
        yield f"{lock}: checked without the lock ({refusal}): {advice}" if refusal else None


@contextlib.contextmanager
def _tried(lock: Path, how: int, seconds: float) -> Iterator[str]:
    """Hold a lock for the block, and yield why it could not be had: empty when it is held. No link is followed, no pipe waited for."""
    with contextlib.ExitStack() as opened:
        flags = os.O_RDWR | os.O_CREAT if how == fcntl.LOCK_EX else os.O_RDONLY
        refusal = ""
        try:
            descriptor = os.open(lock, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
            opened.callback(os.close, descriptor)
            found = os.fstat(descriptor)
            if not stat.S_ISREG(found.st_mode):
                refusal = "it is not a regular file"
            else:
                if how == fcntl.LOCK_EX and stat.S_IMODE(found.st_mode) != _MODE and found.st_uid == os.geteuid():
                    os.fchmod(descriptor, _MODE)
                if not _locked(descriptor, how, seconds):
                    refusal = f"another process has held the lock for {seconds:.0f} s"
        except OSError as problem:  # a file system without locks, or no right to open it
            refusal = str(problem.strerror)
        yield refusal


def _locked(descriptor: int, how: int, seconds: float) -> bool:
    """Whether the lock was had within so many seconds. OSError where the file system has no locks."""
    until = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(descriptor, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_POLL_SECONDS)
        else:
            return True
