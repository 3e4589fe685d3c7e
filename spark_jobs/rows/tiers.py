"""What the policy asks of a topic or a group, as Spark expressions: the first pattern that matches decides."""

from collections.abc import Callable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafka_audit.policy import Policy, glob_to_regex
from kafka_audit.policy.slas import LagSla
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
    """The column ``policy`` of topics and partitions: what the tier asks for and what the owner declares (kafka_audit.catalogue.rows)."""
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


def sla_number(policy: Policy, group: str, topic: str | None) -> Column:
    """The position, as int, of the lag SLA that holds for the columns of group and topic; NULL when none does.

    Without a topic only rules for all topics are looked at, with the group's own tier.
    """
    own = tier_of_group(policy, F.col(group))
    tier = strictest(policy, own, tier_of(policy, F.col(topic))) if topic is not None else own
    number = F.lit(None).cast("int")
    for position, sla in reversed(list(enumerate(policy.slas))):
        if topic is None and sla.topics != "*":
            continue
        matched = _matches(F.col(group), sla.pattern) & (_matches(F.col(topic), sla.topics) if topic is not None else F.lit(True))
        matched = matched & (tier == sla.tier) if sla.tier is not None else matched
        number = F.when(matched, F.lit(position)).otherwise(number)
    return number


def _matches(name: Column, pattern: str) -> Column:
    return F.lit(True) if pattern == "*" else name.rlike(glob_to_regex(pattern))


def sla_policy(policy: Policy, group: Column, number: Column) -> Column:
    """The column ``policy`` of a group and the number of its lag SLA (kafka_audit.catalogue.rows); NULL stands for no SLA."""

    def of_sla(value: Callable[[LagSla], object], kind: str) -> Column:
        found = F.lit(None)
        for position, sla in enumerate(policy.slas):
            found = F.when(number == position, F.lit(value(sla))).otherwise(found)
        return found.cast(kind)

    return F.struct(
        F.coalesce(of_sla(lambda sla: sla.tier, "string"), tier_of_group(policy, group)).alias("tier"),
        of_sla(lambda sla: sla.name, "string").alias("sla"),
        of_sla(lambda sla: sla.max_lag_records, "bigint").alias("max_lag_records"),
        (of_sla(lambda sla: sla.max_lag_seconds, "bigint") * 1000).alias("max_lag_ms"),
        (of_sla(lambda sla: sla.max_no_progress_seconds, "bigint") * 1000).alias("max_no_progress_ms"),
        of_sla(lambda sla: sla.breach.samples, "int").alias("breach_samples"),
        of_sla(lambda sla: sla.breach.of, "int").alias("breach_of"),
        of_sla(lambda sla: sla.availability.target_percent if sla.availability else None, "double").alias("target_percent"),
        of_sla(lambda sla: sla.window_days, "int").alias("window_days"),
    ).alias("policy")
