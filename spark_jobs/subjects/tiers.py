"""What the policy asks of a topic or a group, as Spark expressions: the first pattern that matches decides."""

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafka_audit.policy import Policy, glob_to_regex


def matches_any(name: Column, globs: list[str]) -> Column:
    """Whether a name matches one of the globs; no globs at all match everything."""
    matched = F.lit(not globs)
    for glob in globs:
        matched = matched | name.rlike(glob_to_regex(glob))
    return matched


def tier_of(policy: Policy, topic: Column) -> Column:
    """The name of a topic's tier."""
    tier = F.lit(policy.default_tier)
    for rule in reversed(policy.topics):
        tier = F.when(topic.rlike(glob_to_regex(rule.pattern)), F.lit(rule.tier)).otherwise(tier)
    return tier


def topic_policy(policy: Policy, topic: Column) -> Column:
    """What a topic's tier asks for, as struct<tier, replication_factor, min_insync_replicas, retention_ms>."""
    tier = tier_of(policy, topic)

    def asked(field: str, kind: str) -> Column:
        value = F.lit(None)
        for name, each in policy.tiers.items():
            value = F.when(tier == F.lit(name), F.lit(getattr(each, field))).otherwise(value)
        return value.cast(kind).alias(field)

    return F.struct(
        tier.alias("tier"), asked("replication_factor", "int"), asked("min_insync_replicas", "int"), asked("retention_ms", "bigint")
    ).alias("policy")


def group_policy(policy: Policy, group: Column) -> Column:
    """The lag SLA of a group as struct<sla, max_lag_records>; both NULL when no pattern matches."""
    name, limit = F.lit(None), F.lit(None)
    for sla in reversed(policy.slas):
        matched = group.rlike(glob_to_regex(sla.pattern))
        name = F.when(matched, F.lit(sla.name)).otherwise(name)
        limit = F.when(matched, F.lit(sla.max_lag_records)).otherwise(limit)
    return F.struct(name.cast("string").alias("sla"), limit.cast("bigint").alias("max_lag_records")).alias("policy")
