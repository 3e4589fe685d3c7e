"""The batches of a commit history as files: how far they reach, how one is published, hashes, and which have expired.

A batch is named by its number, of eight digits. Its raw manifest says which offsets it covers, and up to where every partition was read
with it: the newest batch tells where reading goes on, and nothing else does.
"""

import contextlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import read_json, replaced_folder, write_json
from kafka_audit.store.lag_days import day_start_ms
from kafka_audit.store.manifest import MANIFEST, file_problems, parse_object, read_manifest
from kafka_audit.store.mirrors import bring_manifest, remote_at, where
from kafka_audit.store.sealed import Sealed, sealed_in, shown
from kafka_audit.times import parse_time

REPAIR_OF_RAW = "its records cannot be had again, restore it from a copy"
REPAIR_OF_DECODED = "remove this decoded batch, it is decoded anew from raw/"
SOURCE = "source.json"

FIRST_BATCH, _LAST_BATCH = 1, 99_999_999
_NUMBER = re.compile(r"[0-9]{8}")


def batches_in(folder: Path) -> list[str]:
    """Names of the complete batches in a folder ``raw`` or ``decoded``, in order."""
    return [name for name in sealed_in(folder) if _NUMBER.fullmatch(name)]


def raw_manifest(history: Path, batch: str) -> dict[str, Any]:
    """The manifest of a raw batch; IntegrityError when it cannot be read."""
    bring_manifest(history / "raw" / batch)
    return read_manifest(history / "raw" / batch)


def reached(history: Path) -> dict[int, int]:
    """The next offset to read of each partition, as the newest raw batch says; empty without one."""
    names = batches_in(history / "raw")
    if not names:
        return {}
    try:
        return {int(partition): int(offset) for partition, offset in raw_manifest(history, names[-1])["reached"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        raise IntegrityError(f"{where(history / 'raw' / names[-1])}: its manifest does not say what was read; {REPAIR_OF_RAW}") from problem


def next_name(history: Path) -> str:
    """The name of the batch after the newest one; IntegrityError when that has the last number that there is."""
    names = batches_in(history / "raw")
    if not names:
        return f"{FIRST_BATCH:08d}"
    if int(names[-1]) == _LAST_BATCH:
        raise IntegrityError(f"{where(history / 'raw' / names[-1])}: no run has made so many batches, so it was added: remove it")
    return f"{int(names[-1]) + 1:08d}"


def read_at(history: Path, batch: str) -> datetime:
    """When the run began that read a batch: hardly any of its records is younger."""
    try:
        return parse_time(raw_manifest(history, batch)["read_at"])
    except (KeyError, ValueError) as problem:
        raise IntegrityError(f"{where(history / 'raw' / batch)}: its manifest does not say when it was read; {REPAIR_OF_RAW}") from problem


def has_deleted(history: Path) -> bool:
    """Whether batches of this history were deleted: numbers are missing before the newest one, at the beginning or between two."""
    names = batches_in(history / "decoded")
    return bool(names) and int(names[-1]) - FIRST_BATCH + 1 > len(names)


class _TakenError(Exception):
    """Another machine was quicker."""


@contextmanager
def published_folder(target: Path) -> Iterator[Path]:
    """A new folder to fill and to give a manifest; on success it is there as ``target``.

    In a store the first writer of ``target`` counts: what this one made is dropped when another one was quicker, and theirs is read.
    """
    with contextlib.suppress(_TakenError), replaced_folder(target) as folder:
        yield folder
        if (remote := remote_at(target)) and not remote.publish(folder, target):
            raise _TakenError


def kept_source(history: Path, source: Mapping[str, str]) -> dict[str, Any]:
    """What source.json says this is a history of; the first run writes it, and says ``source``."""
    file = history / SOURCE
    if remote := remote_at(file):
        name = remote.name_of(file)
        if (raw := remote.objects.read(name)) is None:
            remote.objects.create(name, json.dumps(source, sort_keys=True).encode())
            raw = remote.objects.read(name) or b""
        remote.write(file, raw)
        return parse_object(file, raw)
    if not file.is_file():
        write_json(file, source)
    return read_json(file)


def expired_batches(history: Path, before: date, stays: Callable[[str, str], None]) -> list[str]:
    """Names of the batches whose newest record is older than the UTC day ``before``, oldest first.

    The newest batch is kept, because behaviour tables need one, and so is the last one, because it says how far was read. Old batches
    that are not decoded are kept, too, and passed to ``stays`` with the reason.
    """
    newest = {batch: _newest_us(history / "raw" / batch) for batch in batches_in(history / "raw")}
    old = [batch for batch, at in newest.items() if at < day_start_ms(before) * 1000 and at < max(newest.values()) and batch < max(newest)]
    expired = []
    for batch in sorted(old, key=lambda batch: (newest[batch], batch)):
        if not (history / "decoded" / batch / MANIFEST).is_file():
            stays(batch, "it is not decoded; the next run of read_commits does that")
        else:
            expired.append(batch)
    return expired


def _newest_us(raw: Path) -> int:
    """When the newest record of a raw batch was appended, in microseconds since the epoch; of one without records, when it was written."""
    found = []
    for part in raw.glob("records.parquet/*.parquet"):
        metadata = pq.read_metadata(part)
        column = metadata.schema.names.index("timestamp")
        found += [metadata.row_group(group).column(column).statistics.max_raw for group in range(metadata.num_row_groups)]
    return max(found, default=(raw / MANIFEST).stat().st_mtime_ns // 1000)


def verify_batch(batch: Path, repair: str, *, names_only: bool = False) -> list[str]:
    """The names of a batch's files, sorted. ``names_only``: nothing is hashed.

    IntegrityError (exit 5) with the advice ``repair`` when files are missing, were added (hidden ones aside) or changed.
    """
    sealed = Sealed.open(batch)
    if problems := file_problems(batch, sealed.manifest, hashed=() if names_only else ("",), ignore_hidden=True):
        raise IntegrityError(f"{batch}: {shown(problems)}; {repair}")
    return sorted(sealed.manifest["files"])


@contextmanager
def read_as_parquet(part: Path, repair: str) -> Iterator[None]:
    """For reading a file of a batch in the block: IntegrityError (exit 5) when it is no Parquet file or lacks a column."""
    try:
        yield
    except (OSError, KeyError, pa.ArrowException) as problem:
        raise IntegrityError(f"{part}: cannot be read as Parquet ({problem}); {repair}") from problem
