"""Raw Parquet of the offsets topic -> three tables: offset commits, group records, and what could not be decoded."""

from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from spark_jobs.offsets_topic import commits
from spark_jobs.offsets_topic.decoding import Regular, decode_batch
from spark_jobs.offsets_topic.records import COMMIT_TYPES, GROUP_RECORDS, RECORDS
from spark_jobs.offsets_topic.tables import PLACE, UNDECODED, Table

TABLES = ("offset_commits", "group_records", UNDECODED)


def decode(spark: SparkSession, raw: Path, folder: Path) -> dict[str, int]:
    """Decode the parts of ``raw`` into the tables of ``folder``, each row into exactly one; returns the rows of each table.

    offset_commits: commits.SCHEMA. group_records: log_partition int, log_offset bigint, append_time timestamp, record_type smallint,
    record_name, version smallint, tombstone boolean, group_id, member_id, regular_expression, and a struct for each record name.
    undecoded: tables.write_tables.
    """
    return decode_batch(spark, raw, folder, _COMMITS, RECORDS, (_GROUP_RECORDS,))


def _irregular_commits(rows: DataFrame) -> DataFrame:
    def of(name: str) -> str:
        return f"coalesce(offset_commit.{name}, legacy_offset_commit.{name})"

    value = {name: F.expr(of(name)) for name in ("committed", "leader_epoch", "metadata", "topic_id")}
    times = {f"{name}_time": F.expr(commits.time_of(of(f"{name}_ms"))) for name in ("commit", "expire")}
    return rows.withColumns({**value, **times}).select(*commits.COLUMNS)


def _group_records(rows: DataFrame) -> DataFrame:
    fields = ("record_name", "version", "tombstone", "group_id", "member_id", "regular_expression")
    return rows.select(*PLACE, *fields, *(record.name for record in GROUP_RECORDS))


_IS_COMMIT = f"record_type in {COMMIT_TYPES}"
_COMMITS = Regular(
    table="offset_commits",
    schema=commits.SCHEMA,
    deltas=("log_offset", "append_time", "committed", "commit_time"),
    split=commits.regular_commits,
    rows=_IS_COMMIT,
    columns=_irregular_commits,
)
_GROUP_RECORDS = Table(name="group_records", rows=f"not {_IS_COMMIT}", columns=_group_records)
