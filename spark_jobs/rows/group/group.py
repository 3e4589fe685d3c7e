"""Wide rows of groups: state, members, assignment and what the history shows of them."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.lag.positions import offsets_between
from spark_jobs.rows import missing
from spark_jobs.rows.group.commit_behaviour import with_group_behaviour
from spark_jobs.rows.group.membership import assignments, groups_with_members, past_groups
from spark_jobs.rows.group.unlisted_groups import with_unlisted_groups
from spark_jobs.rows.tiers import tier_of_group
from spark_jobs.rows.topic.topic_listing import perhaps_hidden

_PLACE = ["topic", "partition"]
_SHOWN = 20


def _names_of(places: str) -> Column:
    """A list of topic and partition as texts such as ``orders-0``."""
    return F.transform(places, lambda place: F.concat_ws("-", place["topic"], place["partition"].cast("string")))


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each group of the groups dataset, and for each unlisted one."""
    groups = groups_with_members(evidence).transform(with_group_behaviour, evidence)
    groups = groups.join(past_groups(evidence), on="group_id", how="left").join(_unassigned(evidence), on="group_id", how="left")
    groups = groups.join(_uncommitted(evidence), on="group_id", how="left")
    read = ~F.map_contains_key("errors", F.lit("committed_offsets"))
    stable = (F.col("state") == "Stable") & ~F.map_contains_key("errors", F.lit("members"))
    rows = groups.withColumns(
        {
            "resource": F.col("group_id"),
            "unassigned_partitions": F.when(stable, F.col("unassigned_partitions")),
            "unassigned_count": F.when(stable, F.col("unassigned_count")),
            "commit_count": F.coalesce("commit_count", F.when(read, F.lit(0))),
            "uncommitted_count": F.when(read, F.col("uncommitted_count")),
            "uncommitted_partitions": F.when(read, F.col("uncommitted_partitions")),
            "errors": missing.joined(missing.extra(offsets=F.col("unread_place")), F.col("errors")),
            "tier": tier_of_group(policy, F.col("group_id")),
        }
    )
    return with_unlisted_groups(rows, evidence, policy)


def _uncommitted(evidence: Evidence) -> DataFrame:
    """group_id, commit_count int, and for Empty groups uncommitted_count int, uncommitted_partitions array<string> and unread_place.

    ``unread_place`` is a partition without a commit whose offsets could not be read, with the reason; then the other two are NULL unless
    something was found.
    """
    commits = evidence.table("committed_offsets").where("committed is not null or error is not null")
    counted = commits.groupBy("group_id").agg(F.count("committed").cast("int").alias("commit_count"))
    empty = evidence.table("groups").where("state = 'Empty'").select("group_id")
    topics = commits.where("committed is not null").select("group_id", "topic").distinct().join(empty, on="group_id", how="left_semi")
    logs = evidence.table("offsets").select(*_PLACE, offsets_between(F.col("log_start"), F.col("log_end")).alias("records"), "error")
    places = topics.join(logs, on="topic", how="inner").join(commits.select("group_id", *_PLACE), on=["group_id", *_PLACE], how="left_anti")
    name = F.concat_ws("-", "topic", F.col("partition").cast("string"))
    found = places.groupBy("group_id").agg(
        F.count_if(F.col("records") > 0).cast("int").alias("found"),
        F.slice(F.array_sort(F.collect_list(F.when(F.col("records") > 0, F.struct(*_PLACE)))), 1, _SHOWN).alias("places"),
        F.min(F.when(F.col("records").isNull(), F.concat_ws(": ", F.coalesce("error", F.lit("not read")), name))).alias("unread_place"),
    )
    rows = counted.join(empty.withColumn("empty", F.lit(True)), on="group_id", how="left").join(found, on="group_id", how="left")
    whole = F.col("empty") & F.col("unread_place").isNull()
    none = F.array().cast("array<string>")
    return rows.select(
        "group_id",
        "commit_count",
        F.when((F.col("found") > 0) | whole, F.coalesce("found", F.lit(0))).alias("uncommitted_count"),
        F.when((F.col("found") > 0) | whole, F.coalesce(_names_of("places"), none)).alias("uncommitted_partitions"),
        "unread_place",
    )


def _unassigned(evidence: Evidence) -> DataFrame:
    """group_id, unassigned_count int and unassigned_partitions array<string>, for groups with members.

    A topic counts as subscribed when a member names it, or has one of its partitions. Both columns are NULL when nothing was found and
    there may be more topics: a member subscribes by a regular expression, or one of the topics may be hidden from the auditor.
    """
    members = evidence.table("members")
    named = F.col("subscribed_topics")
    unnamed = members.groupBy("group_id").agg(F.count_if(named.isNull()).alias("unnamed"))
    topics = members.select("group_id", F.explode(named).alias("topic")).union(assignments(evidence).select("group_id", "topic")).distinct()
    hidden = topics.join(perhaps_hidden(evidence, topics.select("topic").distinct()), on="topic", how="left_semi")
    hidden = hidden.groupBy("group_id").agg(F.count("*").alias("hidden"))
    without = topics.join(evidence.table("partitions").select(*_PLACE), on="topic", how="inner")
    without = without.join(assignments(evidence), on=["group_id", *_PLACE], how="left_anti")
    found = without.groupBy("group_id").agg(
        F.count("*").cast("int").alias("found"), F.slice(F.array_sort(F.collect_list(F.struct(*_PLACE))), 1, _SHOWN).alias("places")
    )
    names = _names_of("places")
    rows = unnamed.join(hidden, on="group_id", how="left").join(found, on="group_id", how="left")
    whole = (F.col("unnamed") == 0) & F.col("hidden").isNull()
    return rows.select(
        "group_id",
        F.coalesce("found", F.when(whole, F.lit(0))).alias("unassigned_count"),
        F.coalesce(names, F.when(whole, F.array().cast("array<string>"))).alias("unassigned_partitions"),
    )
