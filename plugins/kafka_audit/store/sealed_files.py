"""Reads single files of a sealed audit, each checked against the manifest that sealed it: the rest of the audit is not read."""

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from kafka_audit.errors import IntegrityError
from kafka_audit.store.manifest import MANIFEST, FileHashes, read_manifest
from kafka_audit.store.mirrors import bring_manifest
from kafka_audit.store.sealed import AUDIT

_HASHES = FileHashes()
"""A file is hashed once for as long as it stays the same: its inode, size and times."""
_KEPT = 4096

Version = tuple[int, ...]
"""What changes with a manifest: its inode, size and times."""


def checked_file(folder: Path, files: Mapping[str, str], name: str) -> Path:
    """The path of a file of a sealed folder; IntegrityError if it is missing, a link, or not as it was sealed."""
    if name not in files:
        raise IntegrityError(f"{folder / name}: is not among the files that were sealed: the audit has none")
    if _HASHES.of(folder / name)[0] != files[name]:
        raise IntegrityError(f"{folder / name}: was changed after the audit was sealed")
    return folder / name


def sealed_files(folder: Path) -> Mapping[str, str]:
    """The sha256 of each file of a sealed audit, by name; IntegrityError if it is not sealed. Of a root in a store, no file is copied."""
    return files_and_number(folder, manifest_version(folder))[0]


def manifest_version(folder: Path) -> Version:
    """The version of an audit's manifest; IntegrityError if there is none."""
    bring_manifest(folder)
    try:
        about = (folder / MANIFEST).lstat()
    except OSError as problem:
        if not folder.is_dir():
            raise IntegrityError(f"{folder} is not there any more") from problem
        raise IntegrityError(f"{folder} is not sealed: the audit runs still, or was cut short") from problem
    return about.st_ino, about.st_size, about.st_mtime_ns, about.st_ctime_ns


@lru_cache(maxsize=_KEPT)
def files_and_number(folder: Path, _version: Version) -> tuple[Mapping[str, str], int | None]:
    """The sha256 of each file by name, and the audit's number in the chain. IntegrityError if the manifest is not of this audit."""
    manifest = read_manifest(folder)
    listed, said = manifest.get("files"), (manifest.get("kind"), manifest.get("cluster"), manifest.get("audit_id"))
    if said != (AUDIT, folder.parent.name, folder.name) or not isinstance(listed, dict):
        raise IntegrityError(f"{folder / MANIFEST}: is not the manifest of this audit")
    files = {name: str(one["sha256"]) for name, one in listed.items() if isinstance(one, dict) and "sha256" in one}
    sequence = manifest.get("sequence")
    return files, sequence if isinstance(sequence, int) else None
