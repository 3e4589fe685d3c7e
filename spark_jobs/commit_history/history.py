"""The history folder of one topic: raw batches, decoded batches, and Spark's checkpoint.

    source.json                             which cluster and topic this is
    reached.json                            how far deleted batches reached (kafka_audit.store.commit_batches)
    checkpoint/                             Spark's
    raw/<batch>/records.parquet, completeness.parquet, manifest.json
    decoded/<batch>/<table>.parquet, manifest.json

A batch is written under a hidden name and renamed when it is complete and durable. It is never changed after that.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.store.commit_batches import REPAIR_OF_RAW, file_hashes, reached, verify_batch
from kafka_audit.store.durable_files import make_folder, read_json, replaced_folder, write_json
from kafka_audit.store.locks import history_held
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.sweep import sweep_folder
from spark_jobs.commit_history.decode.batch import OFFSETS, Topic, decode_batch
from spark_jobs.commit_history.read.checkpoint import BEGIN_ANEW, Checkpoint, Offsets
from spark_jobs.commit_history.read.raw_writer import LOST_ITS_END, PartitionCoverage, coverage, totals, write_raw
from spark_jobs.commit_history.read.source import Bounds

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

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(path=self.path / "checkpoint", topic=self.topic.name)

    def raw_batches(self) -> list[str]:
        """Names of the complete raw batches, sorted."""
        return sorted(found.parent.name for found in self.path.glob(f"raw/[!.]*/{MANIFEST}"))

    def raw_manifest(self, batch: str) -> dict[str, Any]:
        return read_json(self.path / "raw" / batch / MANIFEST)

    def next_offsets(self, bounds: Bounds) -> Offsets:
        """Where a query without a checkpoint starts: after the last offset that was read, or at the log start."""
        kept = reached(self.path)
        return {partition: kept.get(partition, start) for partition, start in bounds.log_start.items()}

    def check_source(self, bounds: Bounds) -> None:
        """Write source.json at the first run; IntegrityError when this is the history of another topic, or the
        topic now ends before an offset that was read.
        """
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
            raise IntegrityError(f"{self.path}: partitions {sorted(ahead)} end before offsets that were already read: {LOST_ITS_END}")

    def land(self, rows: DataFrame, number: int, log_start: Mapping[int, int]) -> None:
        """Write one batch of the stream, unchanged, with the counts of missing offsets; nothing if an earlier run wrote it.

        The earlier copy is kept because the broker may have compacted records since. IntegrityError when the checkpoint plans offsets
        that do not follow on the kept batches.
        """
        batch = f"{self.checkpoint.query_id}-{number:08d}"
        target = self.path / "raw" / batch
        start, end = self.checkpoint.range_of(number)
        self._check_planned(batch, start, end)
        if (target / MANIFEST).is_file():
            return
        with replaced_folder(target) as folder:
            expected = sum(max(0, end[partition] - start[partition]) for partition in end)
            read = write_raw(rows.coalesce(1 + expected // _ROWS_OF_A_PART), folder / "records.parquet")
            for partition, found in read.items():
                within = start[partition] <= found.first and found.last < end[partition]
                if not within or found.count > end[partition] - start[partition]:
                    raise IntegrityError(f"{batch}: partition {partition} has records outside of its range; the batch was not kept")
            _seal_raw(folder, batch, coverage(start, end, log_start, {partition: found.count for partition, found in read.items()}))

    def _check_planned(self, batch: str, start: Offsets, end: Offsets) -> None:
        """IntegrityError when a kept batch is planned with other offsets, or a new one does not start where the kept ones end."""
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
        """Decode one raw batch, unless that was done.

        IntegrityError when the raw batch differs from its manifest, or the tables do not hold each of its rows once.
        """
        raw, target = self.path / "raw" / batch, self.path / "decoded" / batch
        if (target / MANIFEST).is_file():
            return
        verify_batch(raw, REPAIR_OF_RAW)
        with replaced_folder(target) as folder:
            rows = decode_batch(spark, self.topic, raw / "records.parquet", folder)
            expected = self.raw_manifest(batch)["totals"]["rows"]
            if sum(rows.values()) != expected:
                raise IntegrityError(f"{batch}: {rows} do not add up to the {expected} raw records; report this with the raw batch")
            write_json(folder / MANIFEST, {"batch": batch, "rows": rows, "files": file_hashes(folder)})


def _seal_raw(folder: Path, batch: str, partitions: list[PartitionCoverage]) -> None:
    rows = [asdict(each) for each in partitions]
    pq.write_table(pa.Table.from_pylist(rows, schema=_COVERAGE), folder / "completeness.parquet", compression="zstd")
    write_json(folder / MANIFEST, {"batch": batch, "partitions": rows, "totals": totals(partitions), "files": file_hashes(folder)})
