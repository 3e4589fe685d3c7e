"""Removes unfinished files of killed writers below a cluster's folders, and restores a folder that was renamed for its replacement."""

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kafka_audit.store.layout import EvidenceRoot, check_cluster_name
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.mirrors import remote_at
from kafka_audit.store.unfinished import HIDDEN, PARTS, is_at, is_free, is_of_this_boot

OLDEST_SECONDS = 24 * 3600.0
"""What another machine, or this one before it was restarted, began to write is left over when nothing in it changed for so long."""

_DELETED = ".deleted"


def sweep(root: EvidenceRoot, cluster: str, say: Callable[[str], None] = lambda _: None) -> None:
    """Remove the half-written files and folders of a cluster whose writer is dead; ``say`` is told of each.

    Only hidden names of :mod:`kafka_audit.store.unfinished` and of a deletion are looked at: nothing that was sealed. A folder whose writer
    lives is left alone: on this machine the writer's lock tells, and of any other machine, and of the parts of a snapshot, the age
    (OLDEST_SECONDS). A folder that stepped aside for a new one that never came is given its name back.
    """
    for folder in _folders(root.path, check_cluster_name(cluster), say):
        sweep_folder(folder, say)


def sweep_folder(folder: Path, say: Callable[[str], None] = lambda _: None) -> None:
    """Do so for the hidden names in one folder."""
    for name in sorted(one for one in _names(folder, say) if one.startswith(".")):
        try:
            _sweep_name(folder, name, say)
        except OSError as problem:  # of another user, as a rule: it harms nothing here, so it must not stop an audit
            say(f"{folder / name}: left alone, it cannot be swept ({problem.strerror or problem})")


def _sweep_name(folder: Path, name: str, say: Callable[[str], None]) -> None:
    path = folder / name
    found = HIDDEN.fullmatch(name)
    if name.endswith(_DELETED):
        _remove(path, say)
    elif name.endswith(PARTS):
        if _is_old(path):
            _remove(path, (lambda _: None) if remote_at(path) else say)  # in a mirror they are copies
    elif found and found["old"]:
        _restore(path, folder / found["name"], folder / f".{found['name']}.{found['token']}", found["boot"], say)
    elif found:
        with _left_over(path, found["boot"]) as is_left_over:
            if is_left_over:
                _remove(path, say)


def _folders(root: Path, cluster: str, say: Callable[[str], None]) -> Iterator[Path]:
    """Where writers put their hidden names: in a sealed audit, and in a snapshot, there are none."""
    for place in ("evidence", "offsets", "audits", "history", "reviews", "told"):
        yield root / place / cluster
    yield root / "history" / cluster / "lag"
    commits = root / "history" / cluster / "commits"
    for topic in (commits, commits / "transactions"):
        yield from (topic, topic / "raw", topic / "decoded", topic / "behaviour")
    audits = root / "audits" / cluster
    for name in _names(audits, say):
        if not name.startswith(".") and MANIFEST not in _names(audits / name, say):
            for parent, folders, _ in os.walk(audits / name):
                folders[:] = [one for one in folders if not one.startswith(".") and not one.endswith(".parquet")]
                yield Path(parent)


def _names(folder: Path, say: Callable[[str], None]) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - a folder may hold thousands of names, of which hardly one is hidden
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as problem:
        say(f"{folder}: not swept, it cannot be listed ({problem.strerror or problem})")
        return []


@contextlib.contextmanager
def _left_over(path: Path, boot: str) -> Iterator[bool]:
    """Whether the writer of a hidden file or folder is dead, or, where that cannot be told, has not touched it for a day.

    The writer's lock is held for the block: a writer that has just made its folder finds it taken, and makes another.
    """
    descriptor = -1
    try:
        if is_of_this_boot(boot) and stat.S_ISDIR(path.lstat().st_mode):
            descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            free = is_free(descriptor)
            left_over = _is_old(path) if free is None else free and is_at(descriptor, path)
        else:
            left_over = _is_old(path)
    except FileNotFoundError:  # its writer was done with it meanwhile
        left_over = False
    try:
        yield left_over
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _is_old(path: Path) -> bool:
    return time.time() - _last_change(path) > OLDEST_SECONDS


def _last_change(path: Path) -> float:
    newest = path.lstat().st_mtime
    for parent, folders, files in () if path.is_symlink() else os.walk(path):
        for name in (*folders, *files):
            with contextlib.suppress(FileNotFoundError):
                newest = max(newest, (Path(parent) / name).lstat().st_mtime)
    return newest


def _restore(old: Path, target: Path, fresh: Path, boot: str, say: Callable[[str], None]) -> None:
    """``old`` is what ``target`` was until ``fresh`` was to take its place: without a target it is the target again."""
    if fresh.exists():
        with _left_over(fresh, boot) as is_left_over:
            if not is_left_over:
                return  # its writer is between the two renames
    if old.is_symlink() or not old.is_dir() or _replaces(target, old, say):
        _remove(old, say)
        return
    try:
        old.rename(target)  # in place of an empty folder, too
    except FileNotFoundError:  # its writer, or another sweep, was quicker
        return
    say(f"{target}: restored, because what was to replace it was never finished")


def _replaces(target: Path, old: Path, say: Callable[[str], None]) -> bool:
    """Whether what has the name now is as whole as ``old``: an empty folder, or one without the manifest that ``old`` has, is not."""
    there = _names(target, say)
    return MANIFEST in there if (old / MANIFEST).exists() else bool(there)


def _remove(path: Path, say: Callable[[str], None]) -> None:
    if path.is_symlink() or not path.is_dir():
        path.unlink(missing_ok=True)
    else:
        shutil.rmtree(path, ignore_errors=True)  # a writer or another sweep may be removing it, too
    if not os.path.lexists(path):
        say(f"{path}: removed, a writer that was killed had left it")
    else:
        say(f"{path}: left alone, it cannot be removed")
