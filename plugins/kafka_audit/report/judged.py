"""What an audit was judged against: the hashes of catalogue and policy, and the policy's demands in plain values."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_audit.policy.tiers import GroupRule, TopicRule

if TYPE_CHECKING:
    from kafka_audit.catalogue import Catalogue
    from kafka_audit.policy import Policy


@dataclass(frozen=True, kw_only=True)
class TierDemands:
    """One tier, what it changes of the catalogue, and the patterns that lead to it; ``retention_ms`` -1 is unlimited."""

    name: str
    replication_factor: int
    min_insync_replicas: int
    retention_ms: int
    rpo_seconds: int | None
    owner: str | None
    severities: tuple[tuple[str, str], ...]
    parameters: tuple[tuple[str, str, float], ...]
    topics: tuple[str, ...]
    groups: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Catalogue and policy. ``slas`` are pattern, name, records and seconds (None: no limit in seconds)."""

    catalogue_sha256: str
    policy_sha256: str
    default_tier: str
    tiers: tuple[TierDemands, ...]
    slas: tuple[tuple[str, str, int, int | None], ...]
    declared_topics: int
    declared_groups: int
    contracts: int
    clients: int
    interval_seconds: int
    history_snapshots: int


def read_judged(catalogue: "Catalogue", policy: "Policy") -> Judged:
    """The view of one catalogue and policy that a report prints."""
    return Judged(
        catalogue_sha256=catalogue.sha256,
        policy_sha256=policy.sha256,
        default_tier=policy.default_tier,
        tiers=tuple(
            TierDemands(
                name=name,
                replication_factor=tier.replication_factor,
                min_insync_replicas=tier.min_insync_replicas,
                retention_ms=tier.retention_ms,
                rpo_seconds=tier.rpo_seconds,
                owner=tier.owner,
                severities=tuple(sorted((code, severity.value) for code, severity in tier.severities.items())),
                parameters=tuple(sorted((code, key, value) for code, values in tier.parameters.items() for key, value in values.items())),
                topics=_patterns(policy.topics, name, policy.default_tier),
                groups=_patterns(policy.groups, name, policy.default_tier),
            )
            for name, tier in policy.tiers.items()
        ),
        slas=tuple((sla.pattern, sla.name, sla.max_lag_records, sla.max_lag_seconds) for sla in policy.slas),
        declared_topics=len(policy.declared_topics),
        declared_groups=len(policy.declared_groups),
        contracts=sum(rule.cleanup_policy is not None for rule in policy.topics),
        clients=len(policy.clients),
        interval_seconds=policy.history.interval_seconds,
        history_snapshots=policy.history.snapshots,
    )


def _patterns(rules: Sequence[TopicRule | GroupRule], tier: str, default: str) -> tuple[str, ...]:
    return tuple(rule.pattern for rule in rules if (rule.tier or default) == tier)
