"""The chain of a cluster's audits: each sealed audit has a number and names the manifest of the one sealed before it.

``sequence`` counts 1, 2, 3 ... in the order of sealing, whatever the ids or the clock say. ``previous`` is {audit_id, sequence,
manifest_sha256} of the audit that was newest then. One lock for each cluster (``audits/<cluster>/.lock``) is held while an audit gets its
place, so that two that end at the same moment follow each other.

An audit that a later one was chained to is never rewritten. The newest may be done again: it is opened (its manifest is removed) and keeps
its number for the time when it is sealed again, and its manifest then lists the sha256 of its earlier ones as ``replaces``. If another
audit is sealed meanwhile, that one takes the next number and lists the open one under ``reopened``, so that the hole is explained; the
open one gets a new number at the end. No number is ever given to two audits.

``audits/<cluster>/.chain.json`` keeps what no single manifest can: the last number given, the newest sealed audit and those that are open.
It also holds the seal that is being written, so that one that was cut off by a crash is finished or forgotten by the next.
"""

import contextlib
import fcntl
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kafka_audit.durable_files import sha256_of, sync_file, sync_folder, write_failed, write_json
from kafka_audit.errors import IntegrityError
from kafka_audit.manifest import MANIFEST, SIGNATURE, FileHashes, bytes_of, is_hidden, list_files, parse_object, read_manifest, tree_files
from kafka_audit.store.signing import signing_key

STATE = ".chain.json"
LOCK = ".lock"
_PENDING = ".manifest.pending"
_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{8}(\.json)?|\.manifest\.pending")
"""Names of what is being written (durable_files): what has such a name before a seal was left by a process that was killed."""


@dataclass(frozen=True, kw_only=True)
class Seal:
    """The place of one sealed audit, and the sha256 of its manifest: the value that a witness outside the folder keeps."""

    audit_id: str
    sequence: int
    manifest_sha256: str

    def __str__(self) -> str:
        return f"audit {self.audit_id}, number {self.sequence} of its cluster, manifest sha256 {self.manifest_sha256}"


@dataclass(frozen=True, kw_only=True)
class Opened:
    """An audit that was sealed and is being done again: its last seal, and the sha256 of the manifests that this one had replaced."""

    seal: Seal
    replaces: tuple[str, ...] = ()


@dataclass(kw_only=True)
class ChainState:
    """What .chain.json holds."""

    last: int = 0
    head: Seal | None = None
    sealing: Seal | None = None
    opened: dict[str, Opened] = field(default_factory=dict)


@contextlib.contextmanager
def held(folder: Path, *, shared: bool = False) -> Iterator[None]:
    """Hold the lock of a cluster's audits, which a seal waits for.

    ``shared``: only keep others from sealing, as a check does; go on without a lock where there is none, such as in a copy.
    """
    if shared and not (folder / LOCK).exists():
        yield
        return
    flags = os.O_RDONLY if shared else os.O_RDWR | os.O_CREAT
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK, flags | os.O_CLOEXEC | os.O_NOFOLLOW, 0o640)
    except OSError as problem:
        raise write_failed(folder / LOCK, problem) from problem
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
        except OSError as problem:  # a file system without locks
            raise write_failed(folder / LOCK, problem) from problem
        yield
    finally:
        os.close(descriptor)


def seal(audit: Path, identity: Mapping[str, Any], hashes: FileHashes | None = None) -> Seal:
    """Write the manifest of an audit over all its files, at its place in the chain, signed where the installation signs.

    ``identity`` is what the manifest says besides its place and its files. Everything is durable before the manifest vouches for it.
    """
    key = signing_key()
    _remove_leftovers(audit)
    files = tree_files(audit, hashes)
    with _written(audit):
        _make_durable(audit)
    with held(audit.parent), _written(audit):
        if not _is_open(audit):
            raise IntegrityError(f"{audit} is sealed and a later audit was chained to it: it cannot be sealed again; start a new run")
        state = recovered(audit.parent)
        earlier, head = state.opened.get(audit.name), state.head
        after = head.sequence if head else 0
        sequence = earlier.seal.sequence if earlier and earlier.seal.sequence > after else state.last + 1
        passed = sorted(
            (one.seal for one in state.opened.values() if one.seal.audit_id != audit.name and after < one.seal.sequence < sequence),
            key=lambda one: one.sequence,
        )
        manifest = {
            **identity,
            "audit_id": audit.name,
            "sequence": sequence,
            "previous": asdict(head) if head else None,
            "reopened": [asdict(one) for one in passed],
            "replaces": list(earlier.replaces) if earlier else [],
            "files": files,
        }
        pending = audit / _PENDING
        write_json(pending, manifest)
        if earlier and sha256_of(pending) != earlier.seal.manifest_sha256:  # an audit that came out the same replaces nothing
            write_json(pending, {**manifest, "replaces": [*earlier.replaces, earlier.seal.manifest_sha256]})
        made = Seal(audit_id=audit.name, sequence=sequence, manifest_sha256=sha256_of(pending))
        state.sealing = made
        _write_state(audit.parent, state)
        (audit / SIGNATURE).unlink(missing_ok=True)
        if key is not None:
            key.sign(audit, pending)
        pending.replace(audit / MANIFEST)
        sync_folder(audit)
        _finish(state)
        _write_state(audit.parent, state)
        sync_folder(audit.parent)
    return made


