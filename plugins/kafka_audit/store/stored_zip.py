"""Writes zip files whose bytes follow from the names and the contents alone: fixed times and rights, nothing compressed."""

import hashlib
import os
import stat
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO
from urllib.parse import quote

from kafka_audit.errors import IntegrityError
from kafka_audit.store.manifest import opened

SUMS = "SHA256SUMS"
_FIRST_TIME = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_READABLE = (stat.S_IFREG | 0o644) << 16
_KEPT = " +=,@()"
_CHUNK = 1 << 20


def inner_name(name: str) -> str:
    """The path in a zip file of a file with that path in its folder, safe on every system.

    Characters other than letters and digits of ASCII and ``_.-~ +=,@()`` are written as %XX, so that a backslash or a colon in a name
    leads nowhere. IntegrityError for a name that leads out of its folder.
    """
    parts = name.split("/")
    if any(part in ("", ".", "..") for part in parts):
        raise IntegrityError(f"{name!r:.200} leads out of its folder, so it is not put into a zip file")
    return "/".join(quote(os.fsencode(part), safe=_KEPT) for part in parts)


class StoredZip:
    """One zip file while it is written, as a context manager. Every file lies below the folder ``top``.

    ``sums``: the sha256 of each file by its path there. At the end they are added as SHA256SUMS, which ``sha256sum --check`` reads.
    Compressed bytes depend on the release of zlib, so files are stored as they are: the same files give the same zip file everywhere.
    """

    def __init__(self, stream: BinaryIO, top: str) -> None:
        self._zip = zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED)
        self._top = inner_name(top)
        self.sums: dict[str, str] = {}

    def add(self, name: str, content: bytes) -> None:
        """Add a file with that content."""
        self._write(name, len(content), [content])

    def copy(self, name: str, source: Path, sha256: str) -> None:
        """Add a regular file; IntegrityError when its bytes do not have that sha256. No link is followed."""
        descriptor, about = opened(source)
        with os.fdopen(descriptor, "rb") as stream:
            found = self._write(name, about.st_size, _chunks(stream))
        if found != sha256:
            raise IntegrityError(f"{source} was changed while it was read: it does not have the sha256 {sha256}")

    def __enter__(self) -> "StoredZip":
        return self

    def __exit__(self, failed: type[BaseException] | None, *_: object) -> None:
        try:
            if failed is None:
                lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(self.sums.items()))
                self.add(SUMS, lines.encode())
        finally:
            self._zip.close()

    def _write(self, name: str, size: int, content: Iterable[bytes]) -> str:
        inner = inner_name(name)
        if inner in self.sums:
            raise IntegrityError(f"two files have the name {inner} in the zip file")
        about = zipfile.ZipInfo(f"{self._top}/{inner}", _FIRST_TIME)
        about.create_system, about.external_attr, about.file_size = _UNIX, _READABLE, size
        digest = hashlib.sha256()
        with self._zip.open(about, "w") as target:
            for chunk in content:
                digest.update(chunk)
                target.write(chunk)
        self.sums[inner] = digest.hexdigest()
        return self.sums[inner]


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk
