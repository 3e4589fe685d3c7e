"""The wide row of the cluster: its brokers, quorum, drift and access, and how complete the snapshot and its history are."""

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts, ints
from spark_jobs.rows.broker.features import feature_levels
from spark_jobs.rows.cluster import access
from spark_jobs.rows.cluster.config_comparison import drifting_keys, weaker_overrides
from spark_jobs.rows.cluster.past_cluster import earlier_snapshots, groups_listed, series
from spark_jobs.rows.cluster.quorum import quorum
from spark_jobs.rows.topic.topic_listing import disks_unread, hidden_topics

_LISTED = 20


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """Exactly one row, also when nothing of the cluster could be read."""
    parts = (
        weaker_overrides(evidence),
        hidden_topics(evidence).agg(F.slice(F.array_sort(F.collect_list("topic")), 1, _LISTED).alias("hidden")),
        access.destructive_grants(evidence, policy),
        access.own_operations(evidence),
        earlier_snapshots(evidence),
    )
    rows = reduce(lambda left, right: left.crossJoin(F.broadcast(right)), parts, _unread_items(evidence))
    ids = [row["cluster_id"] for row in evidence.small("cluster", "cluster_id")]
    drifts = drifting_keys(evidence)
    return rows.withColumns(
        {
            "resource": F.lit("cluster"),
            "cluster_id": F.lit(ids[0] if ids else None).cast("string"),
            **_brokers(evidence),
            **_quorum(evidence),
            "drifting_keys": F.lit(None).cast("array<string>") if drifts is None else F.array(*map(F.lit, drifts)).cast("array<string>"),
            "hidden_topics": _hidden(evidence),
            "snapshot_seconds": F.lit(evidence.seconds).cast("double"),
            "features": feature_levels(evidence),
            **access.authorizer(evidence),
            **groups_listed(evidence),
            **series(evidence),
            "policy": _policy(policy),
            "errors": missing.joined(_unread_brokers(evidence), F.col("item_errors"), missing.whole_datasets(evidence)),
        }
    )


def _policy(policy: Policy) -> Column:
    return F.struct(
        F.lit(policy.default_tier).alias("tier"),
        F.lit(policy.tiers[policy.default_tier].replication_factor).cast("int").alias("replication_factor"),
        F.lit(policy.history.interval_seconds * 1000).cast("bigint").alias("interval_ms"),
    )


def _brokers(evidence: Evidence) -> dict[str, Column]:
    """What is known of the brokers; all NULL when metadata could not be read."""
    brokers = sorted(evidence.small("brokers", "broker_id", "rack", "alive", "answered"), key=lambda row: row["broker_id"])
    alive = [row for row in brokers if row["alive"]]
    kinds = {
        "brokers_known": brokers,
        "brokers_alive": alive,
        "brokers_answered": [row for row in brokers if row["answered"]],
        "brokers_without_rack": [row for row in alive if row["rack"] is None],
    }
    racks = len({row["rack"] for row in alive if row["rack"] is not None})
    columns = {name: ints([row["broker_id"] for row in rows] if brokers else None) for name, rows in kinds.items()}
    return {**columns, "racks": F.lit(racks if brokers else None).cast("int")}


def _quorum(evidence: Evidence) -> dict[str, Column]:
    found = quorum(evidence)
    return {
        "voters": ints(found.voters),
        "healthy_voters": ints(found.healthy_voters),
        "clock_skew_ms": F.lit(found.clock_skew_ms).cast("bigint"),
    }


def _unread_items(evidence: Evidence) -> DataFrame:
    """One row: unread_items bigint, unread_by_dataset map<dataset,bigint> and item_errors map<dataset, reason>."""
    unread = (F.col("dataset") != "acls") | (F.col("error") != access.NO_AUTHORIZER)  # that there are no ACLs was read
    by_dataset = (
        evidence.table("errors")
        .where(unread)
        .groupBy("dataset")
        .agg(F.count("*").alias("items"), F.min(missing.reason_text()).alias("first"))
    ).withColumn("text", F.concat(F.col("items").cast("string"), F.lit(" of its items could not be read, first: "), F.col("first")))
    entries = F.array_sort(F.collect_list(F.struct("dataset", "items", "text")))
    return by_dataset.agg(entries.alias("entries")).select(
        F.aggregate("entries", F.lit(0).cast("bigint"), lambda total, entry: total + entry["items"]).alias("unread_items"),
        F.map_from_arrays("entries.dataset", "entries.items").alias("unread_by_dataset"),
        F.map_from_arrays("entries.dataset", "entries.text").alias("item_errors"),
    )


def _unread_brokers(evidence: Evidence) -> Column | None:
    """dataset -> the first broker that did not give it."""
    facts = broker_facts(evidence)
    return missing.extra(**{dataset: missing.first_known(facts.unread_of_any(dataset)) for dataset in facts.unread})


def _hidden(evidence: Evidence) -> Column:
    """NULL when topics could not be listed, or when no hidden topic is known but not all disks were read."""
    if missing.failed(evidence, "topics"):
        return F.lit(None).cast("array<string>")
    return F.when((F.size("hidden") > 0) | F.lit(disks_unread(evidence) is None), F.col("hidden"))
