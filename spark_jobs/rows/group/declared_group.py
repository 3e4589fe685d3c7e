"""Wide rows of the groups that the policy declares: are they there, and at work?"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows import missing
from spark_jobs.rows.broker.broker_facts import broker_facts
from spark_jobs.rows.group.membership import groups_with_members
from spark_jobs.rows.tiers import matches_any
from spark_jobs.rows.topic.declared_topic import named_rows


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each declared group."""
    groups = groups_with_members(evidence).select(
        "group_id", "group_type", "state", "member_count", F.col("errors").alias("group_errors"), F.lit(True).alias("listed")
    )
    rows = named_rows(evidence, "group_id", policy.declared_groups).join(groups, on="group_id", how="left")
    rows = missing.with_item_errors(rows, missing.of_groups(evidence))
    reason = _unlisted_reason(evidence)
    errors = missing.joined(F.col("item_errors"), F.col("group_errors"), missing.extra(groups=reason), missing.whole_datasets(evidence))
    present = F.when(reason.isNull(), F.coalesce(F.col("listed"), F.lit(False)))
    return rows.withColumns({"resource": F.col("group_id"), "present": present, "errors": errors})


def _unlisted_reason(evidence: Evidence) -> Column:
    """Why it is not known whether a group exists that no broker listed; NULL when it is known."""
    return (
        F.when(F.col("listed"), F.lit(None).cast("string"))
        .when(F.lit(missing.failed(evidence, "groups")), F.lit(evidence.whole_dataset_errors.get("groups")).cast("string"))
        .when(~matches_any(F.col("group_id"), evidence.group_scope), F.lit("it is outside the scope of this snapshot"))
        .otherwise(F.coalesce(F.col("item_errors")["groups"], F.lit(broker_facts(evidence).unread_of_any("groups")).cast("string")))
    )
