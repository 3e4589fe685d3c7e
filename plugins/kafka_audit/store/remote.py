"""A root in an object store, and its mirror on this machine.

Below the URL of the root::

    evidence/<cluster>/<id>/<dataset>.<sha16>.parquet   the files of a sealed folder, at the places of a local root: each created once,
                                                        with the first 16 digits of its sha256 in its name
    manifests/evidence/<cluster>/<id>.json              the manifest of that folder, created once and last: with it the folder exists
    manifests/evidence/<cluster>/<id>.<sha16>.dsse.json its signature, where the installation signs; <sha16> is of the manifest
    chain/audits/<cluster>/<number>.json                the manifest of the audit with that number, created once (store/remote_chain.py)
    work/...                                            what is replaced or removed: open audits (store/open_audits.py), parts of a snapshot
                                                        until they are joined, and manifests of rolled-up days, which can be made again

The mirror looks like a local root. Files are copied into it when they are asked for, and checked against their manifest.
"""

import functools
import hashlib
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from kafka_audit.errors import CollectionError, IntegrityError
from kafka_audit.store.durable_files import FOLDER_MODE, sha256_of
from kafka_audit.store.manifest import MANIFEST, MOST_BYTES, SIGNATURE, list_files, parse_object, read_manifest
from kafka_audit.store.mirror_size import limit_mirror
from kafka_audit.store.mirrors import AS_FOUND_FILE, remote_at, where
from kafka_audit.store.objects import Objects
from kafka_audit.store.remote_names import files_of, is_inside, is_place, listed_after, manifests_of, object_name, sealed_name
from kafka_audit.times import stamp

_AT_ONCE = 16
_FRESH_SECONDS = 2.0
"""How long a listing counts as current in one process."""
_LISTED_WHOLE_SECONDS = 600.0
_RECENT = timedelta(hours=3)

_Item = TypeVar("_Item")


