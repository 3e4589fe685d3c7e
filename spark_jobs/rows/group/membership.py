"""Members of groups and what is assigned to them, with the reason where they could not be described."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from spark_jobs.engine.evidence import Evidence, shortened
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts

WITHOUT_MEMBERS = ("Empty", "Dead")


@shortened
def groups_with_members(evidence: Evidence) -> DataFrame:
    """The groups dataset plus member_count int, assigned_topics array<string> and errors map<dataset, reason>.

    ``member_count`` and ``assigned_topics`` are NULL, and ``errors['members']`` is set, when the members could not be described.
    """
    facts = broker_facts(evidence)
    groups = missing.with_item_errors(evidence.table("groups"), missing.of_groups(evidence))
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


@shortened
def assignments(evidence: Evidence) -> DataFrame:
    """group_id, topic, partition of everything that is assigned to a member."""
    return evidence.table("members").select("group_id", F.inline("assignment")).distinct()


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
        F.when(F.col("members").isNull() & ~F.col("state").isin(*WITHOUT_MEMBERS), contradiction),
    )
