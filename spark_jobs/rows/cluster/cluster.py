"""The wide row of the cluster: its brokers, quorum, drift and access, and how complete the snapshot and its history are."""

from functools import reduce
from itertools import pairwise

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from kafka_audit.policy.managed_service import REFUSALS
from kafka_audit.store.layout import Snapshot
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts, ints
from spark_jobs.rows.broker.configs import feature_levels
from spark_jobs.rows.broker.controllers import controllers
from spark_jobs.rows.cluster import access
from spark_jobs.rows.cluster.client_quotas import client_quotas, write_rate
from spark_jobs.rows.cluster.config_comparison import drifting_keys, weaker_overrides
from spark_jobs.rows.cluster.declarations import attestations, undeclared
from spark_jobs.rows.cluster.unfinished_transactions import unfinished_transactions
from spark_jobs.rows.topic.topic_listing import disks_unread, hidden_topics

_LISTED = 20
_HEALTHY_WITHIN_MS = 10_000
_OBSERVER_WITHIN_MS = 60_000


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """Exactly one row, also when nothing of the cluster could be read."""
    measured = write_rate(evidence)
    parts = (
        weaker_overrides(evidence),
        hidden_topics(evidence).agg(F.slice(F.array_sort(F.collect_list("topic")), 1, _LISTED).alias("hidden")),
        access.destructive_grants(evidence, policy),
        access.own_operations(evidence),
        unfinished_transactions(evidence),
        _earlier_snapshots(evidence, policy),
        undeclared(evidence, policy),
        *([] if measured is None else [measured]),
    )
    rows = reduce(lambda left, right: left.crossJoin(F.broadcast(right)), parts, _unread_items(evidence, policy))
    ids = [row["cluster_id"] for row in evidence.small("cluster", "cluster_id")]
    return rows.withColumns(
        {
            "resource": F.lit("cluster"),
            "cluster_id": F.lit(ids[0] if ids else None).cast("string"),
            **_brokers(evidence),
            **_quorum(evidence),
            **controllers(evidence).columns_of_cluster,
            "drifting_keys": F.lit(drifting_keys(evidence)).cast("array<string>"),
            "hidden_topics": _hidden(evidence),
            "snapshot_seconds": F.lit(evidence.seconds).cast("double"),
            "features": feature_levels(evidence),
            **access.authorizer(evidence),
            **_groups_listed(evidence),
            **_series(evidence),
            "client_quotas": client_quotas(evidence),
            **({"write_bytes_per_s": F.lit(None).cast("double")} if measured is None else {}),
            "attestations": attestations(evidence, policy),
            "policy": _policy(policy),
            "errors": missing.joined(_unread_brokers(evidence), F.col("item_errors"), missing.whole_datasets(evidence)),
        }
    )


