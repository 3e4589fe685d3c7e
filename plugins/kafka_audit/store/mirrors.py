"""Roots that lie in an object store: each has a folder on this machine, its mirror, which looks like a root and holds copies.

Every part of the product reads and writes paths. A path below the folder of all mirrors belongs to a store; any other is a local folder,
and for it nothing of a store is loaded.
"""

import contextlib
import functools
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, unquote, urlsplit

from kafka_audit.errors import ConfigurationError
from kafka_audit.store.store_options import endpoints, read_options

if TYPE_CHECKING:
    from kafka_audit.store.remote_root import RemoteRoot

MIRROR_VARIABLE = "KAFKA_AUDIT_MIRROR"
"""Names the folder of all mirrors; not set: ``~/.cache/kafka-audit/mirror``."""
SCHEMES = ("s3", "gs", "abfss")
"""The object stores that a root may lie in. ``file://`` names a local folder."""

MIRROR_MODE = 0o700
AS_FOUND_FILE = ".as-found"
"""In a mirror that is made for one check: objects are copied as they are, and the check tells the differences."""
_URL_FILE = ".url"
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_ALMOST_URL = re.compile(rf"({'|'.join(SCHEMES)}|file):", re.IGNORECASE)
_BUCKET = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_CONTAINER = re.compile(r"[a-z0-9][a-z0-9-]*@[a-z0-9]+\.dfs\.core\.windows\.net")


def root_folder(where: str | Path, named: str = "the root") -> Path:
    """The local folder of a root: the folder itself, or the mirror of a URL, which is made here if it is new.

    ``named``: what the error is to name, such as ``KAFKA_AUDIT_ROOT``. ConfigurationError (exit 2) when the URL cannot be used.
    """
    text = str(where)
    if not _URL.match(text):
        if found := _ALMOST_URL.match(text):
            raise ConfigurationError(
                f"{named}: begins with {found[0]} and is neither a folder nor a URL: write {found[1].lower()}:// and two slashes"
            )
        return Path(text).resolve()
    parts = _split(text, named)
    if parts.scheme == "file":
        if parts.netloc not in ("", "localhost"):
            raise ConfigurationError(f"{named}: a file:// URL has no host: write file:///folder")
        return Path(unquote(parts.path)).resolve()
    return _mirror_of(_checked_url(text, named))


def root_name(root: Path) -> str:
    """What a root is called on every machine: the URL that a mirror is of, or the path of a local folder."""
    remote = remote_at(root)
    return remote.url if remote else str(root)


def remote_at(path: Path) -> "RemoteRoot | None":
    """The store that a path belongs to, when it lies in the mirror of one; None for any other path. Nothing is read for these."""
    base, text = _base(), str(path)
    if not text.startswith(base + os.sep):
        return None
    return _remote_in(f"{base}{os.sep}{text[len(base) + 1 :].split(os.sep, 1)[0]}")


def where(path: Path | None) -> str:
    """What a file or folder of a root is called on every machine: its URL in the store, or its path."""
    remote = remote_at(path) if path else None
    return f"{remote.url}/{remote.name_of(path)}" if remote and path else str(path)


def bring(folder: Path, inside: tuple[str, ...] = ("",)) -> None:
    """Copy a sealed folder of a root in a store here; nothing for a local root. IntegrityError when a file was changed.

    ``inside``: only the files whose names begin with one of these.
    """
    if remote := remote_at(folder):
        remote.whole(folder, inside)


def bring_manifest(folder: Path) -> None:
    """Copy the manifest of a sealed folder of a root in a store here; nothing for a local root, or for a folder inside of a sealed one."""
    if (remote := remote_at(folder)) and remote.is_place(folder):
        remote.manifest(folder)


@contextlib.contextmanager
def fresh_copy(root: Path) -> Iterator[Path]:
    """The root as the store has it now, for a check: an empty mirror, which is removed afterwards. A local root is given back as it is.

    What is gone from the store is missing in the mirror, and what was changed is in it as it is.
    """
    remote = remote_at(root)
    if remote is None:
        yield root
        return
    before = os.environ.get(MIRROR_VARIABLE)
    with tempfile.TemporaryDirectory(prefix="kafka-audit-check-") as folder:
        os.environ[MIRROR_VARIABLE] = folder
        try:
            mirror = _mirror_of(remote.url)
            (mirror / AS_FOUND_FILE).touch()
            yield mirror
        finally:
            os.environ.pop(MIRROR_VARIABLE)
            if before is not None:
                os.environ[MIRROR_VARIABLE] = before


def root_of(path: Path) -> Path | None:
    """The mirror that a path lies in; None for a path of a local root."""
    remote = remote_at(path)
    return remote.mirror if remote else None


def need_local(root: Path, what: str) -> None:
    """ConfigurationError (exit 2) when a root lies in a store, of which ``what`` cannot be had."""
    if remote := remote_at(root):
        raise ConfigurationError(f"{what} needs a root in a local folder, and {remote.url} is in an object store: see docs/storage.md")


