"""How fast the partitions of compacted topics grow in a day: what is compacted grows with its keys, not with what is written."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.store.samples import DAY_MS
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows.broker.configs import value_of, whole_number
from spark_jobs.rows.broker.inherited import topic_config
from spark_jobs.rows.topic.partition import largest_replicas

_KEYS = ["topic", "partition"]
_DAY_MS = DAY_MS - 3_600_000  # a day, less what a daily schedule may jitter
_SEGMENTS = 10
"""Smaller partitions are not compared: the newest segment is never compacted, and the cleaner waits until much of a log is new."""


def with_compacted_growth(topics: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds compacted_growth, grown_partition, grown_to_bytes and grown_from_bytes (kafka_audit.catalogue.rows)."""
    configs = topic_config(evidence)
    compacted = configs.where(F.contains(value_of("cleanup.policy"), F.lit("compact")))
    limits = compacted.select("topic", F.coalesce(whole_number("segment.bytes") * _SEGMENTS, F.lit(0)).alias("least"))
    large = largest_replicas(evidence, *_KEYS).join(limits, on="topic", how="inner").where(F.col("size_bytes") > F.col("least"))
    rows = _with_size_then(large, evidence)
    more = (F.col("size_bytes") - F.col("size_then")) / F.when(F.col("size_then") > 0, F.col("size_then"))
    growth = F.lit(1.0) + more * F.col("days_share")
    most = F.max(F.when(growth.isNotNull(), F.struct(growth.alias("growth"), "partition", "size_bytes", "size_then")))
    found = rows.groupBy("topic").agg(F.count_if(growth.isNull()).alias("untold"), most.alias("most"))
    # What one partition lacks stops a pass, and not a failure: the growth of those that are known is shown.
    return topics.join(found, on="topic", how="left").withColumns(
        {
            "compacted_growth": F.when(F.col("untold").isNull(), F.lit(0.0)).otherwise(F.col("most.growth")),
            "grown_partition": F.col("most.partition"),
            "grown_to_bytes": F.col("most.size_bytes"),
            "grown_from_bytes": F.col("most.size_then"),
            "uncompared_partitions": F.coalesce("untold", F.lit(0)).cast("int"),
        }
    )


def _with_size_then(partitions: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds size_then, and days_share, the part that a day is of the time since then.

    From the newest earlier snapshot that is a day older; NULL where it does not show the same topic id.
    """
    old = (one for one in reversed(evidence.history.snapshots) if one.taken_ms <= evidence.taken_ms - _DAY_MS)
    then = next(old, None)
    if then is None:
        return partitions.withColumns({"size_then": F.lit(None).cast("bigint"), "days_share": F.lit(None).cast("double")})
    share = min(1.0, DAY_MS / (evidence.taken_ms - then.taken_ms))
    topics, replicas = (evidence.tables.read_whole(then.dataset(name)) for name in ("topics", "replica_sizes"))
    now = evidence.table("topics").select("topic", "topic_id")
    same = topics.select("topic", "topic_id").join(now, on=["topic", "topic_id"], how="left_semi").select("topic")
    sizes = replicas.where(~F.col("is_future")).groupBy(*_KEYS).agg(F.max("size_bytes").alias("size_then"))
    rows = partitions.join(sizes.join(same, on="topic", how="left_semi"), on=_KEYS, how="left")
    return rows.withColumn("days_share", F.lit(share))
