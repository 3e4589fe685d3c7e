"""What people say of the cluster: what owners have not declared (PRD-05), and what somebody attested (OPS-01 to OPS-03)."""

from datetime import datetime, timezone
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.policy import Policy
from kafka_audit.policy.attestations import newest
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import constant
from spark_jobs.rows import missing
from spark_jobs.rows.broker.configs import timestamp_bound, value_of
from spark_jobs.rows.broker.inherited import topic_config
from spark_jobs.rows.client.client_declarations import clients_of, first_names, user_topics, written_by_clients
from spark_jobs.rows.client.consumer import consumer_groups
from spark_jobs.rows.tiers import matches_any, tier_of, tier_of_group, topic_policy

PRODUCERS = "topics without a declared producer (clients.yaml)"
CLOCKS = "topics with times set by producers whose clocks nobody attests (producer_clocks_attested in tiers.yaml)"
COMPACTED = "compacted topics without a declared cleanup_policy and unique_keys (tiers.yaml)"
CONSUMERS = "groups without a declared consumer (clients.yaml)"
_ORDER = (PRODUCERS, CLOCKS, COMPACTED, CONSUMERS)


def undeclared(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row with ``undeclared`` (kafka_audit.catalogue.rows); NULL when topics or groups could not be listed at all."""
    parts = [_of_topics(evidence, policy), _of_groups(evidence, policy)]
    counted = (
        reduce(DataFrame.unionByName, parts)
        .groupBy("what")
        .agg(F.count("*").alias("count"), first_names(F.col("name")).alias("names"))
        .agg(F.collect_list(F.struct("what", "count", "names")).alias("found"))
    )
    listed = not (missing.failed(evidence, "topics") or missing.failed(evidence, "groups"))
    in_order = F.array(*[_first_of(what) for what in _ORDER])
    return counted.select(F.when(F.lit(listed), F.array_compact(in_order)).alias("undeclared"))


def attestations(evidence: Evidence, policy: Policy) -> Column:
    """The column ``attestations`` (kafka_audit.catalogue.rows), as of the time of the snapshot."""
    at = datetime.fromtimestamp(evidence.taken_ms / 1000, timezone.utc)
    found = {
        code: {
            **one.model_dump(include={"attested_by", "statement", "outcome", "file", "sha256"}),
            "attested_on": one.attested_on.isoformat(),
            "expires": one.expires.isoformat(),
            "in_force": one.in_force(at),
        }
        for code, one in newest(policy.attestations, at).items()
    }
    return constant(found, SUBJECTS["cluster"].columns["attestations"].type)


def _first_of(what: str) -> Column:
    """The entry of ``found`` with that text; NULL when there is none."""
    return F.get(F.filter("found", lambda one: one["what"] == what), F.lit(0))


def _demanded(policy: Policy, tier: Column) -> Column:
    """Whether a tier demands that clients are declared."""
    return tier.isin([name for name, one in policy.tiers.items() if one.clients_declared])


def _of_topics(evidence: Evidence, policy: Policy) -> DataFrame:
    """what, name: one row for each declaration that a topic lacks."""
    of_clients = written_by_clients(evidence).select("topic", F.lit(True).alias("of_clients"))
    topics = user_topics(evidence).select("topic").where(_demanded(policy, tier_of(policy, F.col("topic"))))
    rows = topics.join(of_clients, on="topic", how="left").join(topic_config(evidence), on="topic", how="left")
    rows = rows.withColumn("declared", topic_policy(policy, F.col("topic")))
    patterns = [pattern for client in clients_of(policy, "producer") for pattern in client.topics]
    produced = matches_any(F.col("topic"), patterns) if patterns else F.lit(False)
    no_contract = F.col("declared")["unique_keys"].isNull() | F.col("declared")["cleanup_policy"].isNull()
    unattested = F.col("declared")["producer_clocks_attested"].isNull()
    lacking = F.array(
        F.when(F.col("of_clients") & ~produced, F.lit(PRODUCERS)),
        F.when(unattested & _goes_by_clocks(), F.lit(CLOCKS)),
        F.when(F.contains(value_of("cleanup.policy"), F.lit("compact")) & no_contract, F.lit(COMPACTED)),
    )
    return rows.select(F.explode(F.array_compact(lacking)).alias("what"), F.col("topic").alias("name"))


def _goes_by_clocks() -> Column:
    """Whether retention deletes a topic's records by times that producers set, and takes ones that are too old to be kept (TOP-09)."""
    retention_ms = value_of("retention.ms").cast("bigint")
    asked_ms = F.col("declared")["retention_ms"]
    refused = (asked_ms >= 0) & (timestamp_bound("before") <= retention_ms - asked_ms)
    by_time = F.contains(value_of("cleanup.policy"), F.lit("delete")) & (retention_ms >= 0)
    return (value_of("message.timestamp.type") == "CreateTime") & by_time & ~F.coalesce(refused, F.lit(False))


def _of_groups(evidence: Evidence, policy: Policy) -> DataFrame:
    """what, name: the groups that no declared consumer names."""
    named = [client.group for client in clients_of(policy, "consumer")]
    groups = consumer_groups(evidence).where(_demanded(policy, tier_of_group(policy, F.col("group_id"))))
    return groups.where(~F.col("group_id").isin(named)).select(F.lit(CONSUMERS).alias("what"), F.col("group_id").alias("name"))
