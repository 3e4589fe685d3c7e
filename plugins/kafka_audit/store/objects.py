"""The objects below one URL of an object store: created once, replaced, read, listed from a name on, removed.

The only module that uses obstore. Names are relative to the URL, with slashes. Errors say what was refused and what to do, and hold no
secret: the values of options and of the environment that could be one are left out of them.
"""

import contextlib
import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from obstore import exceptions
from obstore.store import from_url

from kafka_audit.errors import CollectionError, ConfigurationError, IntegrityError
from kafka_audit.store.durable_files import FILE_MODE, MOST_JSON, write_failed
from kafka_audit.store.store_options import OPTIONS_VARIABLE, endpoints, read_options

if TYPE_CHECKING:
    from obstore import PutMode
    from obstore.store import ObjectStore

_CLIENT_OPTIONS = ("timeout", "connect_timeout", "proxy_url")
_SECRET = re.compile(r"key|secret|token|password|sas|credential", re.IGNORECASE)
_QUERY = re.compile(r"(?<=\w)\?\w[\w.-]*=[^\s\"<>)]*")
_USER = re.compile(r"(?<=://)[^/\s@]+:[^/\s@]*@")
_SHORTEST_SECRET = 6
_CONFLICT_PAUSES = (0.1, 0.3, 1.0, 3.0)
"""Seconds to wait for the writer that a store lets go first."""
_MOST_OF_MESSAGE = 400
_RETRIES: Any = {
    "max_retries": 6,
    "retry_timeout": timedelta(seconds=90),
    "backoff": {"init_backoff": timedelta(milliseconds=200), "max_backoff": timedelta(seconds=10), "base": 2},
}
_WRONG_KEYS = ("SignatureDoesNotMatch", "InvalidAccessKeyId", "ExpiredToken", "InvalidToken", "failed to authenticate")
_NO_OBJECT = ("NoSuchKey", "BlobNotFound")
_NO_BUCKET = ("nosuchbucket", "containernotfound", "resourcenotfound", "bucket does not exist")
_HINTS = (
    (("169.254.169.254",), "no credentials are in the environment, and this machine has no role that gives any: set those of the cloud"),
    (_NO_BUCKET, "there is no such bucket or container: make it, or correct the URL of the root"),
    (("404 not found",), "the endpoint does not answer as a store does: correct it"),
    (("insufficientstorage", "507", "quota", "storagefull", "no space left"), "the store has no space left: free some, or raise its quota"),
    (("timed out",), "the store did not answer in time: try again"),
    (("error sending request", "connect", "dns"), "the store cannot be reached: check its endpoint and the network, then try again"),
    (("invalid path",), "an object there has a name that none of ours has, and hides the others: remove it"),
    (("slowdown", "503", "429"), "the store asks for fewer requests: try again later"),
)


class RefusedError(CollectionError):
    """The store does not let these credentials do this."""


@dataclass(frozen=True)
class Listed:
    """An object in a listing: its name and its etag, which changes with its content."""

    name: str
    etag: str


@dataclass(frozen=True)
class Put:
    """What the store answered to a new object; without versioning it tells no version."""

    etag: str
    version: str | None


