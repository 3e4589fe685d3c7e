"""The batches of a commit history as files: hashes, the offsets up to which they reach, and which have expired."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_audit.errors import IntegrityError
from kafka_audit.store.durable_files import read_json, write_json
from kafka_audit.store.lag_days import day_start_ms
from kafka_audit.store.manifest import MANIFEST, file_problems, tree_files
from kafka_audit.store.sealed import Sealed, shown

REPAIR_OF_RAW = "its records cannot be had again, restore it from a copy"
REPAIR_OF_DECODED = "remove this decoded batch, it is decoded anew from raw/"

_REACHED = "reached.json"


def reached(history: Path) -> dict[int, int]:
    """The next offset to read of each partition, by the raw batches that are kept and those that were deleted."""
    found = {int(partition): end for partition, end in read_json(history / _REACHED).items()} if has_deleted(history) else {}
    for manifest in history.glob(f"raw/[!.]*/{MANIFEST}"):
        for each in read_json(manifest)["partitions"]:
            found[each["partition"]] = max(each["end"], found.get(each["partition"], 0))
    return found


def note_reached(history: Path) -> None:
    """Write down what ``reached`` returns, before batches are deleted."""
    write_json(history / _REACHED, {str(partition): end for partition, end in reached(history).items()})


def has_deleted(history: Path) -> bool:
    """Whether batches of this history were deleted."""
    return (history / _REACHED).is_file()


def expired_batches(history: Path, before: date, stays: Callable[[str, str], None]) -> list[str]:
    """Names of the batches whose newest record is older than the UTC day ``before``, oldest first.

    The newest batch is kept, because behaviour tables need one; so is the newest batch of the checkpoint, which Spark would read again.
    Old batches that are not decoded are kept, too, and passed to ``stays`` with the reason.
    """
    newest = {found.parent.name: _newest_us(found.parent) for found in history.glob(f"raw/[!.]*/{MANIFEST}")}
    old = [batch for batch, at in newest.items() if at < day_start_ms(before) * 1000 and at < max(newest.values())]
    kept = _at_checkpoint(history / "checkpoint")
    expired = []
    for batch in sorted(old, key=lambda batch: (newest[batch], batch)):
        if not (history / "decoded" / batch / MANIFEST).is_file():
            stays(batch, "it is not decoded; the next run of read_commits does that")
        elif batch != kept:
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


def _at_checkpoint(checkpoint: Path) -> str | None:
    """The batch that Spark planned last, and repeats if it was interrupted; None without a checkpoint."""
    planned = [int(path.name) for path in checkpoint.glob("offsets/[0-9]*") if path.name.isdigit()]
    if not planned:
        return None
    return f"{read_json(checkpoint / 'metadata')['id']}-{max(planned):08d}"


def file_hashes(batch: Path) -> dict[str, str]:
    """The sha256 of each file of a batch that is being written, by its path in the batch: the manifest's ``files``."""
    return {name: str(file["sha256"]) for name, file in tree_files(batch).items()}


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
