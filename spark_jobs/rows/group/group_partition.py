"""Wide rows of the partitions that groups read: where each group stands in the log, and what it lost."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.lag.position import PERHAPS_LEFT
from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.lag import positions as lag_positions
from spark_jobs.lag.movement import with_movement
from spark_jobs.lag.positions import offsets_between
from spark_jobs.lag.slas import with_behind_sla
from spark_jobs.lag.status import with_status
from spark_jobs.lag.time import with_lag_time, with_loss
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts
from spark_jobs.rows.broker.configs import numbers_of_all_brokers, value_of, whole_number
from spark_jobs.rows.broker.inherited import topic_config
from spark_jobs.rows.group.commit_behaviour import with_partition_behaviour
from spark_jobs.rows.group.membership import groups_with_members, past_groups
from spark_jobs.rows.group.unlisted_groups import has_unlisted, unlisted_places
from spark_jobs.rows.tiers import isolation_of, sla_number, sla_policy, strictest, tier_of, tier_of_group
from spark_jobs.rows.topic.partition import largest_replicas
from spark_jobs.rows.topic.topic_listing import exists, unlisted_reason, with_listing

_PLACE = ["topic", "partition"]
_MINUTE_MS = 60_000


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each partition that a group has committed, or was asked for, or has assigned to a member, or that it had if unlisted."""
    tier = strictest(policy, tier_of(policy, F.col("topic")), tier_of_group(policy, F.col("group_id")))
    rows = positions(evidence).withColumn("tier", tier).transform(with_partition_behaviour, evidence)
    rows = rows.transform(with_sla, policy).transform(with_status)
    if not has_unlisted(evidence):
        return rows
    said = {"tier": tier, "resource": _resource(), "status": F.lit("NOT_ASSESSED"), "status_reason": F.col("errors")["groups"]}
    return rows.unionByName(unlisted_places(evidence).withColumns(said), allowMissingColumns=True)


def with_sla(rows: DataFrame, policy: Policy) -> DataFrame:
    """Adds sla_seconds int, the limit of the SLA of the group on the topic, and what it says (spark_jobs.lag.slas.with_behind_sla).

    And isolation string (spark_jobs.rows.tiers.isolation_of).
    """
    rows = rows.withColumns({"sla": sla_number(policy, "group_id", "topic"), "isolation": isolation_of(policy, F.col("group_id"))})
    limit = sla_policy(policy, F.col("group_id"), F.col("sla"))["max_lag_ms"] / 1000
    return rows.withColumn("sla_seconds", limit.cast("int")).transform(with_behind_sla)


def positions(evidence: Evidence) -> DataFrame:
    """The wide rows without what the policy adds, and lags_by_age (spark_jobs.lag.movement). Computed once for a snapshot and kept."""
    # A checkpoint and not persist(): every query that uses these would analyse their joins again.
    return evidence.memo("positions", lambda: evidence.tables.checkpoint(_positions(evidence)))


def _positions(evidence: Evidence) -> DataFrame:
    rows = lag_positions.positions(evidence.tables, [evidence.snapshot], assigned=True).drop("snapshot_id", "group_type", "state")
    rows = rows.withColumnRenamed("only_markers", "only_markers_unread")
    rows = rows.join(_groups(evidence), on="group_id", how="left").join(_partitions(evidence), on=_PLACE, how="left")
    rows = rows.join(largest_replicas(evidence, *_PLACE), on=_PLACE, how="left").join(_retention(evidence), on="topic", how="left")
    rows = rows.transform(with_listing, evidence)
    rows = rows.join(evidence.table("topics").select("topic", "partition_count"), on="topic", how="left")
    rows = missing.with_item_errors(rows, evidence, missing.TOPICS, missing.PARTITIONS, missing.GROUP_PARTITIONS)
    rows = rows.withColumn("listing_reason", _listing_reason(evidence))
    # A topic that was created again may have fewer partitions.
    is_gone = F.coalesce(F.col("partition") >= F.col("partition_count"), F.lit(False))
    topic_exists = F.when(is_gone, F.lit(False)).otherwise(exists(F.col("listing_reason")))
    rows = rows.withColumns({"is_gone": is_gone, "topic_exists": topic_exists, "errors": _errors(evidence)})
    minutes = numbers_of_all_brokers(evidence, "offsets.retention.minutes")
    rows = rows.withColumns(
        {
            **_commitment(),
            "resource": _resource(),
            "unread_bytes": _unread_bytes(),
            "offsets_retention_ms": F.lit(min(minutes) * _MINUTE_MS if minutes else None).cast("bigint"),
        }
    )
    rows = rows.drop(
        "group_errors", "item_errors", "listing_reason", "assigned_topics", "commit_error", "offsets_error", "log_asked", "partition_count"
    )
    return rows.transform(with_movement, evidence).transform(with_lag_time).transform(with_loss)


