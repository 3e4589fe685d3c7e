"""The view of catalogue and policy in a report: their hashes, and the policy's demands in plain values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafka_audit.policy.slas import LagSla
from kafka_audit.policy.tiers import GroupRule, TopicRule

if TYPE_CHECKING:
    from kafka_audit.catalogue.load import Catalogue
    from kafka_audit.policy import Policy


@dataclass(frozen=True, kw_only=True)
class TierDemands:
    """One tier, what it changes in the catalogue, and the patterns that assign topics and groups to it; ``retention_ms`` -1: unlimited."""

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
    """Catalogue and policy as a report shows them. ``slas``: pattern, name and demands of each lag SLA."""

    catalogue_sha256: str
    policy_sha256: str
    default_tier: str
    tiers: tuple[TierDemands, ...]
    slas: tuple[tuple[str, str, tuple[str, ...]], ...]
    declared_topics: int
    declared_groups: int
    contracts: int
    clients: int
    interval_seconds: int
    history_snapshots: int


def read_judged(catalogue: "Catalogue", policy: "Policy") -> Judged:
    """Make the view of one catalogue and policy."""
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
        slas=tuple((sla.pattern, sla.name, tuple(_demands(sla))) for sla in policy.slas),
        declared_topics=len(policy.declared_topics),
        declared_groups=len(policy.declared_groups),
        contracts=sum(rule.cleanup_policy is not None for rule in policy.topics),
        clients=len(policy.clients),
        interval_seconds=policy.history.interval_seconds,
        history_snapshots=policy.history.snapshots,
    )


def _patterns(rules: Sequence[TopicRule | GroupRule], tier: str, default: str) -> tuple[str, ...]:
    return tuple(rule.pattern for rule in rules if (rule.tier or default) == tier)


def _demands(sla: LagSla) -> Iterator[str]:
    """The demands of a lag SLA and the topics and tier that it covers, in words."""
    if sla.topics != "*":
        yield f"topics {sla.topics}"
    if sla.tier is not None:
        yield f"tier {sla.tier}"
    limits = ((sla.max_lag_records, "records"), (sla.max_lag_seconds, "seconds"), (sla.max_no_progress_seconds, "seconds without progress"))
    yield from (f"at most {limit:,} {unit}" for limit, unit in limits if limit is not None)
    if sla.breach.of > 1:
        yield f"broken by {sla.breach.samples} of {sla.breach.of} samples"
    if sla.availability is not None:
        yield f"in {sla.availability.target_percent:g}% of the minutes of {sla.availability.window_days} days"
    if sla.quiet_hours:
        yield "with quiet hours"
