"""What the policy asks of a topic or a group, as Spark expressions: the first pattern that matches decides."""

from collections.abc import Iterable, Sequence

from pyspark.sql import Column
from pyspark.sql import functions as F

from kafka_audit.policy import Policy, glob_to_regex
from kafka_audit.policy.tiers import GroupRule, TopicRule
from spark_jobs.engine.tables import constant

_TIER = "owner:string,rpo_ms:bigint,replication_factor:int,min_insync_replicas:int,retention_ms:bigint"
_RULE = "owner:string,cleanup_policy:string,unique_keys:boolean,producer_clocks_attested:boolean,power_domains_attested:boolean"
_SLA = (
    "tier:string,sla:string,max_lag_records:bigint,max_lag_ms:bigint,max_no_progress_ms:bigint,breach_samples:int,breach_of:int,"
    "target_percent:double,window_days:int"
)


def matches_any(name: Column, globs: list[str]) -> Column:
    """Whether a name matches one of the globs; no globs at all match everything."""
    matched = F.lit(not globs)
    for glob in globs:
        matched = matched | name.rlike(glob_to_regex(glob))
    return matched


def _matches(name: Column, pattern: str) -> Column:
    return F.lit(True) if pattern == "*" else name.rlike(glob_to_regex(pattern))


def _first(conditions: Iterable[Column]) -> Column:
    """The position, as int, of the first condition that is true; NULL when none is."""
    return F.coalesce(F.lit(None).cast("int"), *[F.when(holds, F.lit(position)) for position, holds in enumerate(conditions)])


def _rule_of(name: Column, rules: Sequence[TopicRule | GroupRule]) -> Column:
    """The position of the first rule whose pattern matches the name."""
    return _first(_matches(name, rule.pattern) for rule in rules)


def _at(position: Column, rows: Iterable[Sequence[object]], fields: str) -> Column:
    """The constant at that position as a struct, NULL for none. Its values become literals, so no text in them is read as SQL."""
    kind = f"struct<{fields}>"
    return F.get(F.array(*[F.struct(*map(F.lit, row)).cast(kind) for row in rows]).cast(f"array<{kind}>"), position)


def _names(fields: str) -> list[str]:
    return [field.split(":")[0] for field in fields.split(",")]


def _tier_of(policy: Policy, name: Column, rules: Sequence[TopicRule | GroupRule]) -> Column:
    own = _at(_rule_of(name, rules), [(rule.tier,) for rule in rules], "tier:string")["tier"]
    return F.coalesce(own, F.lit(policy.default_tier))


def tier_of(policy: Policy, topic: Column) -> Column:
    """The name of a topic's tier."""
    return _tier_of(policy, topic, policy.topics)


def tier_of_group(policy: Policy, group: Column) -> Column:
    """The name of a group's tier."""
    return _tier_of(policy, group, policy.groups)


def tier_rank(policy: Policy, tier: Column) -> Column:
    """The place of a tier in the policy, 0 for the strictest; NULL for none."""
    return _first(tier == name for name in policy.tiers)


def tier_of_rank(policy: Policy, rank: Column) -> Column:
    """The tier at that place."""
    return F.get(F.array(*[F.lit(name) for name in policy.tiers]), rank)


def strictest(policy: Policy, *tiers: Column) -> Column:
    """The one that stands first in the policy; NULLs are passed over."""
    return tier_of_rank(policy, F.least(*[tier_rank(policy, tier) for tier in tiers]))


def topic_policy(policy: Policy, topic: Column) -> Column:
    """The column ``policy`` of topics and partitions: what the tier asks for and what the owner declares (kafka_audit.catalogue.rows)."""
    tier = tier_of(policy, topic)
    demands = [
        (one.owner, _ms(one.rpo_seconds), one.replication_factor, one.min_insync_replicas, one.retention_ms)
        for one in policy.tiers.values()
    ]
    asked = _at(tier_rank(policy, tier), demands, _TIER)
    rules = [[getattr(rule, field) for field in _names(_RULE)] for rule in policy.topics]
    declared = _at(_rule_of(topic, policy.topics), rules, _RULE)
    return F.struct(
        tier.alias("tier"),
        F.coalesce(declared["owner"], asked["owner"]).alias("owner"),
        *[asked[field].alias(field) for field in _names(_TIER)[1:]],
        *[declared[field].alias(field) for field in _names(_RULE)[1:]],
    ).alias("policy")


def isolation_of(policy: Policy, group: Column) -> Column:
    """The isolation.level that clients.yaml declares for a group's consumers, as string; NULL when it does not, or not one for all."""
    levels = policy.isolation_levels()
    return constant(levels, "map<string,string>")[group] if levels else F.lit(None).cast("string")


def sla_number(policy: Policy, group: str, topic: str | None) -> Column:
    """The position, as int, of the lag SLA that holds for the columns of group and topic; NULL when none does.

    Without a topic only rules for all topics are looked at, with the group's own tier.
    """
    own = tier_of_group(policy, F.col(group))
    tier = strictest(policy, own, tier_of(policy, F.col(topic))) if topic is not None else own
    conditions = []
    for sla in policy.slas:
        matched = _matches(F.col(group), sla.pattern) & (F.lit(sla.topics == "*") if topic is None else _matches(F.col(topic), sla.topics))
        conditions.append(matched & (tier == sla.tier) if sla.tier is not None else matched)
    return _first(conditions)


def sla_policy(policy: Policy, group: Column, number: Column) -> Column:
    """The column ``policy`` of a group and the number of its lag SLA (kafka_audit.catalogue.rows); NULL stands for no SLA."""
    slas = [
        (
            *(one.tier, one.name, one.max_lag_records, _ms(one.max_lag_seconds), _ms(one.max_no_progress_seconds)),
            *(one.breach.samples, one.breach.of, one.availability.target_percent if one.availability else None, one.window_days),
        )
        for one in policy.slas
    ]
    sla = _at(number, slas, _SLA)
    tier = F.coalesce(sla["tier"], tier_of_group(policy, group))
    return F.struct(tier.alias("tier"), *[sla[field].alias(field) for field in _names(_SLA)[1:]]).alias("policy")


def _ms(seconds: int | None) -> int | None:
    return None if seconds is None else seconds * 1000
