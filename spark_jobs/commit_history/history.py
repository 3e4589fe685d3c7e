"""The history folder of one topic: raw batches, decoded batches, and Spark's checkpoint.

    source.json                             which cluster and topic this is
    reached.json                            how far deleted batches reached (kafka_audit.store.commit_batches)
    checkpoint/                             Spark's
    raw/<batch>/records.parquet, completeness.parquet, manifest.json
    decoded/<batch>/<table>.parquet, manifest.json

A batch is written under a hidden name and renamed when it is complete and durable. It is never changed after that.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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
from spark_jobs.commit_history.read.raw_writer import LOST_ITS_END, coverage, totals, write_raw
from spark_jobs.commit_history.read.source import Bounds

Offsets = dict[int, int]

BEGIN_ANEW = "move the checkpoint folder away and run again: reading then goes on after what is kept"
_ROWS_OF_A_PART = 500_000
_COVERAGE = pa.schema(
    [("partition", pa.int32()), *((name, pa.int64()) for name in ("start", "end", "log_start", "rows", "lost", "skipped"))]
)


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """The checkpoint folder of the one query that reads ``topic``: the range of each batch, which Spark writes before the batch runs.

    Format: a version line, then JSON lines, of Spark 4.2's offset log and of the Kafka source's initial offsets.
    """

    path: Path
    topic: str

    @property
    def query_id(self) -> str:
        """Spark's id of the query, the same after every restart; a new checkpoint has a new one."""
        return str(json.loads((self.path / "metadata").read_text(encoding="utf-8"))["id"])

    def range_of(self, batch: int) -> tuple[Offsets, Offsets]:
        """The offsets from which and up to which a batch reads; IntegrityError when the checkpoint does not hold them."""
        start = self._offsets("offsets", str(batch - 1)) if batch else self._offsets("sources", "0", "0")
        end = self._offsets("offsets", str(batch))
        return {partition: start.get(partition, 0) for partition in end}, end

    def last(self) -> Offsets | None:
        """Up to where the newest planned batch reads; None before the first."""
        planned = [int(path.name) for path in (self.path / "offsets").glob("[0-9]*") if path.name.isdigit()]
        return self._offsets("offsets", str(max(planned))) if planned else None

    def _offsets(self, *parts: str) -> Offsets:
        path = self.path.joinpath(*parts)
        try:
            text = path.read_bytes().lstrip(b"\0").decode().strip()  # the source writes a zero byte first
            found = json.loads(text.splitlines()[-1])[self.topic]
            return {int(partition): int(offset) for partition, offset in found.items()}
        except (OSError, ValueError, KeyError, IndexError, TypeError, AttributeError) as problem:
            raise IntegrityError(f"{path}: holds no offsets of {self.topic} ({problem!r}); {BEGIN_ANEW}") from problem


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
            for partition, (count, first, last) in read.items():
                if not start[partition] <= first <= last < end[partition] or count > end[partition] - start[partition]:
                    raise IntegrityError(f"{batch}: partition {partition} has records outside of its range; the batch was not kept")
            partitions = coverage(start, end, log_start, {partition: count for partition, (count, *_) in read.items()})
            pq.write_table(pa.Table.from_pylist(partitions, schema=_COVERAGE), folder / "completeness.parquet", compression="zstd")
            about = {"batch": batch, "partitions": partitions, "totals": totals(partitions)}
            write_json(folder / MANIFEST, {**about, "files": file_hashes(folder)})

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