def folder_at(where: str | Path) -> Path:
    """The folder of one sealed audit, snapshot or review that a path or a URL names: ``s3://bucket/root/audits/<cluster>/<id>``."""
    text = str(where)
    if not _URL.match(text) or urlsplit(text).scheme == "file":
        return Path(unquote(urlsplit(text).path)) if text.startswith("file:") else Path(text)
    found = re.fullmatch(r"(.+?)/((?:evidence|offsets|audits|reviews)/[^/]+/[^/]+|history/[^/]+/lag/[^/]+)/?", text)
    if found is None:
        _checked_url(text, "the URL")  # tells no secret that is in it
        raise ConfigurationError(f"{text} names no sealed folder: write ROOT/audits/CLUSTER/ID, ROOT/evidence/CLUSTER/ID or the like")
    return root_folder(found[1]) / found[2]


def _split(text: str, named: str) -> SplitResult:
    try:
        return urlsplit(text)
    except ValueError as problem:
        raise ConfigurationError(f"{named}: is no URL ({problem}): write s3://bucket/folder") from None


def _checked_url(text: str, named: str) -> str:
    parts = _split(text, named)
    if parts.scheme not in SCHEMES:
        raise ConfigurationError(
            f"{named}: a root cannot lie at {parts.scheme}://: write a folder or a URL of {', '.join(f'{one}://' for one in SCHEMES)} or file://"
        )
    user, azure = parts.netloc.rpartition("@")[0], parts.scheme == "abfss"
    form = f"{parts.scheme}://{'container@account.dfs.core.windows.net' if azure else 'bucket'}/folder"
    if parts.query or parts.fragment or ":" in user or (user and not azure):
        raise ConfigurationError(
            f"{named}: the URL of a root holds a bucket and a folder only, no key and no option: write {form} and "
            "give keys by the cloud's own environment"
        )
    if not parts.netloc:
        raise ConfigurationError(f"{named}: {text} names no bucket: write {form}")
    if not (_CONTAINER if azure else _BUCKET).fullmatch(parts.netloc):
        raise ConfigurationError(f"{named}: {parts.netloc!r:.80} is no name of a bucket: write {form}")
    odd = {repr(one) for one in parts.path if not one.isprintable()}
    if found := sorted(odd or {*parts.path} & {*"*?[]{}\\%"} or ({".", ".."} & {*parts.path.split("/")})):
        raise ConfigurationError(f"{named}: the folder in {text} holds {' '.join(found)}, which cannot be used: name another folder")
    return f"{parts.scheme}://{parts.netloc}{''.join(f'/{one}' for one in parts.path.split('/') if one)}"


def _mirror_of(url: str) -> Path:
    """Its folder, named by the URL and the store's endpoints: buckets of one name at two endpoints have a mirror each."""
    base = Path(_base())
    mirror = base / hashlib.sha256("\n".join((url, *endpoints(read_options()))).encode()).hexdigest()[:16]
    try:
        for folder in (base, mirror):
            folder.mkdir(mode=MIRROR_MODE, parents=True, exist_ok=True)
            _make_private(folder)
        if not (mirror / _URL_FILE).is_file() or (mirror / _URL_FILE).read_text(encoding="utf-8") != url:  # a power cut can empty it
            fresh = mirror / f"{_URL_FILE}.{os.getpid()}"
            fresh.write_text(url, encoding="utf-8")
            fresh.replace(mirror / _URL_FILE)
    except OSError as problem:
        raise ConfigurationError(
            f"{MIRROR_VARIABLE}: the folder {mirror}, for copies of {url}, cannot be made ({problem.strerror}): name a folder that can be "
            "written"
        ) from problem
    return mirror


def _make_private(folder: Path) -> None:
    """Take the rights of others from a folder; ConfigurationError when it is another user's, a link or, like /tmp, everybody's.

    Whoever could write there would decide what is read as evidence.
    """
    about = folder.lstat()
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.geteuid() or about.st_mode & stat.S_ISVTX:
        raise ConfigurationError(
            f"{MIRROR_VARIABLE}: {folder} is a link, belongs to another user or is shared: name a folder that is made for these copies, "
            f"such as {folder}/kafka-audit"
        )
    folder.chmod(MIRROR_MODE)


def _base() -> str:
    return _resolved(os.environ.get(MIRROR_VARIABLE) or "~/.cache/kafka-audit/mirror")


@functools.lru_cache(maxsize=8)
def _resolved(named: str) -> str:
    return str(Path(named).expanduser().resolve())


def _remote_in(mirror: str) -> "RemoteRoot | None":
    if mirror not in _remotes:
        try:
            url = (Path(mirror) / _URL_FILE).read_text(encoding="utf-8")
        except OSError:
            return None
        # Loaded by name: only a root in a store needs obstore, and that module builds on this one.
        _remotes[mirror] = import_module("kafka_audit.store.remote_root").RemoteRoot(url=url, mirror=Path(mirror))
    return _remotes[mirror]


_remotes: "dict[str, RemoteRoot]" = {}
