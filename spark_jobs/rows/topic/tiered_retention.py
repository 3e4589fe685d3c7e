"""How long tiered topics keep their records: the topic with their remote segments' metadata must keep its own for longer (KIP-405)."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows.broker.configs import value_of
from spark_jobs.rows.broker.inherited import highest, topic_config
from spark_jobs.rows.topic.topic_listing import hidden_topics

_METADATA_TOPIC = "__remote_log_metadata"


def with_tiered_retention(topics: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds tiered_retention_ms_max and tiered_retention_gap (kafka_audit.catalogue.rows), not NULL for __remote_log_metadata only."""
    return topics.join(F.broadcast(_of_all_topics(evidence)), on="topic", how="left")


def _of_all_topics(evidence: Evidence) -> DataFrame:
    """One row: topic, which is __remote_log_metadata, tiered_retention_ms_max and tiered_retention_gap."""
    every = evidence.table("topics").select("topic").union(hidden_topics(evidence))
    configs = topic_config(evidence)
    tiered, kept = value_of("remote.storage.enable") == "true", highest(evidence, "retention.ms")
    rows = every.join(configs, on="topic", how="left").select("topic", F.when(tiered, kept).alias("kept"), tiered.alias("tiered"))
    unread = F.col("tiered").isNull() | (F.col("tiered") & F.col("kept").isNull())
    found = rows.agg(
        F.coalesce(F.bool_or(F.col("kept") < 0), F.lit(False)).alias("endless"),
        F.coalesce(F.max("kept"), F.lit(0)).alias("longest"),
        F.count_if(unread).alias("unread"),
        F.min(F.when(unread, F.col("topic"))).alias("first_unread"),
    )
    scope = evidence.topic_scope
    beyond = "topics outside the scope of this snapshot may be tiered" if scope and "*" not in scope else None
    first = F.concat(
        F.lit("how long tiered topics keep records is not known of "), F.col("unread"), F.lit(" topics, first "), "first_unread"
    )
    return found.select(
        F.lit(_METADATA_TOPIC).alias("topic"),
        F.when(F.col("endless"), F.lit(-1)).otherwise(F.col("longest")).cast("bigint").alias("tiered_retention_ms_max"),
        F.coalesce(F.lit(beyond), F.when(F.col("unread") > 0, first)).alias("tiered_retention_gap"),
    )
