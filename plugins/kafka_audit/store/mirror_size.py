"""Keeps the mirror of a store below a size: of the folders that nobody used for the longest time only the manifest stays."""

import contextlib
import os
import shutil
import time
from pathlib import Path

from kafka_audit.errors import ConfigurationError
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.unfinished import PARTS

SIZE_VARIABLE = "KAFKA_AUDIT_MIRROR_GB"
"""The size of each mirror in GB (10^9 bytes); not set: 20."""

_DEFAULT_GB = 20.0
_IN_USE_SECONDS = 3600.0
"""A folder that somebody used so recently may be read at this moment: it stays."""
_LOOK_SECONDS = 60.0
_KEPT = (MANIFEST, "run.json")
_SEALED = ("*/*/*", "history/*/lag/*", "history/*/commits/*/*", "history/*/commits/transactions/*/*", f"evidence/*/.*{PARTS}/*")

_looked: dict[Path, float] = {}


def limit_mirror(mirror: Path, *, now: float | None = None) -> None:
    """Remove copies until the mirror is as small as ``KAFKA_AUDIT_MIRROR_GB`` says; it looks once a minute.

    ``now``: seconds since the epoch, for the time of last use. Only copies of sealed folders are removed: the store has them.
    """
    most = mirror_bytes()
    if now is None and time.monotonic() - _looked.get(mirror, -_LOOK_SECONDS) < _LOOK_SECONDS:
        return
    _looked[mirror] = time.monotonic()
    used_before = (now or time.time()) - _IN_USE_SECONDS
    sizes = {folder: _size(folder) for pattern in _SEALED for folder in mirror.glob(f"{pattern}/") if _sealed(folder)}
    total = sum(sizes.values())
    by_use = sorted((folder.stat().st_mtime, folder) for folder in sizes)
    for used, folder in by_use:
        if total <= most or used > used_before:
            break
        if folder.stat().st_mtime > used_before:  # a task of another process has just begun to read it
            continue
        _empty(folder)
        total -= sizes[folder] - _size(folder)
    for partial in (mirror / ".partial").glob("*"):
        with contextlib.suppress(OSError):
            if partial.stat().st_mtime < used_before:
                partial.unlink()


def mirror_bytes() -> float:
    """The most that a mirror may hold; ConfigurationError (exit 2) when the variable holds no number."""
    text = os.environ.get(SIZE_VARIABLE) or str(_DEFAULT_GB)
    try:
        gigabytes = float(text)
    except ValueError:
        gigabytes = -1.0
    if not 0 < gigabytes < 1e9:
        raise ConfigurationError(f"{SIZE_VARIABLE}: {text!r} is no number above 0: write a number of GB, such as 20")
    return gigabytes * 1e9


def _sealed(folder: Path) -> bool:
    return not folder.name.startswith(".") and (folder / MANIFEST).is_file()


def _size(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(f"{parent}/{name}").st_size
    return total


def _empty(folder: Path) -> None:
    used = folder.stat()
    for path in list(folder.iterdir()):
        if path.name in _KEPT:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    os.utime(folder, ns=(used.st_atime_ns, used.st_mtime_ns))
