"""Wide rows of the partitions that groups read: where each group stands in the log, and what it lost."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.datasets import Evidence
from spark_jobs.subjects import missing
from spark_jobs.subjects.broker_facts import broker_facts
from spark_jobs.subjects.burrow import with_burrow
from spark_jobs.subjects.commit_behaviour import with_partition_behaviour
from spark_jobs.subjects.configs import config_by, value_of, values_of_all_brokers, whole_number
from spark_jobs.subjects.lag_sla import hidden_record, with_demanded_offsets, with_sla
from spark_jobs.subjects.lag_status import with_status
from spark_jobs.subjects.lag_time import with_first_unread, with_lag_time
from spark_jobs.subjects.lag_window import with_window
from spark_jobs.subjects.loss import with_loss
from spark_jobs.subjects.membership import assignments, groups_with_members
from spark_jobs.subjects.past_commits import past_commits, with_past_commits
from spark_jobs.subjects.past_ends import past_ends
from spark_jobs.subjects.past_groups import past_groups
from spark_jobs.subjects.tiers import strictest, tier_of, tier_of_group
from spark_jobs.subjects.topic_listing import exists, unlisted_reason, with_listing
from spark_jobs.tables import table_of

_KEYS = ["group_id", "topic", "partition"]
_PLACE = ["topic", "partition"]
_MINUTE_MS = 60_000
_SPENT = (
    *("group_errors", "item_errors", "listing_reason", "assigned_topics", "base_offset", "last_offset", "is_control"),
    *("same", "commits", "log_starts", "log_ends", "ends_at", "idle", "peopled", "expiry_measured", "seen", "steps"),
    *("record_lag_ms", "record_error", "record_sought"),
)


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each partition that a group has committed, or was asked for, or has assigned to a member."""
    tier = strictest(policy, tier_of(policy, F.col("topic")), tier_of_group(policy, F.col("group_id")))
    rows = positions(evidence).withColumn("tier", tier).transform(with_partition_behaviour, evidence)
    return rows.transform(with_sla, policy).transform(with_status)


def positions(evidence: Evidence) -> DataFrame:
    """The wide rows without what the policy adds, and ``lags`` array<bigint> by age. Computed once for a snapshot and kept."""
    # A checkpoint and not persist(): every query that stands on these would analyse their joins again.
    return evidence.remembered("positions", lambda: evidence.tables.checkpoint(_positions(evidence)))


def _positions(evidence: Evidence) -> DataFrame:
    rows = _places(evidence).join(_groups(evidence), on="group_id", how="left")
    rows = rows.join(_offsets(evidence), on=_PLACE, how="left").join(_sizes(evidence), on=_PLACE, how="left")
    rows = rows.join(_retention(evidence), on="topic", how="left").transform(with_listing, evidence)
    levels = (missing.of_topics(evidence), missing.of_partitions(evidence), missing.of_group_partitions(evidence))
    rows = missing.with_item_errors(rows, *levels).withColumn("listing_reason", _listing_reason(evidence))
    rows = rows.withColumns({"topic_exists": exists(F.col("listing_reason")), "errors": _errors(evidence)})
    rows = rows.withColumns(_commitment()).withColumns(_lag()).transform(with_first_unread, evidence)
    rows = rows.withColumns(
        {"only_markers_unread": _only_markers_unread(), "hidden_record": hidden_record(), "errors": _with_record_error()}
    )
    rows = rows.join(past_ends(evidence), on=_PLACE, how="left").transform(with_past_commits, evidence).transform(with_lag_time, evidence)
    rows = rows.transform(with_window, evidence).transform(with_burrow, evidence).transform(with_demanded_offsets, evidence)
    place = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    rows = rows.withColumns(
        {
            "resource": F.concat_ws(":", "group_id", place),
            "unread_bytes": _unread_bytes(),
            "offsets_retention_ms": _offsets_retention(evidence),
        }
    )
    return rows.transform(with_loss).drop(*_SPENT)


def _places(evidence: Evidence) -> DataFrame:
    """Every (group, topic, partition) with a committed offset, an answer that there is none, or an assignment."""
    commits = evidence.table("committed_offsets").select(
        *_KEYS,
        F.when(F.col("committed") >= 0, F.col("committed")).alias("committed"),
        F.col("error").alias("commit_error"),
        F.lit(True).alias("asked"),
    )
    assigned = assignments(evidence).withColumn("in_assignment", F.lit(True))
    return commits.join(assigned, on=_KEYS, how="full").join(past_commits(evidence), on=_KEYS, how="left")


def _retention(evidence: Evidence) -> DataFrame:
    """topic, compacted, deletes and tiered boolean, retention_ms and retention_bytes bigint, of the topics whose configuration was read."""
    return config_by(evidence, "topic_configs", "topic").select(
        "topic",
        F.contains(value_of("cleanup.policy"), F.lit("compact")).alias("compacted"),
        F.contains(value_of("cleanup.policy"), F.lit("delete")).alias("deletes"),
        # A broker that does not know the key cannot tier.
        F.coalesce(value_of("remote.storage.enable") == "true", F.lit(False)).alias("tiered"),
        whole_number("retention.ms").alias("retention_ms"),
        whole_number("retention.bytes").alias("retention_bytes"),
    )


