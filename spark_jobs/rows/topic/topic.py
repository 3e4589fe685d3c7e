"""Wide rows of topics: replication, placement over racks, configuration, size, who writes, and what earlier snapshots showed."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.clients.declared import Client
from kafka_audit.clients.settings import effective
from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import constant
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import BrokerFacts, broker_facts, reassigning_partitions
from spark_jobs.rows.broker.configs import effective_min_insync, timestamp_bound, values_of_all_brokers, whole_number
from spark_jobs.rows.broker.controllers import controllers
from spark_jobs.rows.broker.inherited import MIN_INSYNC, highest, topic_config
from spark_jobs.rows.tiers import matches_any, topic_policy
from spark_jobs.rows.topic.compacted_growth import with_compacted_growth
from spark_jobs.rows.topic.framework_topics import framework_topics
from spark_jobs.rows.topic.partition import largest_replicas, placed_partitions
from spark_jobs.rows.topic.past_topics import with_past_topics
from spark_jobs.rows.topic.tier_uploads import with_tier_uploads
from spark_jobs.rows.topic.tiered_retention import with_tiered_retention
from spark_jobs.rows.topic.topic_listing import hidden_internal_topics
from spark_jobs.rows.topic.writes import with_writes, write_figures

_CLIENTS = "array<struct<name:string,settings:map<string,string>>>"
_FROM_PARTITIONS = ("partitions", "reassignments", "offsets", "offsets.max_timestamp_ms", "producers", "last_batches", "replica_sizes")


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each topic of the topics dataset, and for each of Kafka's own topics that is hidden from the auditor."""
    facts = broker_facts(evidence)
    topics = evidence.table("topics").unionByName(hidden_internal_topics(evidence), allowMissingColumns=True)
    topics = topics.withColumnRenamed("error", "topics_error")
    topics = missing.with_item_errors(topics, evidence, missing.TOPICS)
    rows = (
        topics.join(_partition_figures(evidence, facts), on="topic", how="left")
        .join(topic_config(evidence), on="topic", how="left")
        .join(framework_topics(evidence), on="topic", how="left")
        .join(largest_replicas(evidence, "topic").withColumnRenamed("size_bytes", "size_bytes_max"), on="topic", how="left")
    )
    rows = rows.withColumns(
        {
            "resource": F.col("topic"),
            "partition_count": F.coalesce("partition_count", "partitions_seen"),
            "min_insync_replicas": effective_min_insync(whole_number(MIN_INSYNC), F.col("target_replicas_min")),
            "min_insync_replicas_max": effective_min_insync(highest(evidence, MIN_INSYNC), F.col("target_replicas_min")),
            "timestamp_before_max_ms": timestamp_bound("before"),
            "timestamp_after_max_ms": timestamp_bound("after"),
            "cluster_reassigning_partitions": F.lit(reassigning_partitions(evidence)).cast("bigint"),
            "broker_values": constant(values_of_all_brokers(evidence), "map<string,array<string>>"),
            **controllers(evidence).columns_of_topic,
            "racks": facts.alive_racks,
            "declared_producers": _declared_clients(policy, "producer", F.col("topic")),
            "declared_consumers": _declared_clients(policy, "consumer", F.col("topic")),
            "errors": _errors(evidence, facts),
        }
    )
    rows = with_tier_uploads(with_compacted_growth(with_tiered_retention(rows, evidence), evidence), evidence)
    return with_past_topics(rows, evidence).withColumn("policy", topic_policy(policy, F.col("topic")))


def _least_if_all_known(column: str) -> Column:
    """The minimum, or NULL when one partition's value is not known: min() alone would pass over it."""
    return F.when(F.count(column) == F.count("*"), F.min(column)).cast("int")


def _partition_with_least(column: str) -> Column:
    """The number of the first partition with the least value; NULL when no value is known."""
    return F.min(F.when(F.col(column).isNotNull(), F.struct(column, "partition")))["partition"]


def _survivors(kind: str) -> list[Column]:
    """The fewest replicas that are left when any one rack is lost, the same at best, and on which partition that is."""
    return [
        _least_if_all_known(f"{kind}_survivors").alias(f"{kind}_survivors_min"),
        _least_if_all_known(f"{kind}_survivors_best_case").alias(f"{kind}_survivors_best_case"),
        _partition_with_least(f"{kind}_survivors_best_case").alias(f"{kind}_survivors_partition"),
    ]


def _partition_figures(evidence: Evidence, facts: BrokerFacts) -> DataFrame:
    """One row for each topic that has partitions, with ``lacking`` map<dataset, reason> of what its partitions lack."""
    partitions = placed_partitions(evidence, facts).transform(with_writes, evidence)
    lacking = {name: missing.of_its_partitions(F.col("errors")[name], F.col("partition")) for name in _FROM_PARTITIONS}
    return partitions.groupBy("topic").agg(
        F.count("*").cast("int").alias("partitions_seen"),
        _least_if_all_known("lasting_replicas").alias("replication_factor_min"),
        F.max("lasting_replicas").alias("replication_factor_max"),
        _partition_with_least("lasting_replicas").alias("fewest_replicas_partition"),
        _least_if_all_known("target_replicas").alias("target_replicas_min"),
        _least_if_all_known("isr_count").alias("isr_count_min"),
        F.count_if("in_progress").cast("int").alias("reassigning_partitions"),
        _least_if_all_known("rack_spread").alias("rack_spread_min"),
        _partition_with_least("rack_spread").alias("rack_spread_partition"),
        *_survivors("rack"),
        *_survivors("in_sync"),
        *write_figures(),
        missing.joined(missing.extra(**lacking)).alias("lacking"),
    )


def _errors(evidence: Evidence, facts: BrokerFacts) -> Column:
    of_row = missing.extra(
        topics=F.col("topics_error"),
        broker_configs=facts.unread_of_any("broker_configs"),
        controller_configs=facts.unread_of_any("controller_configs"),
    )
    # A whole dataset's own reason is clearer than "on 5 of its partitions, first 0: ...", so it comes last.
    return missing.joined(of_row, F.col("lacking"), F.col("item_errors"), missing.whole_datasets(evidence))


def _declared_clients(policy: Policy, kind: str, topic: Column) -> Column:
    """The declared producers or consumers whose topic patterns match, by name, as a constant; empty when none does."""
    none = F.array().cast(_CLIENTS)
    clients = [one for one in policy.clients if one.kind == kind and one.topics]
    return F.concat(none, *[F.when(matches_any(topic, one.topics), _client(one)).otherwise(none) for one in clients])


def _client(client: Client) -> Column:
    """One client with its effective settings by the Java client's names; one whose value is not known is left out."""
    settings = {name: setting.value for name, setting in sorted(effective(client).items()) if setting.value is not None}
    return constant([{"name": client.name, "settings": settings}], _CLIENTS)
