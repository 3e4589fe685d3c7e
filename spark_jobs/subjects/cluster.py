"""The wide row of the cluster: its brokers, quorum, drift, and how complete the snapshot is."""

from kafka_audit.policy import Policy
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.datasets import Evidence
from spark_jobs.subjects import missing
from spark_jobs.subjects.broker_facts import broker_facts
from spark_jobs.subjects.config_comparison import drifting_keys, weaker_overrides
from spark_jobs.subjects.quorum import quorum_facts
from spark_jobs.subjects.topic_listing import disks_unread, hidden_topics

_LISTED = 20


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """Exactly one row, also when nothing of the cluster could be read."""
    one = evidence.spark.range(1).select(F.lit("cluster").alias("resource"))
    parts = [
        evidence.table("cluster").agg(F.first("cluster_id").alias("cluster_id")),
        broker_facts(evidence).select("unread"),
        _brokers(evidence),
        quorum_facts(evidence),
        drifting_keys(evidence),
        weaker_overrides(evidence),
        _unread_items(evidence),
        hidden_topics(evidence).agg(F.slice(F.array_sort(F.collect_list("topic")), 1, _LISTED).alias("hidden")),
    ]
    for part in parts:
        one = one.crossJoin(F.broadcast(part))
    asked = policy.tiers[policy.default_tier].replication_factor
    return (
        one.withColumn("hidden_topics", _hidden(evidence))
        .withColumn("snapshot_seconds", F.lit(evidence.seconds).cast("double"))
        .withColumn("policy", F.struct(F.lit(asked).cast("int").alias("replication_factor")))
        .withColumn("errors", missing.joined(_unread_brokers(), F.col("item_errors"), missing.whole_datasets(evidence)))
    )


def _brokers(evidence: Evidence) -> DataFrame:
    """One row about the brokers; all NULL when metadata could not be read."""

    def ids(condition: Column) -> Column:
        return F.when(F.count("*") > 0, F.array_sort(F.collect_set(F.when(condition, F.col("broker_id")))))

    alive = F.col("alive")
    return evidence.table("brokers").agg(
        ids(F.lit(True)).alias("brokers_known"),
        ids(alive).alias("brokers_alive"),
        ids(F.col("answered")).alias("brokers_answered"),
        F.when(F.count("*") > 0, F.count_distinct(F.when(alive, F.col("rack")))).cast("int").alias("racks"),
        ids(alive & F.col("rack").isNull()).alias("brokers_without_rack"),
    )


def _unread_items(evidence: Evidence) -> DataFrame:
    """One row: unread_items bigint, unread_by_dataset map<dataset,bigint> and item_errors map<dataset, reason>."""
    by_dataset = (
        evidence.table("errors").groupBy("dataset").agg(F.count("*").alias("items"), F.min(missing.reason_text()).alias("first"))
    ).withColumn("text", F.concat(F.col("items").cast("string"), F.lit(" of its items could not be read, first: "), F.col("first")))
    entries = F.array_sort(F.collect_list(F.struct("dataset", "items", "text")))
    counted = by_dataset.agg(entries.alias("entries"))
    return counted.select(
        F.aggregate("entries", F.lit(0).cast("bigint"), lambda total, entry: total + entry["items"]).alias("unread_items"),
        F.map_from_arrays("entries.dataset", "entries.items").alias("unread_by_dataset"),
        F.map_from_arrays("entries.dataset", "entries.text").alias("item_errors"),
    )


def _unread_brokers() -> Column:
    """dataset -> the first broker that did not give it."""
    return F.transform_values("unread", lambda _, brokers: brokers[F.array_min(F.map_keys(brokers))])


def _hidden(evidence: Evidence) -> Column:
    """NULL when no hidden topic is known but not all lists were read."""
    if missing.failed(evidence, "topics"):
        return F.lit(None).cast("array<string>")
    return F.when((F.size("hidden") > 0) | disks_unread(evidence).isNull(), F.col("hidden"))
