"""The folder of one topic's history: raw batches, decoded batches, and the checkpoint of the reading.

    source.json                             which cluster and topic this is
    reached.json                            how far deleted batches reached (kafka_audit.commit_batches)
    checkpoint/                             Spark's
    raw/<batch>/records.parquet, completeness.parquet, manifest.json
    decoded/<batch>/<table>.parquet, manifest.json

A batch is written under another name and renamed when it is whole and durable, so one that is there is whole; it is never written again.
"""

import fcntl
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from kafka_audit.batch_files import REPAIR_OF_RAW, file_hashes, verify_batch
from kafka_audit.commit_batches import reached
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.store.durable_files import lock_file, make_folder, read_json, replaced_folder, write_json
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.sweep import sweep_folder
from spark_jobs.offsets_topic.checkpoint import BEGIN_ANEW, Checkpoint, Offsets
from spark_jobs.offsets_topic.completeness import LOST_ITS_END, PartitionCoverage, coverage, totals
from spark_jobs.offsets_topic.landing import land
from spark_jobs.offsets_topic.source import Bounds
from spark_jobs.offsets_topic.topic import OFFSETS, Topic

_ROWS_OF_A_PART = 500_000
_COVERAGE = pa.schema(
    [("partition", pa.int32()), *((name, pa.int64()) for name in ("start", "end", "log_start", "rows", "lost", "skipped"))]
)


@dataclass(frozen=True, kw_only=True)
class History:
    """The history folder of one topic of one cluster."""

    path: Path
    topic: Topic = OFFSETS

    @contextmanager
    def claimed(self) -> Iterator[None]:
        """Hold the folder for the block, and remove what a killed run left half-written; ConfigurationError when another run has it."""
        make_folder(self.path)
        with lock_file(self.path / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ConfigurationError(f"another run reads into {self.path}: wait until it ends") from None
            for leftover in [*self.path.glob("raw/.*"), *self.path.glob("decoded/.*")]:
                shutil.rmtree(leftover)
            for place in (self.path, self.path / "behaviour"):
                sweep_folder(place)
            yield

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(path=self.path / "checkpoint", topic=self.topic.name)

    def raw_batches(self) -> list[str]:
        """Names of the whole raw batches, sorted."""
        return sorted(found.parent.name for found in self.path.glob(f"raw/[!.]*/{MANIFEST}"))

    def raw_manifest(self, batch: str) -> dict[str, Any]:
        return read_json(self.path / "raw" / batch / MANIFEST)

    def next_offsets(self, bounds: Bounds) -> Offsets:
        """Where a reading without a checkpoint begins: after what was read, else at the log start."""
        kept = reached(self.path)
        return {partition: kept.get(partition, start) for partition, start in bounds.log_start.items()}

    def check_source(self, bounds: Bounds) -> None:
        """Write source.json at the first run; IntegrityError when this history is of another topic, or of one that lost its end."""
        source = {"cluster_id": bounds.cluster_id, "topic_id": bounds.topic_id}
        file = self.path / "source.json"
        if not file.is_file():
            write_json(file, source)
        elif read_json(file) != source:
            raise IntegrityError(
                f"{self.path} holds the history of {read_json(file)}, but the brokers answer as {source}: use another folder"
            )
        read_to = [*reached(self.path).items(), *(self.checkpoint.last() or {}).items()]
        ahead = {p for p, end in read_to if p not in bounds.log_end or end > bounds.log_end[p]}
        if ahead:
            raise IntegrityError(f"{self.path}: partitions {sorted(ahead)} were read further than they reach: {LOST_ITS_END}")

    def land(self, rows: DataFrame, number: int, log_start: Mapping[int, int]) -> None:
        """Write one batch of the stream as it came, with how complete it is; nothing if an earlier run has written it.

        That earlier copy is the better one: the broker may have compacted records away since. IntegrityError when the checkpoint plans
        other offsets than those that follow on what is kept.
        """
        batch = f"{self.checkpoint.query_id}-{number:08d}"
        target = self.path / "raw" / batch
        start, end = self.checkpoint.range_of(number)
        self._check_planned(batch, start, end)
        if (target / MANIFEST).is_file():
            return
        with replaced_folder(target) as folder:
            expected = sum(max(0, end[partition] - start[partition]) for partition in end)
            read = land(rows.coalesce(1 + expected // _ROWS_OF_A_PART), folder / "records.parquet")
            for partition, found in read.items():
                within = start[partition] <= found.first and found.last < end[partition]
                if not within or found.count > end[partition] - start[partition]:
                    raise IntegrityError(f"{batch}: partition {partition} has records outside of its range; the batch was not kept")
            _seal_raw(folder, batch, coverage(start, end, log_start, {partition: found.count for partition, found in read.items()}))

    def _check_planned(self, batch: str, start: Offsets, end: Offsets) -> None:
        """IntegrityError when a batch that is kept is planned with another range, or a new one does not begin where the kept ones end."""
        if (self.path / "raw" / batch / MANIFEST).is_file():
            kept = {(each["partition"], each["start"], each["end"]) for each in self.raw_manifest(batch)["partitions"]}
            planned = {(partition, start[partition], last) for partition, last in end.items() if last != start[partition]}
            apart = {partition for partition, *_ in kept ^ planned}
        else:
            apart = {partition for partition, at in reached(self.path).items() if start.get(partition) != at}
        if apart:
            raise IntegrityError(
                f"{batch}: of partitions {sorted(apart)} the checkpoint plans other offsets than follow on what is kept: it was restored, "
                f"or lost its newest files; {BEGIN_ANEW}"
            )

    def decode(self, spark: SparkSession, batch: str) -> None:
        """Decode one raw batch; nothing if it is there.

        IntegrityError when the raw batch is not what its manifest says, or the tables do not have every row of it.
        """
        raw, target = self.path / "raw" / batch, self.path / "decoded" / batch
        if (target / MANIFEST).is_file():
            return
        verify_batch(raw, REPAIR_OF_RAW)
        with replaced_folder(target) as folder:
            rows = self.topic.decode(spark, raw / "records.parquet", folder)
            expected = self.raw_manifest(batch)["totals"]["rows"]
            if sum(rows.values()) != expected:
                raise IntegrityError(f"{batch}: {rows} do not add up to the {expected} raw records; report this with the raw batch")
            write_json(folder / MANIFEST, {"batch": batch, "rows": rows, "files": file_hashes(folder)})


def _seal_raw(folder: Path, batch: str, partitions: list[PartitionCoverage]) -> None:
    rows = [asdict(each) for each in partitions]
    pq.write_table(pa.Table.from_pylist(rows, schema=_COVERAGE), folder / "completeness.parquet", compression="zstd")
    write_json(folder / MANIFEST, {"batch": batch, "partitions": rows, "totals": totals(partitions), "files": file_hashes(folder)})