def _policy(policy: Policy) -> Column:
    return F.struct(
        F.lit(policy.default_tier).alias("tier"),
        F.lit(policy.tiers[policy.default_tier].replication_factor).cast("int").alias("replication_factor"),
        F.lit(policy.history.interval_seconds * 1000).cast("bigint").alias("interval_ms"),
        F.lit(any(tier.clients_declared for tier in policy.tiers.values())).alias("clients_declared"),
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
    """Voters and observers, sorted ids, and clock_skew_ms, the auditor's clock minus the leader's; NULL where it is not known.

    The quorum dataset has a row for each voter and observer, so it grows with the brokers only. A voter is healthy when it was caught up
    within 10 s of the leader's own clock (KIP-836), an observer within 60 s. Without that clock nothing can be said. One without a time
    has not caught up since this leader was elected. Every alive broker that is no voter is an observer: one that the leader does not list
    has not fetched for five minutes (LeaderState.clearInactiveObservers).
    """
    rows = evidence.small("quorum", "replica_id", "role", "is_leader", "last_caught_up_timestamp_ms", "read_at")
    voters = sorted(row["replica_id"] for row in rows if row["role"] == "voter")
    times = {row["replica_id"]: row["last_caught_up_timestamp_ms"] for row in rows if (row["last_caught_up_timestamp_ms"] or -1) >= 0}
    leader = next((row for row in rows if row["is_leader"] and row["replica_id"] in times), None)
    alive = broker_facts(evidence).alive
    observers = sorted(set(alive or ()) - set(voters))
    healthy, reading, skew = None, None, None
    if leader is not None:
        clock = times[leader["replica_id"]]
        healthy = [voter for voter in voters if voter in times and clock - times[voter] <= _HEALTHY_WITHIN_MS]
        reading = [one for one in observers if one in times and clock - times[one] <= _OBSERVER_WITHIN_MS]
        skew = round(leader["read_at"].timestamp() * 1000) - clock if leader["read_at"] else None
    return {
        "voters": ints(voters or None),
        "healthy_voters": ints(healthy if voters else None),
        "observers": ints(observers if rows and alive is not None else None),
        "caught_up_observers": ints(reading),
        "clock_skew_ms": F.lit(skew).cast("bigint"),
    }


def _unread_items(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row: unread_items bigint, unread_by_dataset map<dataset,bigint> and item_errors map<dataset, reason>.

    What a managed service hides is not counted: it is no gap of this snapshot. Nor are the configurations of dedicated controllers,
    to which clients need no way: the controls that lack them say so.
    """
    unread = (F.col("dataset") != "acls") | (F.col("error") != missing.NO_AUTHORIZER)  # that there are no ACLs was read
    if policy.managed_service is not None:
        unread &= ~(F.col("dataset").isin(*policy.managed_service.datasets) & F.col("error").isin(*REFUSALS))
    by_dataset = (
        evidence.table("errors")
        .where(unread)
        .groupBy("dataset")
        .agg(F.count("*").alias("items"), F.min(missing.reason_text()).alias("first"))
    ).withColumn("text", F.concat(F.col("items").cast("string"), F.lit(" of its items could not be read, first: "), F.col("first")))
    entries = F.array_sort(F.collect_list(F.struct("dataset", "items", "text")))
    counted = F.filter("entries", lambda entry: entry["dataset"] != "controller_configs").alias("counted")
    return (
        by_dataset.agg(entries.alias("entries"))
        .select("entries", counted)
        .select(
            F.aggregate("counted", F.lit(0).cast("bigint"), lambda total, entry: total + entry["items"]).alias("unread_items"),
            F.map_from_arrays("counted.dataset", "counted.items").alias("unread_by_dataset"),
            F.map_from_arrays("entries.dataset", "entries.text").alias("item_errors"),
        )
    )


def _unread_brokers(evidence: Evidence) -> Column | None:
    """dataset -> the first broker that did not give it."""
    facts = broker_facts(evidence)
    return missing.extra(**{dataset: facts.unread_of_any(dataset) for dataset in facts.unread})


def _hidden(evidence: Evidence) -> Column:
    """NULL when topics could not be listed, or when no hidden topic is known but not all disks were read."""
    if missing.failed(evidence, "topics"):
        return F.lit(None).cast("array<string>")
    return F.when((F.size("hidden") > 0) | F.lit(disks_unread(evidence) is None), F.col("hidden"))


def _series(evidence: Evidence) -> dict[str, Column]:
    """Columns snapshots, history_ms, longest_gap_ms and unusable_snapshots, from the manifests alone."""
    times = [one.taken_ms for one in (*evidence.history.snapshots, evidence.snapshot)]
    gaps = [later - earlier for earlier, later in pairwise(times)]
    return {
        "snapshots": F.lit(len(times)).cast("int"),
        "history_ms": F.lit(times[-1] - times[0]).cast("bigint"),
        "longest_gap_ms": F.lit(max(gaps, default=None)).cast("bigint"),
        "unusable_snapshots": F.lit(list(evidence.history.unusable[-_LISTED:])).cast("array<string>"),
    }


def _groups_listed(evidence: Evidence) -> dict[str, Column]:
    """Columns group_count and group_count_before: a cluster that had groups and shows none has lost them, or has not been read."""
    scope, listed = _group_scope(evidence.snapshot), evidence.rows("groups")
    untold = missing.failed(evidence, "groups") or broker_facts(evidence).unread_of_any("groups")
    last = evidence.history.before
    # Snapshots after the last audit's were judged by none: one of them may have shown the loss already.
    judged = [one for one in evidence.history.snapshots if last is not None and one.taken_ms <= last.taken_ms]
    before = next((one for one in reversed(judged) if _group_scope(one) == scope), None)
    return {
        "group_count": F.lit(listed if listed or not untold else None).cast("bigint"),
        "group_count_before": F.lit(0 if before is None else before.manifest["files"].get("groups.parquet", {}).get("rows")).cast("bigint"),
    }


def _group_scope(snapshot: Snapshot) -> object:
    return (snapshot.manifest.get("scope") or {}).get("groups")


def _earlier_snapshots(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row: incomplete_snapshots array<string> and clock_skew_before_ms bigint. A snapshot that names no broker is not whole."""
    ids = [one.snapshot_id for one in evidence.history.snapshots]
    if not ids:
        none = (F.lit([]).cast("array<string>").alias("incomplete_snapshots"), F.lit(None).cast("bigint").alias("clock_skew_before_ms"))
        return evidence.spark.range(1).select(*none)
    silent = F.array_sort(F.collect_list(F.when(~(F.col("alive") & F.col("answered")), F.col("broker_id"))))
    brokers = evidence.series("brokers", "broker_id", "alive", "answered").groupBy("snapshot_id").agg(silent.alias("silent"))
    whole = brokers.join(_clock_skews(evidence), on="snapshot_id", how="left").where(F.col("snapshot_id").isin(ids))
    clock_hidden = policy.managed_service is not None and "quorum" in policy.managed_service.datasets
    names = F.array_join(F.transform("silent", lambda broker: broker.cast("string")), ", ")
    said = (
        F.when(F.size("silent") > 0, F.concat(F.lit("without broker "), names))
        .when(F.col("skew_ms").isNull() & F.lit(not clock_hidden), F.lit("its clock could not be compared with the cluster's"))
        .otherwise(F.lit(""))
    )
    of_snapshot = F.map_from_entries(F.collect_list(F.struct("snapshot_id", said.alias("said"))))
    found = whole.agg(of_snapshot.alias("said"), F.max(F.abs("skew_ms")).alias("clock_skew_before_ms"))

    def text(name: Column) -> Column:
        problem = F.coalesce(F.col("said")[name], F.lit("it names no broker"))
        return F.when(problem != "", F.concat(name, F.lit(": "), problem))

    texts = F.filter(F.transform(F.lit(ids).cast("array<string>"), text), lambda one: one.isNotNull())
    return found.select(F.slice(texts, 1, _LISTED).alias("incomplete_snapshots"), "clock_skew_before_ms")


def _clock_skews(evidence: Evidence) -> DataFrame:
    """snapshot_id and skew_ms (auditor's clock minus the quorum leader's, NULL where not told) of this snapshot and the earlier ones."""
    leader = F.col("is_leader") & (F.col("last_caught_up_timestamp_ms") >= 0)
    skew = F.unix_millis("read_at") - F.col("last_caught_up_timestamp_ms")
    rows = evidence.series("quorum", "is_leader", "last_caught_up_timestamp_ms", "read_at")
    return rows.groupBy("snapshot_id").agg(F.max(F.when(leader, skew)).alias("skew_ms"))
