"""Wide rows of topics: replication, placement over racks, configuration, size, who writes, and what earlier snapshots showed."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import BrokerFacts, broker_facts
from spark_jobs.rows.broker.configs import broker_values, config_by, effective_min_insync
from spark_jobs.rows.tiers import topic_policy
from spark_jobs.rows.topic.declared_clients import declared_clients
from spark_jobs.rows.topic.past_topics import with_past_topics
from spark_jobs.rows.topic.placement import placed_partitions
from spark_jobs.rows.topic.writes import with_writes, write_figures

_FROM_PARTITIONS = ("partitions", "reassignments", "offsets", "producers", "last_batches", "replica_sizes")


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each topic of the topics dataset."""
    facts = broker_facts(evidence)
    topics = evidence.table("topics").withColumnRenamed("error", "topics_error")
    topics = missing.with_item_errors(topics, missing.of_topics(evidence))
    rows = (
        topics.join(_partition_figures(evidence, facts), on="topic", how="left")
        .join(config_by(evidence, "topic_configs", "topic"), on="topic", how="left")
        .join(_sizes(evidence), on="topic", how="left")
    )
    rows = rows.withColumns(
        {
            "resource": F.col("topic"),
            "partition_count": F.coalesce("partition_count", "partitions_seen"),
            "min_insync_replicas": effective_min_insync(F.col("replication_factor_min")),
            "broker_values": broker_values(evidence),
            "racks": facts.alive_racks,
            "declared_producers": declared_clients(policy, "producer", F.col("topic")),
            "declared_consumers": declared_clients(policy, "consumer", F.col("topic")),
            "errors": _errors(evidence, facts),
        }
    )
    return with_past_topics(rows, evidence).withColumn("policy", topic_policy(policy, F.col("topic")))


def _least_if_all_known(column: str) -> Column:
    """The minimum, or NULL when one partition's value is not known: min() alone would pass over it."""
    return F.when(F.count(column) == F.count("*"), F.min(column)).cast("int")


def _partition_figures(evidence: Evidence, facts: BrokerFacts) -> DataFrame:
    """One row for each topic that has partitions, with ``lacking`` map<dataset, reason> of what its partitions lack."""
    partitions = placed_partitions(evidence, facts).transform(with_writes, evidence)
    lacking = {dataset: missing.of_its_partitions(F.col("errors")[dataset], F.col("partition")) for dataset in _FROM_PARTITIONS}
    return partitions.groupBy("topic").agg(
        F.count("*").cast("int").alias("partitions_seen"),
        _least_if_all_known("replication_factor").alias("replication_factor_min"),
        F.max("replication_factor").alias("replication_factor_max"),
        _least_if_all_known("rack_spread").alias("rack_spread_min"),
        _least_if_all_known("rack_survivors").alias("rack_survivors_min"),
        _least_if_all_known("rack_survivors_best_case").alias("rack_survivors_best_case"),
        *write_figures(),
        missing.joined(missing.extra(**lacking)).alias("lacking"),
    )


def _sizes(evidence: Evidence) -> DataFrame:
    current = evidence.table("replica_sizes").where(~F.col("is_future"))
    return current.groupBy("topic").agg(F.max("size_bytes").alias("size_bytes_max"))


def _errors(evidence: Evidence, facts: BrokerFacts) -> Column:
    of_row = missing.extra(topics=F.col("topics_error"), broker_configs=missing.first_known(facts.unread_of_any("broker_configs")))
    # A whole dataset's own reason is clearer than "on 5 of its partitions, first 0: ...", so it comes last.
    return missing.joined(of_row, F.col("lacking"), F.col("item_errors"), missing.whole_datasets(evidence))
