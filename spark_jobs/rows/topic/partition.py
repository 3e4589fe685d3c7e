"""Wide rows of partitions: leader, replicas, in-sync replicas, offsets, open transactions, and how all that was in earlier snapshots."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.lag.positions import offsets_between
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import BrokerFacts, broker_facts
from spark_jobs.rows.broker.configs import effective_min_insync, feature_levels, numbers_of_all_brokers
from spark_jobs.rows.broker.inherited import min_insync_of, topic_config
from spark_jobs.rows.tiers import topic_policy
from spark_jobs.rows.topic.past_topics import with_past_partitions
from spark_jobs.rows.topic.topic_listing import no_authorizer

# The cluster's answer about a partition that has no leader or lacks a replica is evidence, not a lack of it.
_STATES = ("LEADER_NOT_AVAILABLE", "REPLICA_NOT_AVAILABLE")
_KEYS = ["topic", "partition"]
_CHANGES = {"settled": "adding", "target": "removing"}
_LISTED = 20
_HIDDEN = (
    "a transaction is open and no coordinator lists any transactional id: without Describe on transactional ids they are left out "
    "without an error"
)
_ELR = "eligible.leader.replicas.version"


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each partition of the partitions dataset."""
    facts = broker_facts(evidence)
    topics = evidence.table("topics").select("topic", "is_internal")
    configs = topic_config(evidence)
    rows = placed_partitions(evidence, facts).join(topics, on="topic", how="left").join(configs, on="topic", how="left")
    listed = F.when(~F.map_contains_key("errors", F.lit("reassignments")), F.lit(False))
    rows = rows.withColumns(
        {
            "resource": F.concat_ws("-", "topic", F.col("partition").cast("string")),
            "leader_alive": F.array_contains(facts.alive_ids, F.col("leader")),
            "lagging_replicas": F.array_except("settled", "isr"),
            "min_insync_configured": min_insync_of(evidence, F.col("leader")).cast("int"),
            "min_insync_replicas": effective_min_insync(
                min_insync_of(evidence, F.col("leader")), F.size("replicas"), facts.bounds_min_insync(F.col("leader"))
            ),
            "reassigning": F.coalesce("in_progress", listed),
            "elr_supported": _elr_level(evidence, "supported") >= 1,
            "elr_enabled": _elr_level(evidence, "finalized") >= 1,
        }
    )
    rows = _with_offsets(rows, evidence)
    rows = with_past_partitions(_with_transactions(rows, evidence, facts), evidence)
    # Last of all: Spark 4.2 loses a struct's field on its way through joins when a rule's findings are exploded (attribute not found).
    return rows.withColumn("policy", topic_policy(policy, F.col("topic")))


def _with_offsets(partitions: DataFrame, evidence: Evidence) -> DataFrame:
    """Adds log_start, log_end and last_stable, and to ``errors`` why they are missing."""
    names = ("topic", "partition", "log_start", "log_end", "last_stable", F.col("read_at").alias("ends_read_at"))
    offsets = evidence.table("offsets").select(*names, F.col("error").alias("offsets_error"))
    errors = missing.joined(missing.extra(offsets=F.col("offsets_error")), F.col("errors"))
    return partitions.join(offsets, on=_KEYS, how="left").withColumn("errors", errors)


def _elr_level(evidence: Evidence, which: str) -> Column:
    """The level of eligible.leader.replicas.version; 0 where the brokers do not know it, NULL when no feature is known."""
    levels = feature_levels(evidence)
    return F.when(levels.isNotNull(), F.coalesce(levels[_ELR][which], F.lit(0)))


@shortened
def placed_partitions(evidence: Evidence, facts: BrokerFacts) -> DataFrame:
    """The partitions dataset plus in_progress, adding_replicas and removing_replicas, replicas by state, rack figures and errors.

    ``settled`` array<int> are the assigned replicas without those still being added, ``target`` those that stay when a running
    reassignment ends; ``replication_factor`` counts the former, ``target_replicas`` the latter, ``lasting_replicas`` the fewer of both.
    ``rack_spread`` and ``rack_survivors`` int are of the target, ``in_sync_survivors`` int of the replicas that are in sync now: NULL when
    a replica's rack is not known. Those with ``_best_case`` take each unknown rack as a rack of its own.
    ``errors`` map<dataset, reason> holds what is missing for this partition.
    """
    moved = ("topic", "partition", "adding_replicas", "removing_replicas")
    reassignments = evidence.table("reassignments").select(*moved, F.lit(True).alias("in_progress"))
    rows = evidence.table("partitions").join(reassignments, on=_KEYS, how="left")
    rows = missing.with_item_errors(rows, evidence, missing.TOPICS, missing.PARTITIONS)
    none = F.array().cast("array<int>")
    without = {name: F.array_except("replicas", F.coalesce(f"{change}_replicas", none)) for name, change in _CHANGES.items()}
    rows = rows.withColumns({**without, "errors": _errors(evidence, facts)})
    settled, target = F.size("settled"), F.size("target")
    racks = {f"{name}_racks": F.transform(name, facts.rack_of) if facts.racks else F.lit(None) for name in ("target", "isr")}
    rows = rows.withColumns({name: found.cast("array<string>") for name, found in racks.items()})
    counts = {"replication_factor": settled, "target_replicas": target, "lasting_replicas": F.least(settled, target)}
    return rows.withColumns(
        {**counts, "isr_count": F.size("isr"), **_rack_figures("target_racks", "rack"), **_rack_figures("isr_racks", "in_sync")}
    )