def _groups(evidence: Evidence) -> DataFrame:
    columns = ("group_id", "group_type", "protocol_type", "state", "assigned_topics")
    groups = groups_with_members(evidence).select(*columns, F.col("errors").alias("group_errors"))
    return groups.join(past_groups(evidence).select("group_id", "empty_ms", "empty_within_ms", "peopled"), on="group_id", how="left")


def _offsets(evidence: Evidence) -> DataFrame:
    leaders = evidence.table("partitions").select(*_PLACE, "leader")
    columns = ("log_start", "log_end", "last_stable", "headroom_timestamp_ms", "headroom_offset")
    offsets = evidence.table("offsets").select(*_PLACE, *columns, F.col("error").alias("offsets_error"))
    return leaders.join(offsets, on=_PLACE, how="full").join(_last_batches(evidence), on=_PLACE, how="left")


def _last_batches(evidence: Evidence) -> DataFrame:
    """topic, partition, base_offset, last_offset and is_control of the batches that could be read."""
    if not evidence.snapshot.dataset("last_batches").is_file():  # snapshots did not always keep them
        return table_of(evidence.spark, [], "topic string, partition int, base_offset bigint, last_offset bigint, is_control boolean")
    batches = evidence.table("last_batches").where(F.col("error").isNull())
    return batches.select(*_PLACE, "base_offset", "last_offset", "is_control")


def _sizes(evidence: Evidence) -> DataFrame:
    current = evidence.table("replica_sizes").where(~F.col("is_future"))
    return current.groupBy(*_PLACE).agg(F.max("size_bytes").alias("size_bytes"))


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
    )
    return missing.joined(of_row, F.col("item_errors"), F.col("group_errors"), missing.whole_datasets(evidence))


def _commitment() -> dict[str, Column]:
    """assigned, has_commit and abandoned boolean."""
    share = F.coalesce(F.col("group_type") == "share", F.lit(False))
    refused = F.map_contains_key("errors", F.lit("committed_offsets"))
    # Kafka leaves out of a group's commits the topics that the auditor may not describe; one that metadata shows is not among these.
    none = F.when(~share & ~refused & F.coalesce("asked", "topic_exists"), F.lit(False))
    known = F.col("assigned_topics").isNotNull()
    left = ~F.array_contains("assigned_topics", F.col("topic")) & (F.size("assigned_topics") > 0) & (F.col("state") == "Stable")
    return {
        "assigned": F.coalesce("in_assignment", F.when(known, F.lit(False))),
        "has_commit": F.when(~share & F.col("committed").isNotNull(), F.lit(True)).otherwise(none),
        "abandoned": F.coalesce(left, F.lit(False)),
    }


def _lag() -> dict[str, Column]:
    """lag, lost and beyond_end bigint; all NULL for a share group and where an offset is not known."""
    committed, start, end = (F.when(F.col("has_commit"), F.col(name)) for name in ("committed", "log_start", "log_end"))
    position = F.when(start.isNotNull() & committed.isNotNull(), F.greatest(committed, start))
    return {"lag": _not_negative(end - position), "lost": _not_negative(start - committed), "beyond_end": _not_negative(committed - end)}


def _only_markers_unread() -> Column:
    """Whether nothing but ends of transactions follows the committed offset; NULL without lag or when it could not be read."""
    reaches_the_end = F.col("last_offset") >= F.col("log_end") - 1
    by_last_batch = F.when(reaches_the_end, F.col("is_control") & (F.col("base_offset") <= F.col("position")))
    return F.when(F.col("lag") > 0, F.when(F.col("record_sought"), F.col("record_offset").isNull()).otherwise(by_last_batch))


def _with_record_error() -> Column:
    return missing.joined(F.col("errors"), missing.extra(first_unread=F.col("record_error")))


def _offsets_retention(evidence: Evidence) -> Column:
    values = values_of_all_brokers(evidence).get("offsets.retention.minutes", [])
    minutes = [int(value) for value in values if value.isdecimal()]
    return F.lit(min(minutes) * _MINUTE_MS if minutes and len(minutes) == len(values) else None).cast("bigint")


def _not_negative(value: Column) -> Column:
    return F.when(value < 0, F.lit(0).cast("bigint")).otherwise(value)


def _unread_bytes() -> Column:
    records = F.col("log_end") - F.col("log_start")
    estimate = F.ceil(F.col("size_bytes").cast("double") * F.col("lag") / records).cast("bigint")
    return F.when(F.col("lag") == 0, F.lit(0).cast("bigint")).when(records > 0, estimate)
