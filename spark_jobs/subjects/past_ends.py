"""The log ends that earlier snapshots saw of the same topic: a recreated one has another id and starts a new log (KIP-516)."""

from functools import partial

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence
from spark_jobs.subjects.ages import ages_where, array_by_age, array_of, with_age

_ARRAYS = ("log_starts", "log_ends", "ends_at")


def past_ends(evidence: Evidence) -> DataFrame:
    """topic, partition, ``same`` (the ages at which the topic's id was its present one), and arrays by age of these ages only.

    ``log_starts`` and ``log_ends`` are offsets, ``ends_at`` the time they were read at in milliseconds since the epoch: array<bigint>.
    """
    rows = with_age(evidence, "offsets", "topic", "partition", "log_start", "log_end", "read_at").groupBy("topic", "partition")
    ends = rows.agg(
        array_by_age(evidence, "log_start").alias("log_starts"),
        array_by_age(evidence, "log_end").alias("log_ends"),
        array_by_age(evidence, "unix_millis(read_at)").alias("ends_at"),
    )
    known = ends.join(_same_topics(evidence), on="topic", how="left").withColumn("same", F.coalesce("same", F.lit(1).cast("bigint")))
    return known.withColumns({name: array_of(evidence, partial(_if_same, name)) for name in _ARRAYS})


def _if_same(name: str, age: int) -> str:
    return f"if((same & {1 << age}L) <> 0, {name}[{age}], null)"


def _same_topics(evidence: Evidence) -> DataFrame:
    """topic and ``same``; of a topic whose id is not known, nothing that is older is taken for the same."""
    now = evidence.table("topics").select("topic", "topic_id")
    then = with_age(evidence, "topics", "topic", "topic_id").join(now, on=["topic", "topic_id"], how="inner")
    return then.groupBy("topic").agg(ages_where("true").alias("same"))
