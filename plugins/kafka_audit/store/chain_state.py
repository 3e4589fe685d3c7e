"""Reads and writes .chain.json, and reads the positions of audits in the chain from it and from manifests.

Whoever may write into the folder of the audits may write any of it. So an id must be an id, never a path, a number one that can follow
another, and a sha256 64 digits: nothing else goes any further.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import sync_folder, write_json
from kafka_audit.store.manifest import bytes_of, parse_object
from kafka_audit.times import is_id

STATE = ".chain.json"
_MOST = 2**53
"""The largest number that every JSON reader reads as it is written."""
_SHA256 = re.compile(r"[0-9a-f]{64}")


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


def read_state(folder: Path) -> ChainState | None:
    """What .chain.json says; None when there is none. IntegrityError when it cannot be read."""
    if not os.path.lexists(folder / STATE):
        return None
    value = parse_object(folder / STATE, bytes_of(folder / STATE))
    try:
        return ChainState(
            last=number_in(value["last"], least=0),
            head=seal_in(value["head"]) if value["head"] is not None else None,
            sealing=seal_in(value["sealing"]) if value["sealing"] is not None else None,
            opened={name: _opened(name, one) for name, one in value["opened"].items()},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise IntegrityError(
            f"{folder / STATE}: is not the state of a chain ({problem!r:.200}); restore it, or remove it: the manifests tell then"
        ) from problem


def write_state(folder: Path, state: ChainState) -> None:
    """Write .chain.json; it is durable afterwards."""
    about = {"kind": "audit_chain", "last": state.last, "head": state.head, "sealing": state.sealing}
    opened = {name: asdict(one) for name, one in state.opened.items()}
    seals = {name: asdict(value) if isinstance(value, Seal) else value for name, value in about.items()}
    write_json(folder / STATE, {**seals, "opened": opened})
    sync_folder(folder)


def seal_in(value: Mapping[str, Any]) -> Seal:
    """The place of an audit as .chain.json or a manifest names it; KeyError, TypeError or ValueError when it is none."""
    audit_id = value["audit_id"]
    if not is_id(audit_id):
        raise ValueError(f"{audit_id!r:.80} is not the id of an audit")
    return Seal(audit_id=audit_id, sequence=number_in(value["sequence"]), manifest_sha256=sha256_in(value["manifest_sha256"]))


def number_in(value: object, *, least: int = 1) -> int:
    """A number of an audit; ValueError when it is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= _MOST:
        raise ValueError(f"{_shown(value)} is not the number of an audit")
    return value


def sha256_in(value: object) -> str:
    """A sha256 as 64 hexadecimal digits; ValueError when it is none."""
    if not isinstance(value, str) or not _SHA256.fullmatch(value):
        raise ValueError(f"{_shown(value)} is not a sha256")
    return value


def replaced_in(value: object) -> tuple[str, ...]:
    """The sha256 of the manifests that an audit had before it was done again; ValueError when one is none."""
    if not isinstance(value, list):
        raise ValueError(f"{_shown(value)} is not a list of sha256")
    return tuple(map(sha256_in, value))


def _opened(name: str, value: Mapping[str, Any]) -> Opened:
    seal = seal_in(value["seal"])
    if seal.audit_id != name:
        raise ValueError(f"{name!r:.80} is opened as {seal.audit_id}")
    return Opened(seal=seal, replaces=replaced_in(value["replaces"]))


def _shown(value: object) -> str:
    """A value for a message; Python refuses to write integers of thousands of digits."""
    return "a number of many digits" if isinstance(value, int) and abs(value) > _MOST else f"{value!r:.80}"
