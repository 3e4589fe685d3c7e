"""How the tables of one application are read, kept and written: one way for large clusters, one for small ones.

That of large clusters is for executors that are threads of the driver; spark_jobs.engine.remote_tables is for all others.

Of a large cluster Spark reads Parquet in parallel, and a table that several queries read is a cached plan. Of a small one a query costs
what planning it costs: every table is one partition of rows that the driver holds, and a table that several queries read is computed
once, so that no plan is analysed twice. Both give the same rows.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from kafka_audit.errors import IntegrityError
from kafka_audit.store.layout import Snapshot
from spark_jobs.engine.session import with_settings
from spark_jobs.engine.small_plans import PLANNING

SMALL_ROWS = 50_000
SMALL_BYTES = 32 << 20
"""Up to so many rows and bytes of evidence, all snapshots and the lag history together, a cluster is small."""

_UTC = pa.timestamp("us", tz="UTC")


@dataclass(frozen=True, kw_only=True)
class Tables:
    """Reads, keeps and writes the tables of one application, whose executors see the driver's files.

    Nothing that grows with the cluster passes through the driver.
    """

    spark: SparkSession

    def settings(self) -> AbstractContextManager[None]:
        """The session's settings of Spark SQL for as long as these tables are used."""
        return nullcontext()

    def read(self, schema: StructType, files: Sequence[Path]) -> DataFrame:
        """The columns of ``schema`` from Parquet files, or folders of them; a column that a file does not have is NULL."""
        return self.spark.read.schema(schema).parquet(*map(str, files))

    def read_whole(self, *files: Path) -> DataFrame:
        """All columns of the first of these Parquet files, or folders of them, from all. Spark would start a job to find them."""
        return self.read(schema_of_file(next(iter(parts_of(files)), files[0])), files)

    def read_each(self, schema: StructType, dataset: str, snapshots: Sequence[Snapshot]) -> DataFrame:
        """The columns of ``schema`` from a dataset of each snapshot, all of which have it, and ``snapshot_id`` string."""
        return self.read(schema, [one.dataset(dataset) for one in snapshots]).select("*", snapshot_id_of_file())

    def keep(self, rows: DataFrame) -> DataFrame:
        """A long table that several queries read, computed once."""
        return rows.persist()

    def checkpoint(self, rows: DataFrame) -> DataFrame:
        """A table that several queries read and that fits in memory, computed once and without a plan below it."""
        return rows.localCheckpoint(eager=False)

    def shorten(self, rows: DataFrame) -> DataFrame:
        """The same rows; computed now where planning them again would cost more than keeping them."""
        return rows

    def write(self, rows: DataFrame, target: Path, order: Sequence[str] = (), parts: int = 1) -> None:
        """Write a folder of Parquet parts whose names are the same in every run: in this order, or without one as the rows lie.

        ``parts``: of how many ranges of the order a large table is made; a small one is always one.
        """
        if order:
            rows = (rows.repartitionByRange(parts, *order) if parts > 1 else rows.repartition(1)).sortWithinPartitions(*order)
        self._write(rows, target)

    def _write(self, rows: DataFrame, target: Path) -> None:
        write_parquet(rows, target)


class SmallTables(Tables):
    """Of a small cluster every table is one partition of rows in the driver."""

    def settings(self) -> AbstractContextManager[None]:
        return with_settings(self.spark, PLANNING)

    def read(self, schema: StructType, files: Sequence[Path]) -> DataFrame:
        return self._of(_read(schema, files))

    def read_each(self, schema: StructType, dataset: str, snapshots: Sequence[Snapshot]) -> DataFrame:
        parts = []
        for one in snapshots:
            part = _read(schema, [one.dataset(dataset)])
            parts.append(part.append_column("snapshot_id", pa.repeat(one.snapshot_id, part.num_rows)))
        return self._of(pa.concat_tables(parts))

    def keep(self, rows: DataFrame) -> DataFrame:
        return self._of(rows.toArrow())

    checkpoint = shorten = keep

    def write(self, rows: DataFrame, target: Path, order: Sequence[str] = (), parts: int = 1) -> None:
        found = (rows.coalesce(1).sortWithinPartitions(*order) if order else rows).toArrow()
        target.mkdir(parents=True)
        nullable = to_arrow_schema(rows.schema.toNullable(), timezone="UTC")  # as Spark reads every column
        pq.write_table(found.cast(nullable), target / "part-00000.parquet", compression="zstd", store_schema=False)

    def _of(self, rows: pa.Table) -> DataFrame:
        # Combined, because Spark 4.2.0 takes a table whose first chunk is empty for empty. One partition that Spark knows to be the only
        # one, so that joins and groups need no exchange.
        return self.spark.createDataFrame(rows.combine_chunks()).coalesce(1)


