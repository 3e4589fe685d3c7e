"""Open audits of a root in a store, and single files that change: each step brings what is there, and sends what it changed.

They lie below ``work/``, where objects are replaced. A step may run on any machine, so what it leaves in the mirror counts for nothing
until it was sent. ``.work/`` in the mirror remembers which version of each file is here.
"""

import contextlib
import fcntl
import logging
import os
from collections.abc import Iterator
from pathlib import Path

from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import MOST_JSON, read_json, sha256_of, write_json
from kafka_audit.store.manifest import MANIFEST, SIGNATURE, is_hidden, list_files
from kafka_audit.store.remote import Remote
from kafka_audit.store.remote_names import is_inside
from kafka_audit.times import is_id

log = logging.getLogger(__name__)

_SHOWN = ("run.json", "failures/", "report/report.json")
"""What is shown of an audit that is not sealed."""
Versions = dict[str, list[str]]
"""The etag and the sha256 of each file that is here, by its name in the audit."""


def bring_audit(remote: Remote, audit: Path) -> None:
    """Make the folder of an audit here what is in the store: all of it, sealed or open. IntegrityError as of :meth:`Remote.whole`."""
    if remote.manifest(audit):
        remote.whole(audit)
    else:
        bring_open(remote, audit)


def bring_open(remote: Remote, audit: Path) -> None:
    """Make the folder of an open audit here what is in the store; files that only this machine has are removed."""
    with _held(remote, audit) as versions:
        there = _listed(remote, audit)
        here = set(list_files(audit)[0]) if audit.is_dir() else set()
        for name in here - there.keys():
            if not is_hidden(name):
                (audit / name).unlink()
        _remove_empty(audit)
        _bring(remote, audit, there, versions)


def bring_unsealed(remote: Remote, folder: Path, sealed: set[str]) -> None:
    """Bring what is shown of the audits of a cluster that are not sealed."""
    for name in remote.objects.folders(f"work/{remote.name_of(folder)}"):
        if name in sealed or not is_id(name):
            continue
        with _held(remote, folder / name) as versions:
            there = {one: etag for one, etag in _listed(remote, folder / name).items() if one.startswith(_SHOWN)}
            there = {one: etag for one, etag in there.items() if not _is_changed(folder / name / one, versions.get(one))}
            try:
                _bring(remote, folder / name, there, versions, MOST_JSON)
            except IntegrityError as problem:  # it is sealed, or a step changes it, at this moment
                log.warning("not all of an open audit is shown: %s", problem)


def send_audit(remote: Remote, audit: Path) -> None:
    """Send what a step changed in the folder of an open audit; nothing when it is sealed, because sealing sent it."""
    if (audit / MANIFEST).exists():
        return
    with _held(remote, audit) as versions:
        names = [name for name in (list_files(audit)[0] if audit.is_dir() else []) if not is_hidden(name)]

        def send(name: str) -> None:
            sha256 = sha256_of(audit / name)
            if versions.get(name, ["", ""])[1] != sha256:
                put = remote.objects.replace(_object(remote, audit, name), (audit / name).read_bytes())
                versions[name] = [put.etag, sha256]

        remote.each(send, names)
        gone = sorted(versions.keys() - set(names))
        remote.objects.remove([_object(remote, audit, name) for name in gone])
        for name in gone:
            del versions[name]


def forget_open(remote: Remote, audit: Path) -> None:
    """Remove the objects of an audit that is sealed by now."""
    with _held(remote, audit) as versions:
        remote.objects.remove([_object(remote, audit, name) for name in sorted({*versions, *_listed(remote, audit)})])
        versions.clear()


def bring_file(remote: Remote, path: Path) -> None:
    """Bring one file that changes, such as told.json; one that the store does not have is removed here."""
    data = remote.objects.read(f"work/{remote.name_of(path)}")
    if data is None:
        path.unlink(missing_ok=True)
    else:
        remote.write(path, data)


def send_file(remote: Remote, path: Path) -> None:
    """Send one file that changes."""
    remote.objects.replace(f"work/{remote.name_of(path)}", path.read_bytes())


def _bring(remote: Remote, audit: Path, there: dict[str, str], versions: Versions, most: int | None = None) -> None:
    def bring(name: str) -> None:
        etag, sha256 = versions.get(name, ["", ""])
        if etag == there[name] and etag and (audit / name).is_file() and sha256_of(audit / name) == sha256:
            return
        found = remote.copy(_object(remote, audit, name), audit / name, most)
        if found is None:
            raise IntegrityError(f"{remote.url}/{_object(remote, audit, name)}: is listed and gone: another step of the audit is running")
        versions[name] = [there[name], found]

    remote.each(bring, list(there))
    for name in versions.keys() - there.keys():
        if not (audit / name).is_file():
            del versions[name]


def _is_changed(path: Path, version: list[str] | None) -> bool:
    """Whether a step on this machine has written a file that it has not sent yet."""
    return path.is_file() and (version is None or sha256_of(path) != version[1])


def _listed(remote: Remote, audit: Path) -> dict[str, str]:
    folder = f"work/{remote.name_of(audit)}/"
    found = {one.name.removeprefix(folder): one.etag for one in remote.objects.names(folder.rstrip("/"))}
    return {name: etag for name, etag in found.items() if is_inside(name) and not is_hidden(name) and name not in (MANIFEST, SIGNATURE)}


def _object(remote: Remote, audit: Path, name: str) -> str:
    return f"work/{remote.name_of(audit)}/{name}"


@contextlib.contextmanager
def _held(remote: Remote, audit: Path) -> Iterator[Versions]:
    """The versions that are here, while no other process of this machine brings or sends the same audit; kept when the block ends."""
    file = remote.mirror / ".work" / f"{audit.parent.name}.{audit.name}.json"
    remote.make_folder(file.parent)
    descriptor = os.open(file.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        known = read_json(file) if file.is_file() else {}
        versions: Versions = {str(name): [str(one) for one in pair] for name, pair in known.items()}
        before = dict(versions)
        try:
            yield versions
        finally:
            if versions != before:
                write_json(file, versions)
    finally:
        os.close(descriptor)


def _remove_empty(audit: Path) -> None:
    for parent, _, _ in os.walk(audit, topdown=False) if audit.is_dir() else ():
        if parent != str(audit):
            with contextlib.suppress(OSError):  # not empty
                Path(parent).rmdir()
