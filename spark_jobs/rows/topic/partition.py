"""Wide rows of partitions: leader, replicas, in-sync replicas, offsets, open transactions, and how all that was in earlier snapshots."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts
from spark_jobs.rows.broker.configs import config_by, effective_min_insync
from spark_jobs.rows.broker.features import feature_levels
from spark_jobs.rows.tiers import topic_policy
from spark_jobs.rows.topic.past_topics import with_past_partitions
from spark_jobs.rows.topic.placement import placed_partitions
from spark_jobs.rows.topic.transactions import with_transactions

_ELR = "eligible.leader.replicas.version"


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each partition of the partitions dataset."""
    facts = broker_facts(evidence)
    topics = evidence.table("topics").select("topic", "is_internal")
    configs = config_by(evidence, "topic_configs", "topic")
    rows = placed_partitions(evidence, facts).join(topics, on="topic", how="left").join(configs, on="topic", how="left")
    listed = F.when(~F.map_contains_key("errors", F.lit("reassignments")), F.lit(False))
    rows = rows.withColumns(
        {
            "resource": F.concat_ws("-", "topic", F.col("partition").cast("string")),
            "leader_alive": F.array_contains(facts.alive_ids, F.col("leader")),
            "isr_count": F.size("isr"),
            "lagging_replicas": F.array_except("settled", "isr"),
            "min_insync_replicas": effective_min_insync(F.col("replication_factor")),
            "reassigning": F.coalesce("in_progress", listed),
            "elr_supported": _elr_level(evidence, "supported") >= 1,
            "elr_enabled": _elr_level(evidence, "finalized") >= 1,
        }
    )
    rows = _with_offsets(rows, evidence)
    rows = with_past_partitions(with_transactions(rows, evidence, facts), evidence)
    # Last of all: Spark 4.2 loses a struct's field on its way through joins when a rule's findings are exploded (attribute not found).
    return rows.withColumn("policy", topic_policy(policy, F.col("topic")))


def _with_offsets(partitions: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds log_start, log_end and last_stable, and to ``errors`` why they are missing."""
    names = ("topic", "partition", "log_start", "log_end", "last_stable")
    offsets = evidence.table("offsets").select(*names, F.col("error").alias("offsets_error"))
    errors = missing.joined(missing.extra(offsets=F.col("offsets_error")), F.col("errors"))
    return partitions.join(offsets, on=["topic", "partition"], how="left").withColumn("errors", errors)


def _elr_level(evidence: Evidence, which: str) -> Column:
    """The level of eligible.leader.replicas.version; 0 where the brokers do not know it, NULL when no feature is known."""
    levels = feature_levels(evidence)
    return F.when(levels.isNotNull(), F.coalesce(levels[_ELR][which], F.lit(0)))
