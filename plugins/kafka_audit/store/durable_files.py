"""Writes files so that readers see either the old or the new state, also after a power cut, and hashes them."""

import contextlib
import ctypes
import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from kafka_audit.errors import CollectionError, ConfigurationError, IntegrityError
from kafka_audit.store.unfinished import held_folder, hidden_name, old_name

FILE_MODE, FOLDER_MODE = 0o640, 0o750
"""Evidence names principals, hosts and addresses: its owner may write it, its group may read it, nobody else."""

MOST_JSON = 256 << 20
"""The longest JSON file that is read, in bytes; reports of large clusters have tens of millions."""
_RENAME_EXCHANGE = 2
_AT_FDCWD = -100


def keep_new_files_private() -> None:
    """From now on nobody but owner and group may read what this process and its children make; a stricter umask stays."""
    os.umask(os.umask(0o027) | 0o027)


def sha256_of(path: Path) -> str:
    """Hex sha256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def make_folder(folder: Path) -> None:
    """Make a folder and the parents that are missing, of mode 0750 and durable; one that is there stays as it is."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=FOLDER_MODE, exist_ok=True)
        sync_folder(one.parent)


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON with sorted keys, atomically: a reader sees the old file or the new one, never half of it, also after a power cut."""
    partial = hidden_name(path)
    try:
        make_folder(path.parent)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
        # Half a character of a broken name has no UTF-8; as \udXXX it is JSON that reads back as the same.
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as stream:
            json.dump(value, stream, indent=2, sort_keys=True, ensure_ascii=False, default=str)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
        sync_folder(path.parent)
    except OSError as problem:
        partial.unlink(missing_ok=True)
        raise write_failed(path, problem) from problem


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: what was created, renamed or removed there survives a power cut. OSError when refused."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as problem:
        if problem.errno != errno.EINVAL:  # the file system has no such operation
            raise
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make a file's bytes durable, and take rights beyond 0640 from it. OSError when refused, or when it is a link."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        _limit(descriptor, FILE_MODE)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def rename_durably(partial: Path, target: Path) -> None:
    """Give a file that was written its final name when its bytes are durable. OSError when refused."""
    sync_file(partial)
    partial.rename(target)
    sync_folder(target.parent)


def sync_tree(folder: Path) -> None:
    """Make every file and folder below ``folder``, and ``folder`` itself, durable; call it before a manifest vouches for them.

    Rights beyond 0640 for files and 0750 for folders are taken away: Spark's workers have their own ideas of them.
    """
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            sync_file(Path(parent) / name)
        descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _limit(descriptor, FOLDER_MODE)
        finally:
            os.close(descriptor)
        sync_folder(Path(parent))


def _limit(descriptor: int, most: int) -> None:
    found = os.fstat(descriptor)
    if stat.S_IMODE(found.st_mode) & ~most and found.st_uid == os.geteuid():  # only its owner may change it
        os.fchmod(descriptor, stat.S_IMODE(found.st_mode) & most)


def read_json(path: Path, most: int = MOST_JSON) -> dict[str, Any]:
    """Read a JSON object; IntegrityError (exit 5) when the file is missing, unreadable, longer than ``most`` bytes or not an object."""
    try:
        with open(path, "rb", opener=_no_wait) as stream:
            content = stream.read(most + 1)
        if len(content) > most:
            raise ValueError(f"it is longer than {most:,} bytes, as none of ours is")
        value = json.loads(content.decode("utf-8"))
    except (OSError, ValueError, RecursionError) as problem:  # RecursionError: nested too deeply
        raise IntegrityError(f"{path}: cannot be read as JSON ({problem}); restore it from a copy or take a new one") from problem
    if not isinstance(value, dict):
        raise IntegrityError(f"{path}: holds {type(value).__name__} where an object is expected; restore it from a copy")
    return value


def _no_wait(path: str, flags: int) -> int:
    """Open a file; a pipe without a writer does not make this wait."""
    return os.open(path, flags | os.O_NONBLOCK)


def write_failed(path: Path, problem: OSError) -> CollectionError:
    """The error for a refused write: which path, why, what to do, and that earlier evidence is safe."""
    hints = {
        errno.ENOENT: "a folder on the way to it does not exist and could not be made",
        errno.ENOSPC: "the disk is full: free space, then run again",
        errno.EDQUOT: "the disk quota is used up: free space, then run again",
        errno.EACCES: "no permission to write there",
        errno.EROFS: "the file system is read-only",
    }
    hint = f" - {hints[problem.errno]}" if problem.errno in hints else ""
    kept = "Nothing half-written was kept; earlier evidence is untouched"
    return CollectionError(f"cannot write {path}: {problem.strerror or problem}{hint}. {kept}")


@contextlib.contextmanager
def new_file(target: Path) -> Iterator[BinaryIO]:
    """A new file to fill: ``target`` is empty until it is whole and durable, and is removed on any error.

    ConfigurationError (exit 2) when something has that name already: nothing is overwritten.
    """
    partial = hidden_name(target)
    try:
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE))
    except FileExistsError as problem:
        raise ConfigurationError(f"{target} is there already and is not overwritten: name another file") from problem
    except OSError as problem:
        raise write_failed(target, problem) from problem
    try:
        with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE), "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(target)
        sync_folder(target.parent)
    except BaseException as problem:
        target.unlink(missing_ok=True)
        if isinstance(problem, OSError):
            raise write_failed(target, problem) from problem
        raise
    finally:
        partial.unlink(missing_ok=True)


@contextlib.contextmanager
def replaced_folder(target: Path) -> Iterator[Path]:
    """A new folder to fill; on success it takes the place of ``target``, on any error it is removed and ``target`` stays as it was.

    Everything in it is durable before it takes the place, and ``target`` is there at every moment, where the file system can exchange
    two names in one step (renameat2). Where it cannot, as on NFS, there is an instant without ``target``: a writer killed in it leaves
    the old folder under a hidden name, which the next sweep gives back its own (kafka_audit.store.sweep).
    """
    fresh = hidden_name(target)
    try:
        make_folder(target.parent)
        with held_folder(fresh, FOLDER_MODE):
            yield fresh
            sync_tree(fresh)
            _put_in_place(fresh, target)
    except OSError as problem:
        raise write_failed(target, problem) from problem
    finally:
        shutil.rmtree(fresh, ignore_errors=True)  # nothing has the name any more when the folder is in its place


def _put_in_place(fresh: Path, target: Path) -> None:
    """The old folder is removed only when the new one is durable in its place."""
    if not target.exists():
        fresh.rename(target)
        sync_folder(target.parent)
    elif _exchange(fresh, target):
        try:
            sync_folder(target.parent)
        except OSError:
            _exchange(fresh, target)
            raise
        shutil.rmtree(fresh, ignore_errors=True)
    else:
        old = old_name(fresh, target)
        target.rename(old)
        fresh.rename(target)
        sync_folder(target.parent)
        shutil.rmtree(old, ignore_errors=True)


def _exchange(one: Path, other: Path) -> bool:
    """Let two names change places in one step; False where the system or the file system cannot."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if call is None:
        return False
    if call(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    refused = ctypes.get_errno()
    if refused in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        return False
    raise OSError(refused, os.strerror(refused), str(one))


def remove_folder(folder: Path) -> None:
    """Remove a folder by renaming it first, so that one that is half removed is no evidence any more; a kill leaves it to the sweep."""
    doomed = folder.with_name(f".{folder.name}.deleted")
    folder.rename(doomed)
    sync_folder(folder.parent)
    shutil.rmtree(doomed, ignore_errors=True)  # a sweep may be removing it, too
