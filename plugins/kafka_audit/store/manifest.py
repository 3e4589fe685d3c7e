"""Manifests: the list of a folder's files with their sha256, written last, and the check that nothing was changed since.

A sealed folder holds regular files and folders only, and nothing but what its manifest lists. A link is refused wherever it lies, and so
are hidden files and files in names that Spark or pyarrow would pass over: what is read is what was hashed.
"""

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafka_audit.errors import IntegrityError
from kafka_audit.store.mirrors import bring, bring_manifest

MANIFEST = "manifest.json"
SIGNATURE = "manifest.dsse.json"
"""The signature of the manifest, where the installation signs (kafka_audit.store.signing): the one file that no manifest lists."""
MOST_BYTES = 32 << 20
"""How long a manifest may be: some two hundred thousand files."""
_OUTSIDE_THE_LIST = frozenset({MANIFEST, SIGNATURE})


@dataclass(kw_only=True)
class FileHashes:
    """The sha256 of files; one that has several names (hard links) is read once."""

    _known: dict[tuple[int, ...], str] = field(default_factory=dict)

    def of(self, path: Path | str) -> tuple[str, int]:
        """sha256 and size in bytes of a regular file; IntegrityError for anything else, OSError when it cannot be read."""
        descriptor, about = opened(path)
        try:
            key = (about.st_dev, about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns)
            if key not in self._known:
                digest = hashlib.sha256()
                while chunk := os.read(descriptor, 1 << 20):
                    digest.update(chunk)
                self._known[key] = digest.hexdigest()
            return self._known[key], about.st_size
        finally:
            os.close(descriptor)


def opened(path: Path | str) -> tuple[int, os.stat_result]:
    """The descriptor of a regular file that is open for reading, and what it is. No pipe makes this wait, and no link is followed."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as problem:
        raise IntegrityError(f"{path}: cannot be read ({problem.strerror}); a link is never followed") from problem
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode):
        os.close(descriptor)
        raise IntegrityError(f"{path}: is not a regular file")
    return descriptor, about


def list_files(folder: Path) -> tuple[list[str], list[str]]:
    """The names of the regular files below a folder, and a sentence for each thing that may not be there. No link is followed.

    The manifest and its signature are not listed.
    """
    files: list[str] = []
    refused: list[str] = []
    if folder.is_symlink():
        return [], [f"{folder.name}: is a link; name the folder itself"]
    waiting = [""]
    while waiting:
        inside = waiting.pop()
        try:
            with os.scandir(f"{folder}/{inside}") as entries:
                found = list(entries)
        except OSError as problem:
            refused.append(f"{inside or folder.name}: cannot be listed ({problem.strerror})")
            continue
        for entry in found:
            name = f"{inside}{entry.name}"
            if entry.is_symlink():
                refused.append(f"{name}: is a link; evidence is never read through one")
            elif entry.is_dir(follow_symlinks=False):
                waiting.append(f"{name}/")
            elif not entry.is_file(follow_symlinks=False):
                refused.append(f"{name}: is neither a file nor a folder")
            elif name not in _OUTSIDE_THE_LIST:
                files.append(name)
    return sorted(files), sorted(refused)


def tree_files(folder: Path, hashes: FileHashes | None = None) -> dict[str, dict[str, Any]]:
    """sha256 and size in bytes of every file below a folder, by its name there.

    The manifest, its signature and hidden files are left out. IntegrityError names links, pipes and devices: they cannot be sealed.
    """
    (names, refused), known = list_files(folder), hashes or FileHashes()
    if refused:
        raise IntegrityError(f"{folder} cannot be sealed: {'; '.join(refused[:3])}. Remove what does not belong there")
    files = {}
    for name in names:
        if not is_hidden(name):
            sha256, size = known.of(f"{folder}/{name}")
            files[name] = {"sha256": sha256, "bytes": size}
    return files


def is_hidden(name: str) -> bool:
    """Whether a file, or a folder that it lies in, has a name that begins with a dot."""
    return name.startswith(".") or "/." in name


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a folder; IntegrityError when it is missing, a link, too long, not a JSON object, or names a key twice."""
    return parse_object(folder / MANIFEST, bytes_of(folder / MANIFEST))


def bytes_of(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of a manifest, signature or record; IntegrityError when it is no regular file or longer than any of ours."""
    with os.fdopen(opened(path)[0], "rb") as stream:
        content = stream.read(most + 1)
    if len(content) > most:
        size = f"{most >> 20} MiB" if most >> 20 else f"{most >> 10} KiB"
        raise IntegrityError(f"{path}: is longer than {size}, so it is not ours")
    return content


def parse_object(where: Path, content: bytes) -> dict[str, Any]:
    """A JSON object in which no key stands twice: two programs that read it cannot see two different things."""
    try:
        value = json.loads(content.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as problem:
        raise IntegrityError(f"{where}: cannot be read as JSON ({problem}); restore it from a copy or take a new one") from problem
    if not isinstance(value, dict):
        raise IntegrityError(f"{where}: holds {type(value).__name__} where an object is expected; restore it from a copy")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()  # each name is looked at once: anybody may have written millions of them
        for name, _ in pairs:
            if name in seen:
                raise ValueError(f"the key {name!r:.80} stands there twice")
            seen.add(name)
    return found


def manifest_sha256(folder: Path, hashes: FileHashes | None = None) -> str | None:
    """The sha256 of a folder's manifest; None when there is none. IntegrityError when it is no regular file."""
    bring_manifest(folder)
    return (hashes or FileHashes()).of(folder / MANIFEST)[0] if os.path.lexists(folder / MANIFEST) else None


def file_problems(
    folder: Path,
    manifest: Mapping[str, Any],
    hashes: FileHashes | None = None,
    *,
    hashed: tuple[str, ...] = ("",),
    ignore_hidden: bool = False,
) -> list[str]:
    """Every difference between a folder's files and those that its manifest lists, as sentences.

    ``hashed``: only files whose names begin with one of these are read; all by default, and with ``()`` none. ``ignore_hidden``: hidden
    files may lie in it, because its readers look at none. In the mirror of a store, the folder is copied first.
    """
    bring(folder)
    recorded, (names, found), known = manifest.get("files"), list_files(folder), hashes or FileHashes()
    if not isinstance(recorded, dict):
        return [f"{MANIFEST}: has no list of files"]
    there = {name for name in names if not (ignore_hidden and is_hidden(name))}
    for name in sorted(recorded):
        if name not in there:
            outside = Path(name).is_absolute() or ".." in Path(name).parts
            found.append(f"{name}: the manifest names a file outside the folder" if outside else f"{name}: is missing")
        elif name.startswith(hashed) and (change := _change(folder, name, recorded[name], known)):
            found.append(change)
    return found + [f"{name}: is not in the manifest, so it was added later" for name in sorted(there - recorded.keys())]


def _change(folder: Path, name: str, entry: object, hashes: FileHashes) -> str | None:
    """How a file differs from its entry in the manifest."""
    said = entry.get("sha256") if isinstance(entry, dict) else None
    try:
        sha256, _ = hashes.of(f"{folder}/{name}")
    except (OSError, IntegrityError) as problem:
        return f"{name}: cannot be read ({problem})"
    return None if sha256 == said else f"{name}: its sha256 differs from the manifest's, so it was changed after it was written"