def write_parquet(rows: DataFrame, target: Path) -> None:
    """Write a folder with nothing but Parquet parts whose names are the same in every run. Executors write it."""
    rows.write.parquet(str(target))
    for leftover in [*target.glob(".*.crc"), *target.glob("_*")]:
        leftover.unlink()
    for index, part in enumerate(sorted(target.glob("part-*.parquet"))):
        part.rename(target / f"part-{index:05d}.parquet")


def write_one_file(tables: Tables, rows: DataFrame, order: Sequence[str], target: Path) -> None:
    """Write one Parquet file in the order of these columns."""
    folder = target.with_suffix(".parts")
    tables.write(rows, folder, order)
    (folder / "part-00000.parquet").rename(target)
    folder.rmdir()


def table_of(spark: SparkSession, rows: Iterable[tuple[Any, ...]], ddl: str) -> DataFrame:
    """A few rows as a table of one partition. Unlike createDataFrame of a list it starts no Python worker."""
    schema = to_arrow_schema(schema_of(ddl), timezone="UTC")
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema)).coalesce(1)


def snapshot_id_of_file() -> Column:
    """``snapshot_id`` of rows that were read from datasets: the name of the folder of their file."""
    return F.element_at(F.split("_metadata.file_path", "/"), -2).alias("snapshot_id")


def constant(value: object, kind: str) -> Column:
    """A nested constant of a Spark SQL type. It reaches Spark as one literal of JSON: no text in it is ever parsed as SQL."""
    return F.from_json(F.lit(json.dumps(value)), kind, {"mode": "FAILFAST"})


def rows_of(spark: SparkSession, rows: Sequence[Mapping[str, object]], fields: str) -> DataFrame:
    """A few rows with nested columns as a table; ``fields`` as in ``struct<...>``. A column that a row does not have is NULL."""
    return spark.range(1).select(F.inline(constant(rows, f"array<struct<{fields}>>")))


def selected(rows: DataFrame, ddl: str) -> DataFrame:
    """The columns that ``ddl`` lists, with its types; one that ``rows`` does not have is NULL."""
    values = {field.name: F.col(field.name) if field.name in rows.columns else F.lit(None) for field in schema_of(ddl)}
    return rows.select(*[values[field.name].cast(field.dataType).alias(field.name) for field in schema_of(ddl)])


def schema_of(ddl: str) -> StructType:
    """Columns in Spark's words, such as ``topic string, partition int``, as a schema."""
    schema = StructType.fromDDL(ddl)
    if not isinstance(schema, StructType):
        raise TypeError(f"{ddl} is not a list of columns")
    return schema


def schema_of_file(path: Path) -> StructType:
    """The columns of a Parquet file of evidence; IntegrityError when it is none. Times are UTC, also where Spark wrote them as INT96."""
    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException) as problem:
        raise unreadable(path, problem) from problem
    return from_arrow_schema(pa.schema([one.with_type(_UTC) if pa.types.is_timestamp(one.type) else one for one in schema]))


def unreadable(path: Path, problem: object) -> IntegrityError:
    """The error that a file of evidence is no Parquet file, or has not the columns that it should have."""
    return IntegrityError(f"{path}: cannot be read as Parquet ({problem}); restore the snapshot from a copy or take a new one")


def at_most(rows: int, files: Iterable[Path], *, size: int = SMALL_BYTES) -> bool:
    """Whether Parquet files hold so few rows, and so few bytes when read. Reads no further file once they are seen to hold more.

    Bytes count because ids are free text of up to 32 KB, which Parquet stores once and every finding repeats.
    """
    rows_found = size_found = 0
    for file in files:
        try:
            rows_found += pq.read_metadata(file).num_rows
            if rows_found > rows:
                return False
            size_found += pq.ParquetFile(file).read().nbytes
        except (OSError, pa.ArrowException):
            continue  # whoever needs the file says what is wrong with it
        if size_found > size:
            return False
    return True


def parts_of(files: Sequence[Path]) -> list[Path]:
    """The Parquet files among these, and in the folders among these, in order."""
    return [part for file in files for part in (sorted(file.glob("[!.]*.parquet")) if file.is_dir() else [file])]


def _read(schema: StructType, files: Sequence[Path]) -> pa.Table:
    wanted = to_arrow_schema(schema, timezone="UTC")
    tables = []
    for part in parts_of(files):
        try:
            file = pq.ParquetFile(part, coerce_int96_timestamp_unit="us")  # INT96 is how Spark writes times, in microseconds
            found = file.read(columns=[name for name in wanted.names if name in file.schema_arrow.names])
            arrays = [
                found[field.name].cast(field.type) if field.name in found.column_names else pa.nulls(found.num_rows, field.type)
                for field in wanted
            ]
        except (OSError, pa.ArrowException) as problem:
            raise unreadable(part, problem) from problem
        tables.append(pa.Table.from_arrays(arrays, schema=wanted))
    return pa.concat_tables(tables) if tables else wanted.empty_table()
