"""The batches of a commit history as files: how far they reach, which may be deleted, and the lock that a run holds while it reads."""

import fcntl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import pyarrow.parquet as pq

from kafka_audit.store.durable_files import lock_file, read_json, write_json
from kafka_audit.store.lag_days import day_start_ms
from kafka_audit.store.manifest import MANIFEST

_PATIENCE_SECONDS = 900.0
"""A run of ``read_commits`` takes less, and starts every 15 minutes: also at the moment at which expired batches are looked for."""

_REACHED = "reached.json"


@contextmanager
def held(history: Path) -> Iterator[bool]:
    """Hold the history for the block, so that no run reads into it; False when runs have had it for a quarter of an hour."""
    until = time.monotonic() + _PATIENCE_SECONDS
    with lock_file(history / ".lock").open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < until:
                    time.sleep(0.5)
                    continue
                yield False
                return
            break
        yield True


def reached(history: Path) -> dict[int, int]:
    """Up to which offset each partition was read, by the raw batches that are kept and those that were deleted."""
    found = {int(partition): end for partition, end in read_json(history / _REACHED).items()} if has_deleted(history) else {}
    for manifest in history.glob(f"raw/[!.]*/{MANIFEST}"):
        for each in read_json(manifest)["partitions"]:
            found[each["partition"]] = max(each["end"], found.get(each["partition"], 0))
    return found


def note_reached(history: Path) -> None:
    """Before batches are deleted: ``reached`` knows from then on what their manifests say."""
    write_json(history / _REACHED, {str(partition): end for partition, end in reached(history).items()})


def has_deleted(history: Path) -> bool:
    """Whether batches of this history were deleted."""
    return (history / _REACHED).is_file()


def expired_batches(history: Path, before: date, stays: Callable[[str, str], None]) -> list[str]:
    """Names of the batches whose newest record is older than the UTC day ``before``, oldest first.

    The newest batch stays, because behaviour tables are made from one at least; so does the one that the checkpoint is at, which Spark
    would read again; and ``stays`` is told of each old one that is not decoded.
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
    """The batch that Spark planned last, which it does again if it was interrupted; None without a checkpoint."""
    planned = [int(path.name) for path in checkpoint.glob("offsets/[0-9]*") if path.name.isdigit()]
    if not planned:
        return None
    return f"{read_json(checkpoint / 'metadata')['id']}-{max(planned):08d}"