def reopen(audit: Path) -> bool:
    """Remove an audit's manifest before one of its steps runs again, because a folder being rewritten must not look sealed.

    False, and nothing is done, when a later audit was chained to it: its files are evidence that a later manifest vouches for.
    """
    if not os.path.lexists(audit / MANIFEST):
        return True
    with held(audit.parent), _written(audit):
        return _is_open(audit)


def _is_open(audit: Path) -> bool:
    """Whether the audit is open now; the caller holds the lock."""
    state = recovered(audit.parent)
    if not os.path.lexists(audit / MANIFEST):
        return True
    head = state.head
    if head is None or head.audit_id != audit.name or head.sequence != state.last:
        return False
    if sha256_of(audit / MANIFEST) != head.manifest_sha256:
        raise IntegrityError(f"{audit}: its manifest was changed after it was sealed; restore the folder from a copy, or start a new run")
    manifest = read_manifest(audit)
    state.opened[audit.name] = Opened(seal=head, replaces=tuple(manifest["replaces"]))
    state.head = _seal_in(manifest["previous"]) if manifest["previous"] else None
    _write_state(audit.parent, state)
    _unseal(audit)
    return True


def sealed_as(audit: Path) -> Seal | None:
    """The place of an audit as its manifest says, with the manifest's sha256 as it is now; None while it is not sealed."""
    if not os.path.lexists(audit / MANIFEST):
        return None
    manifest, sha256 = read_manifest(audit), FileHashes().of(audit / MANIFEST)[0]
    if not isinstance(manifest.get("sequence"), int):
        raise IntegrityError(f"{audit / MANIFEST}: has no sequence, so it is not the manifest of a sealed audit; restore it from a copy")
    return Seal(audit_id=audit.name, sequence=manifest["sequence"], manifest_sha256=sha256)


def read_state(folder: Path) -> ChainState | None:
    """What .chain.json says; None when there is none. IntegrityError when it cannot be read."""
    if not os.path.lexists(folder / STATE):
        return None
    value = parse_object(folder / STATE, bytes_of(folder / STATE))
    try:
        return ChainState(
            last=int(value["last"]),
            head=_seal_in(value["head"]) if value["head"] else None,
            sealing=_seal_in(value["sealing"]) if value["sealing"] else None,
            opened={
                str(name): Opened(seal=_seal_in(one["seal"]), replaces=tuple(map(str, one["replaces"])))
                for name, one in value["opened"].items()
            },
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise IntegrityError(
            f"{folder / STATE}: is not the state of a chain ({problem!r}); restore it, or remove it: the manifests tell then"
        ) from problem


def recovered(folder: Path) -> ChainState:
    """The state of a chain, after what a crash cut off was finished or forgotten; the caller holds the lock.

    Without .chain.json the manifests tell: the sealed audit with the highest number is the newest.
    """
    state = read_state(folder)
    if state is None:
        return _told_by_manifests(folder)
    if state.sealing is not None:
        if _sha256(folder / state.sealing.audit_id) == state.sealing.manifest_sha256:
            _finish(state)
        state.sealing = None
    for name, one in state.opened.items():
        if _sha256(folder / name) == one.seal.manifest_sha256:
            _unseal(folder / name)
    return state


def _told_by_manifests(folder: Path) -> ChainState:
    state = ChainState()
    for path in folder.glob(f"[!.]*/{MANIFEST}"):
        found = sealed_as(path.parent)
        if found and found.sequence > state.last:
            state.last, state.head = found.sequence, found
    return state


def _finish(state: ChainState) -> None:
    """Make the seal that was being written the newest one."""
    if state.sealing is not None:
        state.opened.pop(state.sealing.audit_id, None)
        state.head, state.last, state.sealing = state.sealing, max(state.last, state.sealing.sequence), None


def _write_state(folder: Path, state: ChainState) -> None:
    about = {"kind": "audit_chain", "last": state.last, "head": state.head, "sealing": state.sealing}
    opened = {name: asdict(one) for name, one in state.opened.items()}
    seals = {name: asdict(value) if isinstance(value, Seal) else value for name, value in about.items()}
    write_json(folder / STATE, {**seals, "opened": opened})
    sync_folder(folder)


def _seal_in(value: Mapping[str, Any]) -> Seal:
    return Seal(audit_id=str(value["audit_id"]), sequence=int(value["sequence"]), manifest_sha256=str(value["manifest_sha256"]))


def _sha256(audit: Path) -> str | None:
    return FileHashes().of(audit / MANIFEST)[0] if os.path.lexists(audit / MANIFEST) else None


def _unseal(audit: Path) -> None:
    (audit / MANIFEST).unlink(missing_ok=True)
    (audit / SIGNATURE).unlink(missing_ok=True)
    sync_folder(audit)


def _remove_leftovers(audit: Path) -> None:
    """What a killed process was writing. Any other hidden file is refused: no reader would look at it, so nobody may vouch for it."""
    for path in [path for path in audit.rglob(".*") if _LEFTOVER.fullmatch(path.name)]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    hidden = [name for name in list_files(audit).files if is_hidden(name)]
    if hidden:
        raise IntegrityError(f"{audit} cannot be sealed: {hidden[0]} is hidden, so no reader would look at it. Remove it")


def _make_durable(audit: Path) -> None:
    """Sync every folder and file of an audit but hard links to evidence: that was synced when it was sealed, and there is much of it."""
    for parent, _, names in os.walk(audit, topdown=False):
        for path in (Path(parent) / name for name in names):
            if path.lstat().st_nlink == 1:
                sync_file(path)
        sync_folder(Path(parent))


@contextlib.contextmanager
def _written(audit: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise write_failed(audit / MANIFEST, problem) from problem
