"""Wide rows of partitions: leader, replicas, in-sync replicas and what the topic's tier asks for."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.datasets import Evidence
from spark_jobs.subjects.broker_facts import broker_facts
from spark_jobs.subjects.configs import config_by, effective_min_insync
from spark_jobs.subjects.placement import placed_partitions
from spark_jobs.subjects.tiers import topic_policy


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each partition of the partitions dataset."""
    facts = broker_facts(evidence)
    topics = evidence.table("topics").select("topic", "is_internal")
    configs = config_by(evidence, "topic_configs", "topic")
    rows = placed_partitions(evidence, facts).join(topics, on="topic", how="left").join(configs, on="topic", how="left")
    listed = F.when(~F.map_contains_key("errors", F.lit("reassignments")), F.lit(False))
    return rows.withColumns(
        {
            "resource": F.concat_ws("-", "topic", F.col("partition").cast("string")),
            "leader_alive": F.array_contains(facts.alive_ids, F.col("leader")),
            "isr_count": F.size("isr"),
            "lagging_replicas": F.array_except("settled", "isr"),
            "min_insync_replicas": effective_min_insync(F.col("replication_factor")),
            "reassigning": F.coalesce("in_progress", listed),
            "policy": topic_policy(policy, F.col("topic")),
        }
    )