@dataclass(frozen=True, kw_only=True)
class Objects:
    """The objects below ``url``."""

    url: str
    options: Mapping[str, str] = field(default_factory=read_options, repr=False)

    @cached_property
    def _store(self) -> "ObjectStore":
        said = dict(self.options)
        client: Any = {name: said.pop(name) for name in _CLIENT_OPTIONS if name in said}
        client["allow_http"] = any(value.startswith("http://") for value in endpoints(said))
        # A bucket with Object Lock asks for a checksum of each object; a manifest holds the same one.
        config: Any = {"aws_checksum_algorithm": "sha256", **said} if self.url.startswith("s3:") else said
        try:
            return from_url(self.url, config=config, client_options=client, retry_config=_RETRIES)
        except (exceptions.BaseError, ValueError, TypeError) as problem:
            told = self._said(problem).partition(" Debug source:")[0]
            raise ConfigurationError(f"{OPTIONS_VARIABLE} or the environment cannot be used for {self.url}: {told}") from None

    def create_new(self, name: str, data: bytes) -> Put | None:
        """Make an object that was not there; None when the store refused because one is there. Errors as of :meth:`read`."""
        try:
            return self._put(name, data, "create")
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
            return None
        except exceptions.PermissionDeniedError as problem:  # Azure says so to whoever may create and not replace, when one is there
            if self._read(name, 0) is not None:
                return None
            raise self._failed("write", name, problem) from None
        except (exceptions.BaseError, FileNotFoundError, OSError) as problem:
            if "conditionalrequestconflict" in str(problem).lower():  # S3: another writer was at it at the same moment
                return None
            raise self._failed("write", name, problem) from None

    def create(self, name: str, data: bytes) -> bool:
        """Make an object that was not there; False when one with other bytes is there. Errors as of :meth:`read`.

        One with the same bytes counts as made: an answer that got lost on the network is no conflict.
        """
        for pause in _CONFLICT_PAUSES:
            if self.create_new(name, data) is not None:
                return True
            there = self._read(name, len(data))
            if there is not None:
                return there == data
            time.sleep(pause)  # S3 refuses while another writer is at it (409), and shows nothing of it yet
        raise IntegrityError(
            f"{self.url}/{name}: is refused as if it were there, and it is not: it was deleted; restore it, or remove its delete marker"
        )

    def replace(self, name: str, data: bytes) -> Put:
        """Write an object, whatever is there. Errors as of :meth:`read`."""
        try:
            return self._put(name, data, "overwrite")
        except (exceptions.BaseError, FileNotFoundError, OSError) as problem:
            raise self._failed("write", name, problem) from None

    def _put(self, name: str, data: bytes, mode: "PutMode") -> Put:
        made = self._store.put(name, data, mode=mode, use_multipart=False)
        return Put(etag=str(made.get("e_tag") or ""), version=made.get("version"))

    def read(self, name: str, most: int = MOST_JSON) -> bytes | None:
        """The bytes of an object; None when there is no such object. IntegrityError when it is longer than ``most`` bytes.

        CollectionError when the store cannot be reached, is too slow or refuses; ConfigurationError when there is no such bucket.
        """
        data = self._read(name, most)
        if data is not None and len(data) > most:
            raise IntegrityError(
                f"{self.url}/{name}: is longer than {most:,} bytes, as none of ours is: restore the version that was sealed"
            )
        return data

    def _read(self, name: str, most: int) -> bytes | None:
        """The first ``most`` bytes of an object, and one more where it is longer."""
        try:
            found = self._store.get(name)
            return bytes(found.bytes()) if found.meta["size"] <= most else bytes(self._store.get_range(name, start=0, length=most + 1))
        except (exceptions.BaseError, FileNotFoundError, OSError) as problem:
            if self._is_missing(problem):
                return None
            raise self._failed("read", name, problem) from None

    def copy(self, name: str, target: Path, most: int | None = None) -> str | None:
        """Copy an object into a new file; its sha256, or None when there is no such object. Errors as of :meth:`read`.

        Of one that is longer than ``most`` bytes no more is copied than tells this, and the sha256 is of what was copied.
        """
        digest, copied = hashlib.sha256(), 0
        try:
            chunks = iter(self._store.get(name).stream())
        except (exceptions.BaseError, FileNotFoundError, OSError) as problem:
            if self._is_missing(problem):
                return None
            raise self._failed("read", name, problem) from None
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, FILE_MODE)
        except OSError as problem:
            raise write_failed(target, problem) from problem
        with os.fdopen(descriptor, "wb") as file:
            while True:
                try:
                    chunk = next(chunks, None)
                except (exceptions.BaseError, OSError) as problem:
                    raise self._failed("read", name, problem) from None
                if chunk is None or (most is not None and copied > most):
                    break
                copied += len(chunk)
                digest.update(chunk)
                try:
                    file.write(chunk)
                except OSError as problem:
                    raise write_failed(target, problem) from problem
        return digest.hexdigest()

    def names(self, folder: str, after: str = "") -> Iterator[Listed]:
        """The objects below a folder at any depth, by name; ``after``: only those whose name in the folder comes after it."""
        try:
            for chunk in self._store.list(f"{folder}/", offset=f"{folder}/{after}" if after else None, chunk_size=1000):
                for one in chunk:
                    yield Listed(str(one["path"]), str(one.get("e_tag") or ""))
        except (exceptions.BaseError, FileNotFoundError, OSError) as problem:
            raise self._failed("list", folder, problem) from None

    def folders(self, folder: str) -> list[str]:
        """The names of the folders directly below a folder. Errors as of :meth:`read`."""
        try:
            found = self._store.list_with_delimiter(f"{folder}/")
        except (exceptions.BaseError, FileNotFoundError, OSError) as problem:
            raise self._failed("list", folder, problem) from None
        return sorted(str(name).rstrip("/").rsplit("/", 1)[-1] for name in cast("list[str]", found["common_prefixes"]))

    def remove(self, names: list[str]) -> None:
        """Remove objects; one that is not there is no error. In a bucket with versions they get a delete marker."""
        if not names:
            return
        with contextlib.suppress(FileNotFoundError):
            try:
                self._store.delete(names)
            except (exceptions.BaseError, OSError) as problem:
                if isinstance(problem, FileNotFoundError):
                    raise
                raise self._failed("remove", names[0], problem) from None

    @staticmethod
    def _is_missing(problem: Exception) -> bool:
        """Whether a store says that it has no such object; whatever else answers 404 is no store of ours, and tells nothing."""
        return isinstance(problem, FileNotFoundError) and any(code in str(problem) for code in _NO_OBJECT)

    def _failed(self, what: str, name: str, problem: Exception) -> CollectionError | ConfigurationError:
        """The error for a refused request."""
        said = self._said(problem)
        where = f"cannot {what} {self.url}/{name}"
        if isinstance(problem, exceptions.UnauthenticatedError) or any(word in said for word in _WRONG_KEYS):
            return CollectionError(f"{where}: the store does not accept the credentials; set those of the cloud's own environment. {said}")
        if isinstance(problem, exceptions.PermissionDeniedError):
            return RefusedError(f"{where}: no right to do so; docs/storage.md lists the rights that are needed. {said}")
        hint = next((text for words, text in _HINTS if any(word in said.lower() for word in words)), "")
        if isinstance(problem, exceptions.AlreadyExistsError):  # Azure answers 409 for an object that an immutability policy keeps
            return RefusedError(f"{where}: the store keeps the object that is there. {said}")
        kind = ConfigurationError if "no such bucket" in hint else CollectionError
        return kind(f"{where}: {hint + '. ' if hint else ''}{said}")

    def _said(self, problem: Exception) -> str:
        """What obstore says, on one line, short, and without secrets."""
        text = _USER.sub(
            "***@", _QUERY.sub("?***", " ".join(str(problem).split()).split(" Debug source:")[0])
        )  # a signature of Azure is a part of the address
        named = {**os.environ, **self.options}
        for secret in sorted((value for name, value in named.items() if _SECRET.search(name)), key=len, reverse=True):
            if len(secret) >= _SHORTEST_SECRET:
                text = text.replace(secret, "***")
        return text[:_MOST_OF_MESSAGE]
