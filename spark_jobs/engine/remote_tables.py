"""Tables of an application whose executors are other processes, on other machines: they see no file of the driver and write none.

What has an address that executors can read (a file of an object store, or of a file system that is shared) they read there. All else the
driver sends to them, and a table is written by the driver alone, from Parquet that executors send back: no executor needs a right to write,
and a task that runs twice leaves nothing behind. Whatever an executor holds can be computed again when it is lost.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import lru_cache, partial, reduce
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlsplit

import pyarrow.parquet as pq
from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]  # it ships no types
from pyspark import Broadcast, StorageLevel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

from kafka_audit.store.layout import Snapshot
from kafka_audit.store.remote import url_of
from kafka_audit.submit import is_local, sees_files
from spark_jobs.engine.on_executors import ROWS_OF_A_GROUP, SentFile, decoded, encoded
from spark_jobs.engine.session import with_settings
from spark_jobs.engine.tables import SmallTables, Tables, parts_of, snapshot_id_of_file

SENT_BYTES = 8 << 20
"""Bytes of Parquet that one task reads, if they are sent. Of a larger file each pack gets some rows."""

_PIECES = "part int, data binary"
_Place: TypeAlias = tuple[Path, str | None]
"""A Parquet file and the id of the snapshot that its rows get, if they get one."""
_Pack: TypeAlias = tuple[Broadcast[list[SentFile]], int]
"""Files that were sent, and their bytes."""
_BYTES_OF_A_NUMBER = 16
"""What Spark takes a row of a range for."""


def tables_of(spark: SparkSession, *, small: bool = False) -> Tables:
    """How an application reads, keeps and writes its tables: by its Spark master, and by whether its cluster is small."""
    if small:
        return SmallTables(spark=spark)
    conf = dict(spark.sparkContext.getConf().getAll())
    if is_local(conf["spark.master"]):
        return Tables(spark=spark)
    return RemoteTables(spark=spark, address_of=_path_address if sees_files(conf) else partial(_store_address, spark))


def _path_address(path: Path) -> str:
    return path.resolve().as_uri()


def _store_address(spark: SparkSession, path: Path) -> str | None:
    """The URL of a sealed file of a root in an object store, where Spark has a file system for such URLs."""
    url = url_of(path)
    return url if url is not None and _has_file_system(spark, urlsplit(url).scheme) else None


@lru_cache(maxsize=8)
def _has_file_system(spark: SparkSession, scheme: str) -> bool:
    jvm: Any = spark._jvm
    try:
        jvm.org.apache.hadoop.fs.FileSystem.getFileSystemClass(scheme, spark.sparkContext._jsc.hadoopConfiguration())
    except Py4JJavaError:  # none is configured, or its jars are missing
        return False
    return True


@dataclass(frozen=True, kw_only=True)
class RemoteTables(Tables):
    """Tables that executors read at an address or from the driver, and that the driver writes.

    ``address_of``: where executors can read a file, as a URL of Hadoop; None where only the driver can.
    """

    address_of: Callable[[Path], str | None]
    _sent: dict[tuple[object, ...], list[_Pack]] = field(default_factory=dict)

    def settings(self) -> AbstractContextManager[None]:
        # Spark 4.2 would make one partition of the union of several that are one partition each: a single task would get all packs.
        return with_settings(self.spark, {"spark.sql.unionOutputPartitioning": "false"})

    def read(self, schema: StructType, files: Sequence[Path]) -> DataFrame:
        return self._read(schema, [(part, None) for part in parts_of(files)])

    def read_each(self, schema: StructType, dataset: str, snapshots: Sequence[Snapshot]) -> DataFrame:
        return self._read(schema, [(one.dataset(dataset), one.snapshot_id) for one in snapshots])

    def checkpoint(self, rows: DataFrame) -> DataFrame:
        # A local checkpoint is lost with its executor, and the application with it. A table that is kept is computed again.
        return self.keep(rows)

    def _write(self, rows: DataFrame, target: Path) -> None:
        schema = to_arrow_schema(rows.schema.toNullable(), timezone="UTC")
        pieces = rows.mapInArrow(partial(encoded, schema), _PIECES).persist(StorageLevel.DISK_ONLY)
        target.mkdir(parents=True)
        try:
            pieces.count()  # computes all partitions, as many at a time as there are cores; toLocalIterator takes one after the other
            written: dict[int, Path] = {}
            for part, data in pieces.toLocalIterator():
                path = written.setdefault(part, target / f"part-{len(written):05d}.parquet")
                with path.open("ab") as stream:
                    stream.write(data)
        finally:
            pieces.unpersist()
        if not written:
            pq.write_table(schema.empty_table(), target / "part-00000.parquet", compression="zstd", store_schema=False)

    def _read(self, schema: StructType, places: Sequence[_Place]) -> DataFrame:
        named = any(name is not None for _, name in places)
        addresses = {place: self.address_of(place[0]) for place in places}
        urls = [address for address in addresses.values() if address is not None]
        found = []
        if urls:
            rows = self.spark.read.schema(schema).parquet(*urls)
            found.append(rows.select("*", snapshot_id_of_file()) if named else rows)
        if len(urls) < len(places) or not places:
            wanted = StructType([*schema.toNullable(), *([StructField("snapshot_id", StringType())] if named else [])])
            sent = partial(decoded, to_arrow_schema(wanted, timezone="UTC"))
            packs = self._packs([place for place, address in addresses.items() if address is None])
            # One table for each pack, so that a task is sent its own pack only. Spark takes what is made of a range for as large as the
            # range: with a range of one row it would broadcast a table of any size in a join.
            ranges = [self.spark.range(0, 1 + size // _BYTES_OF_A_NUMBER, 1, 1) for _, size in packs]
            found += [each.mapInArrow(partial(sent, pack), wanted) for each, (pack, _) in zip(ranges, packs, strict=True)]
        return reduce(DataFrame.union, found)

    def _packs(self, places: Sequence[_Place]) -> list[_Pack]:
        """The files in broadcasts of about ``SENT_BYTES``, one at least. Files that were sent before are not sent again."""
        key = tuple((path, name, path.stat().st_mtime_ns) for path, name in places)
        if key not in self._sent:
            context = self.spark.sparkContext
            packed = _packed(file for place in places for file in _files(place))
            self._sent[key] = [(context.broadcast(pack), sum(len(data) for _, data, _ in pack)) for pack in packed]
        return self._sent[key]


def _files(place: _Place) -> Iterator[SentFile]:
    path, snapshot_id = place
    if path.stat().st_size <= SENT_BYTES:
        yield str(path), path.read_bytes(), snapshot_id
        return
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        for batch in file.iter_batches(ROWS_OF_A_GROUP):
            out = BytesIO()
            with pq.ParquetWriter(out, file.schema_arrow, compression="zstd") as writer:
                writer.write_batch(batch)
            yield str(path), out.getvalue(), snapshot_id


def _packed(files: Iterable[SentFile]) -> Iterator[list[SentFile]]:
    pack: list[SentFile] = []
    size = 0
    for file in files:
        if pack and size + len(file[1]) > SENT_BYTES:
            yield pack
            pack, size = [], 0
        pack.append(file)
        size += len(file[1])
    yield pack
