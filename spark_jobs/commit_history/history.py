"""The history folder of one topic: raw batches and decoded batches.

    source.json                             which cluster and topic this is
    raw/<batch>/records.parquet, completeness.parquet, manifest.json
    decoded/<batch>/<table>.parquet, manifest.json

A batch is written under a hidden name and renamed when it is complete and durable. It is never changed after that. In a store it is
there as soon as its manifest is: the store decides which of two runs makes the batch of a number, and the other one goes on after it.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.store.commit_batches import (
    REPAIR_OF_RAW,
    batches_in,
    kept_source,
    next_name,
    published_folder,
    raw_manifest,
    reached,
    verify_batch,
)
from kafka_audit.store.durable_files import make_folder, write_json
from kafka_audit.store.locks import history_held
from kafka_audit.store.manifest import MANIFEST, tree_files
from kafka_audit.store.mirrors import where
from kafka_audit.store.sweep import sweep_folder
from spark_jobs.commit_history.decode.batch import OFFSETS, Topic, decode_batch
from spark_jobs.commit_history.read.raw_writer import LOST_ITS_END, coverage, totals, write_raw
from spark_jobs.commit_history.read.source import Bounds

Offsets = dict[int, int]

_ROWS_OF_A_PART = 500_000
_COVERAGE = pa.schema(
    [("partition", pa.int32()), *((name, pa.int64()) for name in ("start", "end", "log_start", "rows", "lost", "skipped"))]
)


@dataclass(frozen=True, kw_only=True)
class Planned:
    """The next batch: its name, and from which offset of each partition up to which it reads."""

    batch: str
    start: Offsets
    end: Offsets

    @property
    def offsets(self) -> int:
        """How many offsets it reads."""
        return sum(end - self.start[partition] for partition, end in self.end.items())


@dataclass(frozen=True, kw_only=True)
class History:
    """The history folder of one topic of one cluster."""

    path: Path
    topic: Topic = OFFSETS

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Lock the folder for the block and remove incomplete batches of killed runs; ConfigurationError when another run has the lock."""
        make_folder(self.path)
        with history_held(self.path, 0) as is_held:
            if not is_held:
                raise ConfigurationError(f"another run reads into {self.path}: wait until it ends")
            for leftover in [*self.path.glob("raw/.*"), *self.path.glob("decoded/.*")]:
                shutil.rmtree(leftover)
            for place in (self.path, self.path / "behaviour"):
                sweep_folder(place)
            yield

    def raw_batches(self) -> list[str]:
        """Names of the complete raw batches, sorted."""
        return batches_in(self.path / "raw")

    def raw_manifest(self, batch: str) -> dict[str, Any]:
        return raw_manifest(self.path, batch)

    def next_batch(self, bounds: Bounds, most: int) -> Planned | None:
        """What follows on the newest batch, up to what open transactions do not hold back; None when nothing is new.

        A partition that was never read begins at its log start. Of more than ``most`` offsets each partition gives the same share.
        """
        kept = reached(self.path)
        start = {partition: kept.get(partition, first) for partition, first in bounds.log_start.items()}
        left = {partition: max(0, bounds.last_stable[partition] - at) for partition, at in start.items()}
        total = sum(left.values())
        if not total:
            return None
        share = {partition: min(new, max(1, new * most // total)) for partition, new in left.items()}
        return Planned(batch=next_name(self.path), start=start, end={partition: at + share[partition] for partition, at in start.items()})

    def check_source(self, bounds: Bounds) -> None:
        """Write source.json at the first run; IntegrityError when this is the history of another topic, or the
        topic now ends before an offset that was read.
        """
        source = {"cluster_id": bounds.cluster_id, "topic_id": bounds.topic_id}
        if (kept := kept_source(self.path, source)) != source:
            raise IntegrityError(f"{where(self.path)} holds the history of {kept}, but the brokers answer as {source}: use another folder")
        ahead = {p for p, end in reached(self.path).items() if p not in bounds.log_end or end > bounds.log_end[p]}
        if ahead:
            raise IntegrityError(
                f"{where(self.path)}: partitions {sorted(ahead)} end before offsets that were already read: {LOST_ITS_END}"
            )

    def land(self, rows: DataFrame, planned: Planned, log_start: Mapping[int, int], read_at: datetime) -> None:
        """Write one batch of records, unchanged, with the counts of missing offsets. ``read_at``: when the run began, in UTC.

        IntegrityError when there are records outside of what was planned.
        """
        batch, start, end = planned.batch, planned.start, planned.end
        with published_folder(self.path / "raw" / batch) as folder:
            read = write_raw(rows.coalesce(1 + planned.offsets // _ROWS_OF_A_PART), folder / "records.parquet")
            for partition, (count, first, last) in read.items():
                if not start[partition] <= first <= last < end[partition] or count > end[partition] - start[partition]:
                    raise IntegrityError(f"{batch}: partition {partition} has records outside of its range; the batch was not kept")
            partitions = coverage(start, end, log_start, {partition: count for partition, (count, *_) in read.items()})
            pq.write_table(pa.Table.from_pylist(partitions, schema=_COVERAGE), folder / "completeness.parquet", compression="zstd")
            about = {"batch": batch, "partitions": partitions, "totals": totals(partitions)}
            upto = {str(partition): offset for partition, offset in sorted(end.items())}
            write_json(folder / MANIFEST, {**about, "reached": upto, "read_at": read_at.isoformat(), "files": tree_files(folder)})

    def decode(self, spark: SparkSession) -> None:
        """Decode the raw batches of which that was not done.

        IntegrityError when a raw batch differs from its manifest, or the tables do not hold each of its rows once.
        """
        done = {*batches_in(self.path / "decoded")}
        for batch in self.raw_batches():
            if batch not in done:
                self._decode(spark, batch)

    def _decode(self, spark: SparkSession, batch: str) -> None:
        raw = self.path / "raw" / batch
        verify_batch(raw, REPAIR_OF_RAW)
        with published_folder(self.path / "decoded" / batch) as folder:
            rows = decode_batch(spark, self.topic, raw / "records.parquet", folder)
            expected = self.raw_manifest(batch)["totals"]["rows"]
            if sum(rows.values()) != expected:
                raise IntegrityError(f"{batch}: {rows} do not add up to the {expected} raw records; report this with the raw batch")
            write_json(folder / MANIFEST, {"batch": batch, "rows": rows, "files": tree_files(folder)})
