"""The files of a batch of the commit history, raw or decoded: those that its manifest names, and as it says."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import read_json, sha256_of
from kafka_audit.store.manifest import MANIFEST, tree_files

REPAIR_OF_RAW = "its records cannot be had again, restore it from a copy"
REPAIR_OF_DECODED = "remove this decoded batch, it is decoded anew from raw/"


def file_hashes(batch: Path) -> dict[str, str]:
    """The sha256 of each file of a batch that is being written, by its name there: what ``named_files`` will read."""
    return {name: str(file["sha256"]) for name, file in tree_files(batch).items()}


def named_files(batch: Path, repair: str) -> dict[str, str]:
    """The sha256 of each file by its name in the batch, as the manifest says.

    IntegrityError (exit 5) when the files that are there, hidden ones aside, are not exactly these; nothing is hashed.
    """
    files = read_json(batch / MANIFEST).get("files")
    if not isinstance(files, dict):
        raise IntegrityError(f"{batch}: {MANIFEST} has no list of files; {repair}")
    there = {path.relative_to(batch).as_posix() for path in batch.rglob("[!.]*") if path.is_file()} - {MANIFEST}
    others = sorted(there ^ files.keys())
    if others:
        raise IntegrityError(f"{batch}: {others[0]} {'is missing' if others[0] in files else 'is not in the manifest'}; {repair}")
    return files


def verify_batch(batch: Path, repair: str) -> None:
    """IntegrityError (exit 5) when the files of a batch are not exactly those of its manifest, or one has another sha256."""
    for name, sha256 in named_files(batch, repair).items():
        if sha256_of(batch / name) != sha256:
            raise IntegrityError(f"{batch}: {name} is not what the manifest says; {repair}")


@contextmanager
def read_as_parquet(part: Path, repair: str) -> Iterator[None]:
    """Within the block a file of a batch is read; IntegrityError (exit 5) when it is no Parquet file or lacks a column."""
    try:
        yield
    except (OSError, KeyError, pa.ArrowException) as problem:
        raise IntegrityError(f"{part}: cannot be read as Parquet ({problem}); {repair}") from problem
