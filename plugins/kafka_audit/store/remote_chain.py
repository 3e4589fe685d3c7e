"""The chains of a root in a store: the store decides which audit, or review, gets the next number.

``chain/<kind>/<cluster>/<number>.json`` is created once and holds the manifest of the folder with that number. Creating it is what
seals the folder: its files are in the store by then, and whoever comes next may write the manifest to its own place, if the writer was
killed before it could. Nobody creates a number before the manifest of the number before it is at its place, so a folder whose manifest is
not there has no number yet.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kafka_audit.errors import CollectionError, IntegrityError
from kafka_audit.store.chain_state import ChainState, Seal, number_in, write_state
from kafka_audit.store.durable_files import read_json, write_json
from kafka_audit.store.manifest import MANIFEST, MOST_BYTES, parse_object
from kafka_audit.store.open_audits import bring_unsealed, forget_open
from kafka_audit.store.remote import Remote
from kafka_audit.store.signing_key import signing_key
from kafka_audit.times import is_id

_KNOWN_FILE = ".chain-known.json"
_DIGITS = 12


def refresh_audits(remote: Remote, folder: Path) -> None:
    """Bring what the pages, the chain and the index ask of every audit in ``folder``: manifests, run.json, and .chain.json.

    Of audits that are not sealed run.json and the notes of failed steps are brought.
    """
    remote.make_folder(folder)
    names = remote.manifests(folder)
    head, raw = newest(remote, folder)
    if head is not None and raw is not None and head.audit_id not in names:
        remote.keep_manifest(folder / head.audit_id, raw)  # its writer was killed before the manifest was at its place
    remote.each(
        lambda one: remote.whole(one, ("run.json",)), [folder / name for name in names if not (folder / name / "run.json").is_file()]
    )
    state = ChainState(last=head.sequence if head else 0, head=head)
    if head is not None:
        write_state(folder, state)
    bring_unsealed(remote, folder, {*names, *([head.audit_id] if head else [])})


def seal_audit_in_store(remote: Remote, audit: Path, identity: Mapping[str, Any], files: Mapping[str, Any], pending: Path) -> Seal:
    """Seal an open audit as the next of its cluster; the seal that it has when another worker was quicker.

    ``files``: sha256 and bytes of each of its files. ``pending``: where its manifest is written until it is one.
    """
    refused = 0
    while True:
        head, _ = completed(remote, audit.parent)
        if refused and (head is None or head.sequence < refused):
            raise CollectionError(f"{remote.url}/{_entry(remote, audit.parent, refused)}: is there and is not listed: try again")
        if (raw := remote.objects.read(remote.manifest_object(audit), MOST_BYTES)) is not None:
            check_sealed(remote, audit, raw)
            break
        number = head.sequence + 1 if head else 1
        place = {"audit_id": audit.name, "sequence": number, "previous": asdict(head) if head else None, "reopened": [], "replaces": []}
        write_json(pending, {**identity, **place, "files": dict(files)})
        raw = pending.read_bytes()
        _sign(audit, pending)
        remote.send_files(audit, audit, raw)
        if claim(remote, audit, number, raw):
            break
        refused = number
    pending.unlink(missing_ok=True)
    newest(remote, audit.parent)  # remembers the number
    remote.keep_manifest(audit, raw)
    forget_open(remote, audit)
    return seal_of(raw, audit)


def check_sealed(remote: Remote, audit: Path, raw: bytes) -> None:
    """IntegrityError when a manifest at the place of an audit's has no number in the chain: then the open audit must stay as it is."""
    place = seal_of(raw, audit)
    if place.audit_id != audit.name or remote.objects.read(_entry(remote, audit.parent, place.sequence), MOST_BYTES) != raw:
        raise IntegrityError(
            f"{remote.url}/{remote.manifest_object(audit)}: has no number in the chain, so it was added: remove it, then try again"
        )


def claim(remote: Remote, folder: Path, number: int, raw: bytes) -> bool:
    """Give a folder, whose files are in the store, that number; False when another folder has it."""
    if not remote.objects.create(_entry(remote, folder.parent, number), raw):
        return False
    if not remote.objects.create(remote.manifest_object(folder), raw):
        raise IntegrityError(f"{remote.url}/{remote.manifest_object(folder)}: holds another manifest than number {number} of the chain")
    return True


def completed(remote: Remote, folder: Path) -> tuple[Seal | None, bytes | None]:
    """The newest number of a chain, with its manifest, which is at its place by now."""
    head, raw = newest(remote, folder)
    if head is not None and raw is not None and not remote.objects.create(remote.manifest_object(folder / head.audit_id), raw):
        raise IntegrityError(
            f"{remote.url}/{remote.manifest_object(folder / head.audit_id)}: is not the manifest that has number {head.sequence} of the "
            "chain: restore the version that was sealed"
        )
    return head, raw