def _resource() -> Column:
    return F.concat_ws(":", "group_id", F.concat_ws("-", "topic", F.col("partition").cast("string")))


def _groups(evidence: Evidence) -> DataFrame:
    columns = ("group_id", "group_type", "protocol_type", "state", "assigned_topics")
    groups = groups_with_members(evidence).select(*columns, F.col("errors").alias("group_errors"))
    past = past_groups(evidence).select("group_id", "empty_ms", "empty_within_ms", "ages_with_members")
    return groups.join(past, on="group_id", how="left")


def _partitions(evidence: Evidence) -> DataFrame:
    leaders = evidence.table("partitions").select(*_PLACE, "leader")
    headroom = evidence.table("offsets").select(*_PLACE, "headroom_timestamp_ms", "headroom_offset")
    return leaders.join(headroom, on=_PLACE, how="full")


def _retention(evidence: Evidence) -> DataFrame:
    """topic, compacted, deletes and tiered boolean, retention_ms and retention_bytes bigint, of the topics whose configuration was read."""
    return topic_config(evidence).select(
        "topic",
        F.contains(value_of("cleanup.policy"), F.lit("compact")).alias("compacted"),
        F.contains(value_of("cleanup.policy"), F.lit("delete")).alias("deletes"),
        # A broker that does not know the key cannot tier.
        F.coalesce(value_of("remote.storage.enable") == "true", F.lit(False)).alias("tiered"),
        whole_number("retention.ms").alias("retention_ms"),
        whole_number("retention.bytes").alias("retention_bytes"),
    )


def _listing_reason(evidence: Evidence) -> Column:
    """Why it is not known whether the topic exists. A commit that was shown proves Describe on its topic: metadata hides nothing."""
    shown = F.col("committed").isNotNull() & F.col("listing_error").isNull() & F.col("on_disk").isNull()
    proven = shown & F.lit(not missing.failed(evidence, "topics")) & F.col("item_errors")["topics"].isNull()
    return F.when(~proven, unlisted_reason(evidence))


def _errors(evidence: Evidence) -> Column:
    of_row = missing.extra(
        topics=F.col("listing_reason"),
        offsets=missing.first_known(F.col("offsets_error"), broker_facts(evidence).unread_of("offsets", F.col("leader"))),
        committed_offsets=F.col("commit_error"),
        members=F.when(F.col("abandoned").isNull(), F.lit(PERHAPS_LEFT)),
    )
    levels = (of_row, F.col("item_errors"), F.col("group_errors"), missing.whole_datasets(evidence))
    return missing.joined(*levels, missing.extra(first_unread=F.col("record_error")))


def _commitment() -> dict[str, Column]:
    """assigned, has_commit and abandoned boolean."""
    refused = F.map_contains_key("errors", F.lit("committed_offsets"))
    # Kafka leaves out of a group's commits the topics that the auditor may not describe; one that metadata shows is not among these.
    none = F.when(~refused & F.coalesce("asked", "topic_exists"), F.lit(False))
    known = F.col("assigned_topics").isNotNull()
    return {
        "assigned": F.coalesce("in_assignment", F.when(known, F.lit(False))),
        "has_commit": F.when(F.col("committed").isNotNull(), F.lit(True)).otherwise(none),
        # What some members tell is no proof that nobody reads the topic.
        "abandoned": F.when(known | ~F.col("abandoned"), F.col("abandoned")).when(~lag_positions.lost_or_unread(), F.lit(False)),
    }


def _unread_bytes() -> Column:
    records = offsets_between(F.col("log_start"), F.col("log_end"))
    estimate = F.ceil(F.col("size_bytes").cast("double") * F.col("lag") / records).cast("bigint")
    return F.when(F.col("lag") == 0, F.lit(0).cast("bigint")).when(records > 0, estimate)
