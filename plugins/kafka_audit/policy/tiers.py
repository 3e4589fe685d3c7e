"""``tiers.yaml``: what an installation demands of its topics, groups and cluster, and what owners declare about them."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from kafka_audit.findings import Severity
from kafka_audit.input_files.fields import Code, Name, Pattern, Rules, Strict, repeated
from kafka_audit.input_files.glob import covers, hidden
from kafka_audit.policy.managed_service import ManagedService

_MOST_CHARACTERS = 50_000
MOST_SECONDS, MOST_DAYS = 2_147_483_647, 10_000
"""Limits are stored as 32-bit seconds and converted to milliseconds and dates: larger values would overflow."""


class Tier(Strict):
    """What one tier demands of a topic. ``retention_ms``: the minimum in milliseconds; -1 demands unlimited retention.

    ``clients_declared``: its owners must declare their clients, and what only they know of their topics (PRD-05). ``rpo_seconds``: how
    much of the newest data may be lost (recovery point objective); null: not declared. ``severities`` and ``parameters`` map a control's
    code to values that replace the catalogue's.
    """

    replication_factor: int = Field(ge=1, le=32_767)
    min_insync_replicas: int = Field(ge=1, le=32_767)
    retention_ms: int = Field(ge=-1)
    clients_declared: bool = False
    owner: Name | None = None
    rpo_seconds: int | None = Field(default=None, ge=0, le=MOST_SECONDS)
    severities: dict[Code, Annotated[Severity, Field(strict=False)]] = Field(default_factory=dict)
    parameters: dict[Code, dict[str, int | float]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _survives_a_restart(self) -> "Tier":
        if self.min_insync_replicas > self.replication_factor:
            raise ValueError("min_insync_replicas is above replication_factor, so no topic could ever pass: lower it")
        return self


STRICT_REQUIREMENTS = {"replication_factor": 3, "min_insync_replicas": 2, "retention_ms": 86_400_000}
"""A tier below these values is allowed, but its results are printed as judged by a loosened requirement."""


class TopicRule(Strict):
    """An ordered rule on topics: the first pattern (a shell glob) that matches a topic decides all fields; null: not declared.

    ``cleanup_policy``: the intended value, as Kafka writes it ("" for none, KIP-1161). ``unique_keys``: consumers need only the newest
    record of a key. ``producer_clocks_attested``: record timestamps can be trusted. ``power_domains_attested``: the replicas do not
    lose power together.
    """

    pattern: Pattern
    tier: Name | None = None
    owner: Name | None = None
    cleanup_policy: Literal["delete", "compact", "compact,delete", "delete,compact", ""] | None = None
    unique_keys: bool | None = None
    producer_clocks_attested: bool | None = None
    power_domains_attested: bool | None = None


class GroupRule(Strict):
    """An ordered rule on consumer groups: the first pattern (a shell glob) that matches decides; without ``tier``, the default tier."""

    pattern: Pattern
    tier: Name | None = None
    owner: Name | None = None


class OffsetsHistory(Strict):
    """How often offsets snapshots are to be taken, and for how many days the snapshots and their rolled-up days are kept."""

    interval_seconds: int = Field(default=300, ge=1, le=86_400)
    keep_days: int = Field(default=14, ge=1, le=MOST_DAYS)
    rolled_up_keep_days: int = Field(default=400, ge=1, le=MOST_DAYS)

    @model_validator(mode="after")
    def _is_rolled_up_before_it_goes(self) -> "OffsetsHistory":
        if self.rolled_up_keep_days < self.keep_days:
            raise ValueError("rolled_up_keep_days is below keep_days, so rolled-up days would be deleted before their snapshots: raise it")
        return self


class CommitsHistory(Strict):
    """For how many days records of the offsets topic are kept."""

    keep_days: int = Field(default=31, ge=1, le=MOST_DAYS)


class History(Strict):
    """How often snapshots are to be taken, how many earlier ones an audit may read, and how long offsets snapshots and commits are kept."""

    interval_seconds: int = Field(default=86_400, ge=1, le=MOST_DAYS * 86_400)
    snapshots: int = Field(default=30, ge=0, le=1_000)
    offsets: OffsetsHistory = OffsetsHistory()
    commits: CommitsHistory = CommitsHistory()


class TierFile(Strict):
    """The content of ``tiers.yaml``. Tiers are ordered, the strictest first."""

    version: Literal[1]
    default_tier: Name
    tiers: dict[str, Tier] = Field(min_length=1)
    topics: list[TopicRule] = Rules
    groups: list[GroupRule] = Rules
    declared_topics: list[Name] = Field(default_factory=list)
    declared_groups: list[Name] = Field(default_factory=list)
    approved_principals: list[Name] = Field(default_factory=list)
    managed_service: ManagedService | None = None
    history: History = History()

    @model_validator(mode="after")
    def _is_coherent(self) -> "TierFile":
        known = ", ".join(sorted(self.tiers))
        if self.default_tier not in self.tiers:
            raise ValueError(f"default_tier {self.default_tier!r} is not one of the tiers: write one of {known}")
        for field in ("topics", "groups"):
            rules: Sequence[TopicRule | GroupRule] = getattr(self, field)
            for rule in rules:
                if rule.tier is not None and rule.tier not in self.tiers:
                    raise ValueError(f"{field}: pattern {rule.pattern!r} names tier {rule.tier!r}: write one of {known}")
            patterns = [rule.pattern for rule in rules]
            refuse_long(field, patterns)
            if found := hidden(patterns, covers):
                raise ValueError(
                    f"{field}: pattern {found[0]!r} can never decide, because {found[1]!r} before it matches the same names: "
                    "put the narrower one first"
                )
        for field in ("declared_topics", "declared_groups"):
            names: list[str] = getattr(self, field)
            twice = repeated(names)
            if twice:
                raise ValueError(f"{field}: {twice} appear twice: keep one")
        return self


def refuse_long(field: str, patterns: Iterable[str]) -> None:
    """ValueError if the patterns of ordered rules are together too long to be compared with each other."""
    characters = sum(map(len, patterns))
    if characters > _MOST_CHARACTERS:
        raise ValueError(
            f"{field}: the patterns have {characters:,} characters together, allowed are {_MOST_CHARACTERS:,}: put names that begin or end "
            "alike under one pattern"
        )
