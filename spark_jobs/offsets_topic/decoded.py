"""Raw rows of the offsets topic -> three tables: offset commits, group records, and what could not be decoded."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.storagelevel import StorageLevel

from spark_jobs.offsets_topic import commits
from spark_jobs.offsets_topic.records import COMMIT_TYPES, GROUP_RECORDS, taken_apart


@dataclass(frozen=True, kw_only=True)
class Decoded:
    """Every raw row is in exactly one of the three.

    offset_commits: commits.COLUMNS. group_records: log_partition int, log_offset bigint, append_time timestamp, record_type smallint,
    record_name, version smallint, tombstone boolean, group_id, member_id, regular_expression, and a struct for each record name.
    undecoded: log_partition, log_offset, append_time, record_type, version, problem (why), key and value as they were.
    """

    offset_commits: DataFrame
    group_records: DataFrame
    undecoded: DataFrame


@contextmanager
def decoded(raw: DataFrame) -> Iterator[Decoded]:
    """Decode ``raw`` (partition int, offset bigint, timestamp, key binary, value binary) for as long as the block lasts.

    All but the regular commits are taken apart once and kept by Spark, on disk if need be, for the three tables to share.
    """
    others = raw.transform(commits.with_shape).where("not regular").transform(taken_apart).persist(StorageLevel.MEMORY_AND_DISK)
    try:
        sound, commit = F.col("problem").isNull(), F.col("record_type").isin(*COMMIT_TYPES)
        yield Decoded(
            offset_commits=raw.transform(commits.regular_commits).union(_irregular_commits(others.where(sound & commit))),
            group_records=others.where(sound & ~commit).select(
                *("log_partition", "log_offset", "append_time", "record_type", "record_name", "version", "tombstone"),
                *("group_id", "member_id", "regular_expression"),
                *(record.name for record in GROUP_RECORDS),
            ),
            undecoded=others.where(~sound).select(
                "log_partition", "log_offset", "append_time", "record_type", "version", "problem", "key", "value"
            ),
        )
    finally:
        others.unpersist()


def _irregular_commits(rows: DataFrame) -> DataFrame:
    value = {name: F.col(f"offset_commit.{name}") for name in ("committed", "leader_epoch", "metadata", "topic_id")}
    times = {f"{name}_time": F.expr(commits.time_of(f"offset_commit.{name}_ms")) for name in ("commit", "expire")}
    return rows.withColumns({**value, **times}).select(*commits.COLUMNS)
