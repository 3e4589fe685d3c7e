"""The chain of a cluster's audits: each sealed audit has a number and contains the hash of the previous audit's manifest.

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
import logging
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kafka_audit.errors import IntegrityError
from kafka_audit.store.chain_state import ChainState, Opened, Seal, number_in, read_state, replaced_in, seal_in, write_state
from kafka_audit.store.durable_files import sha256_of, sync_file, sync_folder, write_failed, write_json
from kafka_audit.store.locks import held, held_to_read
from kafka_audit.store.manifest import MANIFEST, SIGNATURE, FileHashes, is_hidden, list_files, manifest_sha256, read_manifest, tree_files
from kafka_audit.store.mirrors import remote_at
from kafka_audit.store.sealed import AUDIT, Place, identity_problems
from kafka_audit.store.signing_key import signing_key
from kafka_audit.times import is_id

log = logging.getLogger(__name__)

_PENDING = ".manifest.pending"
_LEFTOVER = re.compile(r"\..+\.[0-9a-f]{8}(\.json)?|\.manifest\.pending")
"""Names of what is being written (durable_files): what has such a name before a seal was left by a process that was killed."""


def seal(audit: Path, identity: Mapping[str, Any], hashes: FileHashes | None = None) -> Seal:
    """Write the manifest of an audit over all its files, at its place in the chain, signed where the installation signs.

    ``identity`` is what the manifest says besides its place and its files. Everything is durable before the manifest vouches for it.
    """
    key = signing_key()
    _remove_leftovers(audit)
    files = tree_files(audit, hashes)
    if remote := remote_at(audit):
        return remote.seal_audit(audit, identity, files, audit / _PENDING)
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
        write_state(audit.parent, state)
        (audit / SIGNATURE).unlink(missing_ok=True)
        if key is not None:
            key.sign(audit, pending)
        pending.replace(audit / MANIFEST)
        sync_folder(audit)
        _finish(state)
        write_state(audit.parent, state)
        sync_folder(audit.parent)
    return made


def reopen(audit: Path) -> bool:
    """Remove an audit's manifest before one of its steps runs again, because a folder being rewritten must not look sealed.

    False, and nothing is done, when a later audit was chained to it: its files are evidence that a later manifest vouches for. In a store
    every sealed audit is final.
    """
    if remote := remote_at(audit):
        return not remote.manifest(audit)
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
    if manifest_sha256(audit) != head.manifest_sha256:
        raise IntegrityError(f"{audit}: its manifest was changed after it was sealed; restore the folder from a copy, or start a new run")
    manifest = read_manifest(audit)
    try:
        state.opened[audit.name] = Opened(seal=head, replaces=replaced_in(manifest["replaces"]))
        state.head = seal_in(manifest["previous"]) if manifest["previous"] is not None else None
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(
            f"{audit / MANIFEST}: does not say the audit's place ({problem!r:.200}); restore it from a copy, or start a new run"
        ) from problem
    write_state(audit.parent, state)
    _unseal(audit)
    return True


def sealed_as(audit: Path) -> Seal | None:
    """The place of an audit as its manifest says, with the manifest's sha256 as it is now; None while it is not sealed."""
    sha256 = manifest_sha256(audit)
    if sha256 is None:
        return None
    manifest = read_manifest(audit)
    try:
        return Seal(audit_id=audit.name, sequence=number_in(manifest.get("sequence")), manifest_sha256=sha256)
    except ValueError as problem:
        raise IntegrityError(
            f"{audit / MANIFEST}: sequence: {problem}, so this is not the manifest of a sealed audit: restore it from a copy, "
            "or move the folder away"
        ) from problem


def newest_before(audit: Path) -> Seal | None:
    """The newest sealed audit of a cluster apart from ``audit``; of one that is sealed itself, the audit that it was chained to.

    None if there is none. IntegrityError when the chain cannot be read.
    """
    if remote := remote_at(audit):
        remote.refresh_audits(audit.parent)
    if os.path.lexists(audit / MANIFEST):
        return previous_of(read_manifest(audit), audit / MANIFEST)
    if not audit.parent.is_dir():
        return None
    with held_to_read(audit.parent):
        return recovered(audit.parent).head


def previous_of(manifest: Mapping[str, Any], where: Path) -> Seal | None:
    """The audit that a manifest is chained to; None for the first one. IntegrityError when it does not say."""
    try:
        return seal_in(manifest["previous"]) if manifest["previous"] is not None else None
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(f"{where}: does not say which audit came before ({problem!r:.200}); restore it from a copy") from problem


def recovered(folder: Path) -> ChainState:
    """The state of a chain, after what a crash cut off was finished or forgotten; the caller holds the lock.

    Without .chain.json the manifests tell: the sealed audit with the highest number is the newest.
    """
    state = read_state(folder)
    if state is None:
        return _told_by_manifests(folder)
    if state.sealing is not None:
        if manifest_sha256(folder / state.sealing.audit_id) == state.sealing.manifest_sha256:
            _finish(state)
        state.sealing = None
    for one in [one.seal for one in state.opened.values() if manifest_sha256(folder / one.seal.audit_id) == one.seal.manifest_sha256]:
        # Opening it was cut off before its manifest was removed, or someone else wrote this: it is still sealed, and stays so.
        del state.opened[one.audit_id]
        if one.sequence == state.last and (state.head is None or state.head.sequence < one.sequence):
            state.head = one
    return state


def _told_by_manifests(folder: Path) -> ChainState:
    state, place = ChainState(), Place(kind=AUDIT, cluster=folder.name, root=folder.parents[1])
    for path in sorted(folder.glob(f"[!.]*/{MANIFEST}")):
        audit = path.parent
        if not is_id(audit.name) or audit.is_symlink():
            log.warning("%s is passed over: it is not the folder of an audit. Move it away from the audits.", audit)
            continue
        try:
            manifest = read_manifest(audit)
        except IntegrityError as problem:
            raise IntegrityError(
                f"{problem}. Without {folder.name}/.chain.json the manifests must tell which audit is the newest: move {audit} away"
            ) from problem
        if identity_problems(manifest, audit.name, place):
            log.warning("%s is passed over: its manifest is not of this audit. Move it away from the audits.", audit)
            continue
        found = sealed_as(audit)
        if found and found.sequence > state.last:
            state.last, state.head = found.sequence, found
    return state


def _finish(state: ChainState) -> None:
    """Make the seal that was being written the newest one."""
    if state.sealing is not None:
        state.opened.pop(state.sealing.audit_id, None)
        state.head, state.last, state.sealing = state.sealing, max(state.last, state.sealing.sequence), None


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
    hidden = [name for name in list_files(audit)[0] if is_hidden(name)]
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
