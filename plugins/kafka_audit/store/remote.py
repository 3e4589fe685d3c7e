"""A root in an object store, and its mirror on this machine.

Below the URL of the root::

    evidence/<cluster>/<id>/<dataset>.<sha16>.parquet        the files of a sealed folder, where it lies in a local root, too: each made
                                                             once, with the first 16 digits of its sha256 in its name
    manifests/evidence/<cluster>/<id>.json                   the manifest of that folder, made once and last: with it the folder exists
"""

import functools
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_audit.store.manifest import MANIFEST, read_manifest
from kafka_audit.store.mirrors import remote_at


@dataclass(frozen=True, kw_only=True)
class Remote:
    """The root at ``url``, and ``mirror``: the folder here that holds copies."""

    url: str
    mirror: Path


def url_of(path: Path) -> str | None:
    """The URL of a file of a sealed folder below a mirror; None for a file that only this machine has."""
    remote = remote_at(path)
    if remote is None or not path.is_relative_to(remote.mirror):
        return None
    above = reversed([one for one in path.parents if one.is_relative_to(remote.mirror)])
    folder = next((one for one in above if (one / MANIFEST).is_file()), None)  # the outermost: an audit holds copies of manifests
    if folder is None:
        return None
    name = path.relative_to(folder).as_posix()
    entry = _files_of(folder, (folder / MANIFEST).stat().st_mtime_ns).get(name)
    if entry is None:
        return None
    return f"{remote.url}/{folder.relative_to(remote.mirror).as_posix()}/{object_name(name, str(entry['sha256']))}"


def object_name(name: str, sha256: str) -> str:
    """The name of a sealed file's object in its folder: what two writers make of one file are two objects."""
    folder, slash, last = name.rpartition("/")
    stem, dot, kind = last.rpartition(".")
    return f"{folder}{slash}{stem}.{sha256[:16]}{dot}{kind}" if dot else f"{name}.{sha256[:16]}"


@functools.lru_cache(maxsize=1024)
def _files_of(folder: Path, _changed_ns: int) -> dict[str, dict[str, Any]]:
    return dict(read_manifest(folder)["files"])