@dataclass
class _Listing:
    names: dict[str, str] = field(default_factory=dict)
    at: float = 0.0
    whole_at: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Remote:
    """The root at ``url``, and ``mirror``: the folder here that holds copies."""

    url: str
    mirror: Path
    _listings: dict[str, _Listing] = field(default_factory=dict, repr=False)
    _locks: dict[str, threading.RLock] = field(default_factory=dict, repr=False)

    @cached_property
    def objects(self) -> Objects:
        """The objects below the URL."""
        return Objects(url=self.url)

    @cached_property
    def as_found(self) -> bool:
        """Whether this mirror takes what is in the store as it is, for a check that tells all differences at once."""
        return (self.mirror / AS_FOUND_FILE).is_file()

    def sealed_names(self, parent: Path) -> dict[str, str]:
        """The names of the sealed folders in ``parent``, in order, each with the etag of its manifest."""
        with self._lock_of(parent):
            listing, folder, now = self._listings.setdefault(str(parent), _Listing()), manifests_of(self.name_of(parent)), time.monotonic()
            if listing.at and now - listing.at < _FRESH_SECONDS:
                return listing.names
            whole = not listing.names or now - listing.whole_at > _LISTED_WHOLE_SECONDS or folder.startswith("work/")
            after = "" if whole else listed_after(max(listing.names))
            found = [(sealed_name(folder, one.name), one.etag) for one in self.objects.names(folder, after)]
            kept = {} if whole else listing.names
            named = {name: etag for name, etag in found if name}
            listing.names = dict(sorted({**kept, **named}.items()))
            listing.at, listing.whole_at = now, now if whole else listing.whole_at
            return listing.names

    def _lock_of(self, parent: Path) -> threading.RLock:
        return self._locks.setdefault(str(parent), threading.RLock())

    def newest_name(self, parent: Path) -> str | None:
        """The last of the names that :meth:`sealed_names` lists; one request where it is of the last hours."""
        after = stamp(datetime.now(timezone.utc) - _RECENT)
        folder = manifests_of(self.name_of(parent))
        recent = [name for one in self.objects.names(folder, after) if (name := sealed_name(folder, one.name))]
        return max(recent) if recent else next(reversed(self.sealed_names(parent)), None)

    def manifest(self, folder: Path) -> bool:
        """Copy the manifest of a sealed folder here unless it is here; False when the folder is not sealed."""
        if (folder / MANIFEST).is_file() and (folder / MANIFEST).stat().st_size:  # a power cut can empty it
            return True
        raw = self.objects.read(self.manifest_object(folder), MOST_BYTES)
        if raw is not None:
            self.keep_manifest(folder, raw)
        return raw is not None

    def manifests(self, parent: Path) -> list[str]:
        """Copy the manifests of all sealed folders in ``parent`` here; their names, in order."""
        names = list(self.sealed_names(parent))
        self.each(self.manifest, [parent / name for name in names])
        return names

    def keep_manifest(self, folder: Path, raw: bytes) -> None:
        """Put a manifest into a folder of the mirror. Files there that it does not name as they are were of an open audit: they go."""
        self.make_folder(folder)
        if any(folder.iterdir()):
            files = parse_object(folder / MANIFEST, raw).get("files")
            known = files if isinstance(files, dict) else {}
            for name in list_files(folder)[0]:
                if not isinstance(known.get(name), dict) or known[name].get("sha256") != sha256_of(folder / name):
                    (folder / name).unlink()
        self.write(folder / MANIFEST, raw)

    def whole(self, folder: Path, inside: tuple[str, ...] = ("",)) -> None:
        """Copy the files of a sealed folder here that are missing; ``inside``: only those whose names begin with one of these.

        Nothing is done for a folder that is not sealed. IntegrityError when an object is gone, or has other bytes than the manifest says.
        """
        if not self.is_place(folder) or not self.manifest(folder):
            return
        os.utime(folder)  # from here on it counts as used, and stays (store/mirror_size.py)
        files = _files_of(folder, (folder / MANIFEST).stat().st_mtime_ns)
        missing = [name for name, entry in files.items() if name.startswith(inside) and not _is_there(folder, name, entry)]
        if refused := {name for name in missing if not _can_be_file(name, files)}:
            if not self.as_found:
                raise IntegrityError(f"{where(folder)}: the manifest names {min(refused)!r:.80}, which is no file of ours: it was forged")
            missing = [name for name in missing if name not in refused]
        if not missing:
            return
        self.each(lambda name: self._fetch(folder, name, files[name]), missing)
        signature = self.objects.read(self._signature_object(folder, sha256_of(folder / MANIFEST)))
        if signature is not None:
            self.write(folder / SIGNATURE, signature)
        limit_mirror(self.mirror)

    def _fetch(self, folder: Path, name: str, entry: dict[str, Any]) -> None:
        named = self.file_object(folder, name, entry["sha256"])
        partial = self._partial()
        try:
            found = self.objects.copy(named, partial, entry["bytes"])
            if found != entry["sha256"] and not self.as_found:
                what = "is missing" if found is None else "has another sha256 than the manifest says, so it was changed"
                raise IntegrityError(f"{self.url}/{named}: {what}; restore the version that was sealed")
            if found is not None:
                self._place(partial, folder / name)
        finally:
            partial.unlink(missing_ok=True)

    def copy(self, name: str, path: Path, most: int | None = None) -> str | None:
        """Copy an object to a file of the mirror; its sha256, or None without it. IntegrityError when it is longer than ``most`` bytes."""
        partial = self._partial()
        try:
            found = self.objects.copy(name, partial, most)
            if most is not None and found is not None and partial.stat().st_size > most:
                raise IntegrityError(f"{self.url}/{name}: is longer than {most:,} bytes, as none of ours is")
            if found is not None:
                self._place(partial, path)
            return found
        finally:
            partial.unlink(missing_ok=True)

    def publish(self, fresh: Path, final: Path, *, replace: bool = False) -> bool:
        """Send the whole folder ``fresh``, its manifest last, as the sealed folder ``final``.

        False when another writer sealed it first: then theirs counts. ``replace``: it may be made again, and replaces what was there.
        """
        raw = (fresh / MANIFEST).read_bytes()
        self.send_files(fresh, final, raw)
        if replace:
            self.objects.replace(self.manifest_object(final), raw)
            made = True
        else:
            made = self.objects.create(self.manifest_object(final), raw)
        self._listings.pop(str(final.parent), None)
        limit_mirror(self.mirror)
        return made

    def send_files(self, fresh: Path, final: Path, raw: bytes) -> None:
        """Send all that a manifest, ``raw``, names, and its signature; IntegrityError when an object of that name has other bytes."""
        files = parse_object(final / MANIFEST, raw)["files"]
        self.each(lambda one: self._create(self.file_object(final, one, files[one]["sha256"]), fresh / one), list(files))
        if (fresh / SIGNATURE).is_file():
            self._create(self._signature_object(final, hashlib.sha256(raw).hexdigest()), fresh / SIGNATURE)

    def _create(self, name: str, path: Path) -> None:
        if not self.objects.create(name, path.read_bytes()):
            raise IntegrityError(f"{self.url}/{name}: another writer put other bytes there; remove that object, then try again")

    def manifest_object(self, folder: Path) -> str:
        """The name of the object that is the manifest of a sealed folder."""
        return f"{manifests_of(self.name_of(folder.parent))}/{folder.name}.json"

    def file_object(self, folder: Path, name: str, sha256: str) -> str:
        """The name of the object that is a file of a sealed folder."""
        return f"{files_of(self.name_of(folder))}/{object_name(name, sha256)}"

    def _signature_object(self, folder: Path, manifest_sha256: str) -> str:
        return f"{manifests_of(self.name_of(folder.parent))}/{folder.name}.{manifest_sha256[:16]}.dsse.json"

    def name_of(self, path: Path) -> str:
        """The path of a file or folder below the root, with slashes."""
        return path.relative_to(self.mirror).as_posix()

    def is_place(self, folder: Path) -> bool:
        """Whether a folder of the mirror is where a sealed folder or a part of a snapshot lies, and not one inside of it."""
        return is_place(self.name_of(folder))

    def each(self, work: Callable[[_Item], object], items: Iterable[_Item]) -> None:
        """Do the work for every item, several at a time; the first error ends it."""
        items = list(items)
        if len(items) < 2:
            for item in items:
                work(item)
            return
        with ThreadPoolExecutor(min(_AT_ONCE, len(items))) as pool:
            for _ in pool.map(work, items):
                pass

    def write(self, path: Path, data: bytes) -> None:
        """Write a file of the mirror: a reader sees the old one or the new one."""
        partial = self._partial()
        try:
            partial.write_bytes(data)
            self._place(partial, path)
        except OSError as problem:
            raise _mirror_failed(path, problem) from problem
        finally:
            partial.unlink(missing_ok=True)

    def _place(self, partial: Path, path: Path) -> None:
        self.make_folder(path.parent)
        try:
            partial.replace(path)
        except OSError as problem:
            raise _mirror_failed(path, problem) from problem

    def make_folder(self, folder: Path) -> None:
        """Make a folder of the mirror, with its parents."""
        try:
            folder.mkdir(mode=FOLDER_MODE, parents=True, exist_ok=True)
        except OSError as problem:
            raise _mirror_failed(folder, problem) from problem

    def _partial(self) -> Path:
        """A name outside of all sealed folders, whose files are listed while others read them."""
        self.make_folder(self.mirror / ".partial")
        return self.mirror / ".partial" / uuid.uuid4().hex


