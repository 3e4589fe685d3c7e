"""Writing files so that a reader sees the old state or the new one, and hashing what was written."""

import contextlib
import errno
import hashlib
import json
import os
import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from kafka_audit.errors import CollectionError, IntegrityError


def sha256_of(path: Path) -> str:
    """Hex sha256 of a file's bytes."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def write_json(path: Path, value: Mapping[str, Any]) -> None:
    """Write JSON with sorted keys, atomically: a reader sees the old file or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with partial.open("w", encoding="utf-8") as stream:
            json.dump(value, stream, indent=2, sort_keys=True, ensure_ascii=False, default=str)
            stream.write("\n")
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as problem:
        partial.unlink(missing_ok=True)
        raise write_failed(path, problem) from problem


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable: what was created, renamed or removed there survives a power cut. OSError when refused."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_tree(folder: Path) -> None:
    """Make every file and folder below ``folder``, and ``folder`` itself, durable; call it before a manifest vouches for them."""
    for parent, _, names in os.walk(folder, topdown=False):
        for name in names:
            descriptor = os.open(Path(parent) / name, os.O_RDONLY | os.O_NOFOLLOW)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(Path(parent))


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; IntegrityError (exit 5) when the file is missing, unreadable or not an object."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise IntegrityError(f"{path}: cannot be read as JSON ({problem}); restore it from a copy or take a new one") from problem
    if not isinstance(value, dict):
        raise IntegrityError(f"{path}: holds {type(value).__name__} where an object is expected; restore it from a copy")
    return value


def write_failed(path: Path, problem: OSError) -> CollectionError:
    """The error for a refused write: which path, why, what to do, and that earlier evidence is safe."""
    hint = {
        errno.ENOSPC: "the disk is full: free space, then run again",
        errno.EDQUOT: "the disk quota is used up: free space, then run again",
        errno.EACCES: "no permission to write there",
        errno.EROFS: "the file system is read-only",
    }.get(problem.errno or 0, "see the system's message")
    kept = "Nothing half-written was kept; earlier evidence is untouched"
    return CollectionError(f"cannot write {path}: {problem.strerror or problem} - {hint}. {kept}")


@contextlib.contextmanager
def replaced_folder(target: Path) -> Iterator[Path]:
    """A new folder to fill; on success it takes the place of ``target``, on any error it is removed and ``target`` stays as it was."""
    fresh = target.with_name(f".{target.name}.{uuid.uuid4().hex[:8]}")
    try:
        fresh.mkdir(parents=True)
        yield fresh
        old = target.with_name(f".{target.name}.old.{uuid.uuid4().hex[:8]}")
        if target.exists():
            target.rename(old)
        fresh.rename(target)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as problem:
        shutil.rmtree(fresh, ignore_errors=True)
        raise write_failed(target, problem) from problem
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        raise
