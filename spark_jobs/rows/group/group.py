"""Wide rows of groups: state, members, assignment and what the history shows of them."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy import Policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows.group.commit_behaviour import with_group_behaviour
from spark_jobs.rows.group.membership import groups_with_members
from spark_jobs.rows.group.past_groups import past_groups
from spark_jobs.rows.group.subscriptions import unassigned
from spark_jobs.rows.tiers import tier_of_group


def build(evidence: Evidence, policy: Policy) -> DataFrame:
    """One row for each group of the groups dataset."""
    groups = groups_with_members(evidence).transform(with_group_behaviour, evidence)
    groups = groups.join(past_groups(evidence), on="group_id", how="left").join(unassigned(evidence), on="group_id", how="left")
    stable = (F.col("state") == "Stable") & ~F.map_contains_key("errors", F.lit("members"))
    return groups.withColumns(
        {
            "resource": F.col("group_id"),
            "unassigned_partitions": F.when(stable, F.col("unassigned_partitions")),
            "unassigned_count": F.when(stable, F.col("unassigned_count")),
            "tier": tier_of_group(policy, F.col("group_id")),
        }
    )