def url_of(path: Path) -> str | None:
    """The URL of a file of a sealed folder below a mirror; None for a file that only this machine has."""
    remote = remote_at(path)
    if remote is None or not path.is_relative_to(remote.mirror):
        return None
    folder = next((one for one in path.parents if one.is_relative_to(remote.mirror) and remote.is_place(one)), None)
    if folder is None or not (folder / MANIFEST).is_file():
        return None
    name = path.relative_to(folder).as_posix()
    entry = _files_of(folder, (folder / MANIFEST).stat().st_mtime_ns).get(name)
    return f"{remote.url}/{remote.file_object(folder, name, str(entry['sha256']))}" if entry else None


def _can_be_file(name: str, files: Mapping[str, Any]) -> bool:
    """Whether a manifest may name a file so, and says its sha256 and bytes."""
    entry, above = files[name], name.split("/")[:-1]
    said = isinstance(entry, dict) and isinstance(entry.get("sha256"), str) and isinstance(entry.get("bytes"), int)
    in_file = any("/".join(above[:depth]) in files for depth in range(1, len(above) + 1))
    return said and is_inside(name) and name not in (MANIFEST, SIGNATURE) and not in_file


def _is_there(folder: Path, name: str, entry: object) -> bool:
    try:
        return isinstance(entry, dict) and is_inside(name) and (folder / name).stat().st_size == entry.get("bytes")
    except OSError:
        return False


def _mirror_failed(path: Path, problem: OSError) -> CollectionError:
    return CollectionError(f"cannot write {path}, in the mirror of a store: {problem.strerror or problem}; the store was not changed")


@functools.lru_cache(maxsize=1024)
def _files_of(folder: Path, _changed_ns: int) -> dict[str, dict[str, Any]]:
    files = read_manifest(folder).get("files")
    return files if isinstance(files, dict) else {}
