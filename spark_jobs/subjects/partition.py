"""Wide rows of partitions: leader, replicas, in-sync replicas and what the topic's tier asks for."""

from kafka_audit.policy import Policy
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence
from spark_jobs.subjects.configs import config_by, effective_min_insync
from spark_jobs.subjects.placement import placed_partitions
from spark_jobs.subjects.tiers import topic_policy


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each partition of the partitions dataset."""
    topics = evidence.table("topics").select("topic", "is_internal")
    configs = config_by(evidence, "topic_configs", "topic")
    reassigning = F.when(~F.map_contains_key("errors", F.lit("reassignments")), F.coalesce(F.col("in_progress"), F.lit(False)))
    return (
        placed_partitions(evidence)
        .join(topics, on="topic", how="left")
        .join(configs, on="topic", how="left")
        .withColumn("resource", F.concat_ws("-", "topic", F.col("partition").cast("string")))
        .withColumn("leader_alive", F.array_contains("brokers_alive", F.col("leader")))
        .withColumn("isr_count", F.size("isr"))
        .withColumn("lagging_replicas", F.array_except("settled", "isr"))
        .withColumn("min_insync_replicas", effective_min_insync(F.col("replication_factor")))
        .withColumn("reassigning", F.coalesce(F.col("in_progress"), reassigning))
        .withColumn("policy", topic_policy(policy, F.col("topic")))
    )
