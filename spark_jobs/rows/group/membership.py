"""Members of groups and what is assigned to them, with the reason where they could not be described; and what earlier snapshots show."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.lag.samples import newest, with_age
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts

_WITHOUT_MEMBERS = ("Empty", "Dead")
_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
_UNKNOWN = ("", "Unknown")


@shortened
def groups_with_members(evidence: Evidence) -> DataFrame:
    """The groups dataset plus member_count int, assigned_topics array<string> and errors map<dataset, reason>.

    ``member_count`` and ``assigned_topics`` are NULL, and ``errors['members']`` is set, when the members could not be described.
    """
    facts = broker_facts(evidence)
    groups = missing.with_item_errors(evidence.table("groups"), evidence, missing.GROUPS)
    rows = groups.join(_members(evidence), on="group_id", how="left")
    of_row = missing.extra(
        members=_members_reason(facts.unread_of("members", F.col("coordinator_id"))),
        committed_offsets=facts.unread_of("committed_offsets", F.col("coordinator_id")),
    )
    rows = rows.withColumn("errors", missing.joined(of_row, F.col("item_errors"), missing.whole_datasets(evidence))).drop("item_errors")
    described = ~F.map_contains_key("errors", F.lit("members"))
    topics = F.coalesce("assigned_topics", F.array().cast("array<string>"))
    return rows.withColumns(
        {"member_count": F.when(described, F.coalesce("members", F.lit(0))), "assigned_topics": F.when(described, topics)}
    )


def that_consume(groups: DataFrame) -> DataFrame:
    """The groups dataset without groups of other protocols, such as that of Kafka Connect's workers: they share work and commit nothing."""
    return groups.where(F.coalesce(F.col("protocol_type").isin("", "consumer", "share", "streams"), F.lit(True)))


@shortened
def assignments(evidence: Evidence) -> DataFrame:
    """group_id, topic, partition of everything that is assigned to a member."""
    return evidence.table("members").select("group_id", F.inline("assignment")).distinct()


@shortened
def topics_of_groups(evidence: Evidence) -> DataFrame:
    """group_id, topic of everything that a group has committed or a member has assigned."""
    commits = evidence.table("committed_offsets").select("group_id", "topic")
    return commits.union(assignments(evidence).select("group_id", "topic")).distinct()


def _members(evidence: Evidence) -> DataFrame:
    return (
        evidence.table("members")
        .groupBy("group_id")
        .agg(
            F.count("*").cast("int").alias("members"),
            F.count_if(F.col("assignment").isNull()).alias("undescribed"),
            F.array_sort(F.array_distinct(F.flatten(F.collect_list("assignment.topic")))).alias("assigned_topics"),
        )
    )


def _members_reason(not_asked: Column | None) -> Column | None:
    """Why the members of a group are not known."""
    undescribed = F.concat(F.lit("the assignment of "), F.col("undescribed").cast("string"), F.lit(" members could not be described"))
    # A group at work has members; seeing none of them means that they were not told.
    contradiction = F.concat(F.lit("no member was described although the group's state is "), F.col("state"))
    return missing.first_known(
        F.col("error"),
        not_asked,
        F.when(F.col("undescribed") > 0, undescribed),
        F.when(F.col("members").isNull() & ~F.col("state").isin(*_WITHOUT_MEMBERS), contradiction),
    )


@shortened
def past_groups(evidence: Evidence) -> DataFrame:
    """group_id, snapshots, snapshots_rebalancing int, history_ms, empty_ms and empty_within_ms bigint (kafka_audit.catalogue.rows).

    ``ages_with_members`` array<int>: the ages (spark_jobs.lag.samples) at which it had members, newest first.
    """
    known = F.col("state").isNotNull() & ~F.col("state").isin(*_UNKNOWN)
    empty, age = F.col("state").isin(*_WITHOUT_MEMBERS), F.col("age")
    groups = (
        with_age(evidence, "groups", "group_id", "state")
        .groupBy("group_id")
        .agg(
            F.count_if(known).cast("int").alias("snapshots"),
            F.count_if(F.col("state").isin(*_REBALANCING)).cast("int").alias("snapshots_rebalancing"),
            F.max(F.when(known, age)).alias("first"),
            F.sort_array(F.collect_list(F.when(empty, age))).alias("empty_ages"),
            F.sort_array(F.collect_list(F.when(known & ~empty, age))).alias("ages_with_members"),
        )
    )
    had_members = F.get("ages_with_members", F.lit(0))
    since_then = F.filter("empty_ages", lambda age: F.coalesce(age < had_members, F.lit(True)))
    is_empty = F.get("empty_ages", F.lit(0)) == 0
    times = F.lit([one.taken_ms for one in newest(evidence)])

    def since(age: Column) -> Column:
        return F.lit(evidence.taken_ms) - F.get(times, age)

    return groups.select(
        "group_id",
        "snapshots",
        since(F.col("first")).alias("history_ms"),
        "snapshots_rebalancing",
        F.when(is_empty, since(F.element_at(since_then, -1))).alias("empty_ms"),
        F.when(is_empty, since(had_members)).alias("empty_within_ms"),
        "ages_with_members",
    )