def newest(remote: Remote, folder: Path) -> tuple[Seal | None, bytes | None]:
    """The newest number of a chain, with its manifest; (None, None) for a chain without one.

    IntegrityError when a number that this machine has seen is gone, or an entry is not the manifest of what has that number.
    """
    known_file = folder / _KNOWN_FILE
    known = number_in(read_json(known_file).get("last"), least=0) if known_file.is_file() else 0
    named = remote.objects.names(_chain(remote, folder), f"{known - 1:0{_DIGITS}d}" if known > 1 else "")
    listed = [one.name for one in named if _number_of(remote, folder, one.name)]
    if not listed:
        if known:
            raise IntegrityError(f"{remote.url}/{_entry(remote, folder, known)}: was there and is gone: restore it")
        return None, None
    name = max(listed)
    raw = remote.objects.read(name, MOST_BYTES)
    if raw is None:
        raise IntegrityError(f"{remote.url}/{name}: is listed and cannot be read")
    head = seal_of(raw, folder / "entry")
    if name != _entry(remote, folder, head.sequence) or head.sequence < known:
        raise IntegrityError(f"{remote.url}/{name}: is not the manifest with that number: restore what was sealed, or remove it")
    if head.sequence != known:
        remote.make_folder(folder)
        write_json(known_file, {"last": head.sequence})
    return head, raw


def entries(remote: Remote, folder: Path) -> dict[int, bytes]:
    """Every entry of a chain by its number."""
    found = {}
    for one in remote.objects.names(_chain(remote, folder)):
        if number := _number_of(remote, folder, one.name):
            found[number] = remote.objects.read(one.name, MOST_BYTES) or b""
    return found


def problems(remote: Remote, folder: Path) -> list[str]:
    """Every difference between the numbers of a chain and the manifests of the folders, as sentences; empty when there is none."""
    found, numbers, named = [], entries(remote, folder), set()
    expected = 1
    for number in sorted(numbers):
        name = _entry(remote, folder, number)
        if number > expected:  # no sentence for each: anybody who adds a number chooses how many are missing
            last = f" to {number - 1}" if number - 1 > expected else ""
            found.append(f"{_entry(remote, folder, expected)}{last}: is gone, so the chain has a gap before number {number}: restore it")
        expected = number + 1
        try:
            seal = seal_of(numbers[number], folder / "entry")
        except IntegrityError as problem:
            found.append(f"{name}: {problem}")
            continue
        named.add(seal.audit_id)
        raw = remote.objects.read(remote.manifest_object(folder / seal.audit_id), MOST_BYTES)
        if seal.sequence != number:
            found.append(f"{name}: holds the manifest of number {seal.sequence}: it was changed")
        elif raw is None:
            found.append(f"{seal.audit_id}: number {number} of the chain, and its manifest is gone")
        elif raw != numbers[number]:
            found.append(f"{seal.audit_id}: its manifest is not the one that has number {number} of the chain: one of the two was changed")
    return found + [
        f"{name}: has a manifest and no number in the chain: it was added" for name in remote.sealed_names(folder) if name not in named
    ]


def seal_of(raw: bytes, where: Path) -> Seal:
    """The place that a manifest gives an audit or a review; IntegrityError when it gives none."""
    manifest = parse_object(where / MANIFEST, raw)
    try:
        name = manifest.get("review_id") or manifest["audit_id"]
        if not is_id(name):
            raise ValueError(f"{name!r:.80} is no id")
        return Seal(audit_id=name, sequence=number_in(manifest["sequence"]), manifest_sha256=hashlib.sha256(raw).hexdigest())
    except (KeyError, TypeError, ValueError) as problem:
        raise IntegrityError(f"{where}: the manifest does not say its place in the chain ({problem!r:.200})") from problem


def _sign(audit: Path, pending: Path) -> None:
    key = signing_key()
    if key is not None:
        key.sign(audit, pending)


def _chain(remote: Remote, folder: Path) -> str:
    return f"chain/{remote.name_of(folder)}"


def _number_of(remote: Remote, folder: Path, name: str) -> int:
    """The number that the name of an entry holds; 0 for an object that is no entry of ours."""
    digits = name.rpartition("/")[2].removesuffix(".json")
    number = int(digits) if digits.isascii() and digits.isdigit() and len(digits) == _DIGITS else 0
    return number if number and name == _entry(remote, folder, number) else 0


def _entry(remote: Remote, folder: Path, number: int) -> str:
    return f"{_chain(remote, folder)}/{number:0{_DIGITS}d}.json"
