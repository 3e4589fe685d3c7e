"""What the policy asks of a topic or a group, as Spark expressions: the first pattern that matches decides."""

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafka_audit.policy import Policy, glob_to_regex
from kafka_audit.policy.tiers import GroupRule, TopicRule

_DECLARED = {
    "cleanup_policy": "string",
    "unique_keys": "boolean",
    "producer_clocks_attested": "boolean",
    "power_domains_attested": "boolean",
}
"""Fields of a topic rule that owners declare, with their Spark SQL types."""


def matches_any(name: Column, globs: list[str]) -> Column:
    """Whether a name matches one of the globs; no globs at all match everything."""
    matched = F.lit(not globs)
    for glob in globs:
        matched = matched | name.rlike(glob_to_regex(glob))
    return matched


def _first_match(name: Column, rules: Sequence[TopicRule | GroupRule], field: str, kind: str) -> Column:
    """A field of the first rule whose pattern matches the name; NULL when none does or it says nothing."""
    found = F.lit(None).cast(kind)
    for rule in reversed(rules):
        found = F.when(name.rlike(glob_to_regex(rule.pattern)), F.lit(getattr(rule, field, None)).cast(kind)).otherwise(found)
    return found


def tier_of(policy: Policy, topic: Column) -> Column:
    """The name of a topic's tier."""
    return F.coalesce(_first_match(topic, policy.topics, "tier", "string"), F.lit(policy.default_tier))


def tier_of_group(policy: Policy, group: Column) -> Column:
    """The name of a group's tier."""
    return F.coalesce(_first_match(group, policy.groups, "tier", "string"), F.lit(policy.default_tier))


def strictest(policy: Policy, *tiers: Column) -> Column:
    """The one that stands first in the policy; NULLs are passed over."""
    ranks = {name: rank for rank, name in enumerate(policy.tiers)}

    def rank(tier: Column) -> Column:
        return F.coalesce(*[F.when(tier == name, F.lit(number)) for name, number in ranks.items()])

    least = F.least(*[rank(tier) for tier in tiers]) if len(tiers) > 1 else rank(tiers[0])
    return F.coalesce(*[F.when(least == number, F.lit(name)) for name, number in ranks.items()])


def topic_policy(policy: Policy, topic: Column) -> Column:
    """The column ``policy`` of topics and partitions: what the tier asks for and what the owner declares (kafka_audit.subjects)."""
    tier = tier_of(policy, topic)

    def asked(field: str, kind: str) -> Column:
        value = F.lit(None)
        for name, each in policy.tiers.items():
            value = F.when(tier == F.lit(name), F.lit(getattr(each, field))).otherwise(value)
        return value.cast(kind)

    def declared(field: str, kind: str) -> Column:
        return _first_match(topic, policy.topics, field, kind)

    return F.struct(
        tier.alias("tier"),
        F.coalesce(declared("owner", "string"), asked("owner", "string")).alias("owner"),
        (asked("rpo_seconds", "bigint") * 1000).alias("rpo_ms"),
        asked("replication_factor", "int").alias("replication_factor"),
        asked("min_insync_replicas", "int").alias("min_insync_replicas"),
        asked("retention_ms", "bigint").alias("retention_ms"),
        *[declared(field, kind).alias(field) for field, kind in _DECLARED.items()],
    ).alias("policy")


def group_policy(policy: Policy, group: Column) -> Column:
    """The column ``policy`` of groups: tier and lag SLA; the SLA's fields are NULL when no pattern matches."""
    name, records, seconds = F.lit(None), F.lit(None), F.lit(None)
    for sla in reversed(policy.slas):
        matched = group.rlike(glob_to_regex(sla.pattern))
        name = F.when(matched, F.lit(sla.name)).otherwise(name)
        records = F.when(matched, F.lit(sla.max_lag_records)).otherwise(records)
        seconds = F.when(matched, F.lit(sla.max_lag_seconds)).otherwise(seconds)
    return F.struct(
        tier_of_group(policy, group).alias("tier"),
        name.cast("string").alias("sla"),
        records.cast("bigint").alias("max_lag_records"),
        (seconds.cast("bigint") * 1000).alias("max_lag_ms"),
    ).alias("policy")