def _rack_figures(racks: str, name: str) -> dict[str, Column]:
    """From the racks of some replicas: how many there are, and how many replicas are left when the most crowded rack is lost."""
    known = F.filter(racks, lambda rack: rack.isNotNull())
    complete = F.size(known) == F.size(racks)
    unknown = F.when(complete, 0).otherwise(1)
    crowds = F.transform(F.array_distinct(known), lambda rack: F.size(F.filter(racks, lambda other: other == rack)))
    crowd = F.coalesce(F.array_max(crowds), F.lit(0))  # no known rack at all: the largest known crowd is empty
    left = F.size(racks) - F.when(crowd > unknown, crowd).otherwise(unknown)
    best_case = F.when(left > 0, left).when(left <= 0, F.lit(0))
    return {
        f"{name}_survivors_best_case": best_case,
        f"{name}_survivors": F.when(complete, best_case),
        f"{name}_spread": F.when(complete, F.size(F.array_distinct(known))),
    }


def _errors(evidence: Evidence, facts: BrokerFacts) -> Column:
    replicas, leader = F.col("replicas"), F.col("leader")
    of_row = missing.extra(
        partitions=F.when(~F.col("error").isin(*_STATES), F.col("error")),
        offsets=facts.unread_of("offsets", leader),
        producers=facts.unread_of("producers", leader),
        replica_sizes=missing.first_known(facts.unread_of_some("replica_sizes", replicas), facts.unread_of_some("log_dirs", replicas)),
    )
    return missing.joined(of_row, F.col("item_errors"), missing.whole_datasets(evidence))


def largest_replicas(evidence: Evidence, *keys: str) -> DataFrame:
    """``keys`` and size_bytes of the largest replica."""
    current = evidence.table("replica_sizes").where(~F.col("is_future"))
    return current.groupBy(*keys).agg(F.max("size_bytes").alias("size_bytes"))


def _with_transactions(partitions: DataFrame, evidence: Evidence, facts: BrokerFacts) -> DataFrame:
    """Adds open transactions, and those that no coordinator will end, as ``kafka-transactions find-hanging`` finds them (KIP-664).

    open_transactions, oldest_transaction_ms, forgotten_transactions and transaction_max_timeout_ms (kafka_audit.catalogue.rows).
    Needs topic, partition, leader, is_internal, log_end and errors, to which it adds why coordinators' knowledge is missing. Producers of
    internal topics are not asked for.
    """
    rows = partitions.join(_open(evidence), on=_KEYS, how="left")
    timeouts = numbers_of_all_brokers(evidence, "transaction.max.timeout.ms")
    told = (F.col("leader") >= 0) & ~F.col("is_internal") & ~F.map_contains_key("errors", F.lit("producers"))
    is_open = told & F.col("open").isNotNull()
    unread = _unread(evidence, facts)
    reason = F.lit(unread) if unread else F.when(is_open, F.lit(_HIDDEN)) if _hidden(evidence) else None
    # Log ends are read before producers: what began behind them is young, whatever the times of its records say, and may have ended
    # before its coordinator was asked.
    old = F.filter("forgotten", lambda one: F.coalesce(offsets_between(one["start_offset"], F.col("log_end")) > 0, F.lit(True)))
    forgotten = F.slice(old, 1, _LISTED) if reason is None else F.lit(None)
    none = F.array().cast("array<struct<producer_id:bigint,start_offset:bigint,silent_ms:bigint>>")
    return rows.withColumns(
        {
            "open_transactions": F.when(told, F.coalesce("open", F.lit(0)).cast("int")),
            "forgotten_transactions": F.when(is_open, forgotten).when(told, none),
            "transaction_max_timeout_ms": F.lit(max(timeouts, default=None)).cast("bigint"),
            "errors": missing.joined(F.col("errors"), missing.extra(transactions=reason)),
        }
    )


def _open(evidence: Evidence) -> DataFrame:
    """topic, partition, open bigint, oldest_transaction_ms bigint and ``forgotten``, for partitions with an open transaction."""
    known = evidence.table("transactions").select("producer_id", F.inline("partitions")).distinct().withColumn("known", F.lit(True))
    silent = F.lit(evidence.taken_ms) - F.when(F.col("last_timestamp_ms") >= 0, F.col("last_timestamp_ms"))
    transactions = evidence.table("producers").where(F.col("current_txn_start_offset") >= 0).withColumn("silent_ms", silent)
    one = F.struct("silent_ms", "producer_id", F.col("current_txn_start_offset").alias("start_offset"))
    forgotten = F.sort_array(F.collect_list(F.when(F.col("known").isNull(), one)), asc=False)
    return (
        transactions.join(known, on=[*_KEYS, "producer_id"], how="left")
        .groupBy(*_KEYS)
        .agg(
            F.count("*").alias("open"),
            F.max("silent_ms").alias("oldest_transaction_ms"),
            F.transform(forgotten, _in_order).alias("forgotten"),
        )
    )


def _in_order(one: Column) -> Column:
    return F.struct(*[one[name].alias(name) for name in ("producer_id", "start_offset", "silent_ms")])


def _unread(evidence: Evidence, facts: BrokerFacts) -> str | None:
    """Why the transactions of some coordinator are not known; None when every one told."""
    return evidence.whole_dataset_errors.get("transactions") or facts.unread_of_any("transactions")


def _hidden(evidence: Evidence) -> bool:
    """Whether transactional ids may be hidden: none is listed, and the cluster does not say that it has no authorizer."""
    return evidence.rows("transactions") == 0 and not no_authorizer(evidence)
