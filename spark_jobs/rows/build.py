"""Builds the wide rows of a subject: one row for each of its resources, with the columns that kafka_audit.catalogue.rows lists."""

from collections.abc import Callable, Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.tables import rows_of
from spark_jobs.rows import missing
from spark_jobs.rows.broker import broker
from spark_jobs.rows.broker.broker_facts import broker_facts
from spark_jobs.rows.client import consumer, producer
from spark_jobs.rows.cluster import cluster
from spark_jobs.rows.group import group, group_partition, group_sla
from spark_jobs.rows.group.membership import groups_with_members
from spark_jobs.rows.tiers import matches_any, tier_of
from spark_jobs.rows.topic import partition, topic
from spark_jobs.rows.topic.topic_listing import exists, unlisted_reason, with_listing


def _named_rows(evidence: Evidence, column: str, names: list[str]) -> DataFrame:
    """One row for each name, in a column of that name. The names become literals, so no text in them is read as SQL."""
    return rows_of(evidence.spark, [{column: name} for name in names], f"{column}:string")


def _declared_topics(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each declared topic."""
    rows = _named_rows(evidence, "topic", policy.declared_topics)
    rows = missing.with_item_errors(with_listing(rows, evidence), evidence, missing.TOPICS)
    reason, in_scope = unlisted_reason(evidence), matches_any(F.col("topic"), evidence.topic_scope)
    errors = missing.joined(F.col("item_errors"), missing.extra(topics=reason), missing.whole_datasets(evidence))
    return rows.withColumns(
        {
            "resource": F.col("topic"),
            "in_scope": in_scope,
            "present": exists(reason),
            "tier": tier_of(policy, F.col("topic")),
            "errors": errors,
        }
    )


def _declared_groups(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each declared group."""
    groups = groups_with_members(evidence).select(
        "group_id", "group_type", "state", "member_count", F.col("errors").alias("group_errors"), F.lit(True).alias("listed")
    )
    rows = _named_rows(evidence, "group_id", policy.declared_groups).join(groups, on="group_id", how="left")
    rows = missing.with_item_errors(rows, evidence, missing.GROUPS)
    reason = _unlisted_reason(evidence)
    errors = missing.joined(F.col("item_errors"), F.col("group_errors"), missing.extra(groups=reason), missing.whole_datasets(evidence))
    present = F.when(reason.isNull(), F.coalesce(F.col("listed"), F.lit(False)))
    in_scope = matches_any(F.col("group_id"), evidence.group_scope)
    return rows.withColumns({"resource": F.col("group_id"), "in_scope": in_scope, "present": present, "errors": errors})


def _unlisted_reason(evidence: Evidence) -> Column:
    """Why it is not known whether a group exists that no broker listed; NULL when it is known."""
    return (
        F.when(F.col("listed"), F.lit(None).cast("string"))
        .when(F.lit(missing.failed(evidence, "groups")), F.lit(evidence.whole_dataset_errors.get("groups")).cast("string"))
        .when(~matches_any(F.col("group_id"), evidence.group_scope), F.lit("it is outside the scope of this snapshot"))
        .otherwise(F.coalesce(F.col("item_errors")["groups"], F.lit(broker_facts(evidence).unread_of_any("groups")).cast("string")))
    )


_BUILDERS: Mapping[str, Callable[[Evidence, Policy], DataFrame]] = {
    "broker": broker.build,
    "cluster": cluster.build,
    "consumer": consumer.build,
    "declared_group": _declared_groups,
    "declared_topic": _declared_topics,
    "group": group.build,
    "group_partition": group_partition.build,
    "group_sla": group_sla.build,
    "partition": partition.build,
    "producer": producer.build,
    "topic": topic.build,
}


def wide_rows(subject: str, evidence: Evidence, policy: Policy) -> DataFrame:
    """The wide rows of a subject, with exactly the columns of ``kafka_audit.catalogue.rows`` in their order."""
    return _BUILDERS[subject](evidence, policy).select(*SUBJECTS[subject].columns)
