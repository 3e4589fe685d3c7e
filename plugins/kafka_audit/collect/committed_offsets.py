"""Offsets that groups have committed, and the absence of a commit where a member has the partition."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from kafka_audit.cluster.commits import Commit
from kafka_audit.cluster.coordinators import Coordinators
from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.failures import Failure
from kafka_audit.cluster.groups import DescribedGroup, Group
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.tables import READ_AT, table

NAME = "committed_offsets"
SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("committed", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("error", pa.string()),
        ("read_at", READ_AT),
    ]
)
Key = tuple[str, int]


@dataclass(frozen=True, kw_only=True)
class Committed:
    """Commits by group, and the highest one of any group per partition."""

    by_group: dict[str, list[Commit]] = field(default_factory=dict)
    highest: dict[Key, int] = field(default_factory=dict)
    read_at: datetime


def read(
    cluster: Cluster,
    coordinators: Coordinators,
    groups: Sequence[Group],
    described: Mapping[str, DescribedGroup | Failure],
    *,
    scope: Scope,
    now: Callable[[], datetime],
    errors: ErrorLog,
) -> Committed:
    """All commits of the groups on topics in scope, deleted topics included.

    A partition that a member has and that the broker leaves out is asked for by name: only so is "never committed" told apart
    from "not allowed to see it". Share groups keep no committed offsets (KIP-932).
    """
    result = Committed(read_at=now())
    asked = [group.group_id for group in groups if group.group_type != "share"]
    absent: dict[str, list[Key]] = {}
    for group_id, commits in cluster.fetch_commits(coordinators, asked).items():
        if isinstance(commits, Failure):
            errors.add(NAME, commits)
            continue
        kept = [commit for commit in commits if scope.covers_topic(commit.topic)]
        result.by_group[group_id] = kept
        missing = _assigned(described.get(group_id), scope) - {(commit.topic, commit.partition) for commit in kept}
        if missing:
            absent[group_id] = sorted(missing)
    for group_id, commits in cluster.fetch_named_commits(coordinators, absent).items():
        if isinstance(commits, Failure):
            errors.add(NAME, commits)
        else:
            result.by_group[group_id].extend(commits)
    for all_commits in result.by_group.values():
        for commit in all_commits:
            if commit.failure is not None:
                errors.add(NAME, commit.failure)
            if commit.committed is not None:
                key = commit.topic, commit.partition
                result.highest[key] = max(commit.committed, result.highest.get(key, 0))
    return result


def collect(committed: Committed, missing: Sequence[Failure], errors: ErrorLog) -> pa.Table:
    """One row per group and partition; ``committed`` null without an error = the group has no commit there."""
    errors.add_all(NAME, missing)
    rows = [
        (group_id, c.topic, c.partition, c.committed, c.leader_epoch, c.failure.error if c.failure else None, committed.read_at)
        for group_id in sorted(committed.by_group)
        for c in sorted(committed.by_group[group_id], key=lambda c: (c.topic, c.partition))
    ]
    return table(SCHEMA, rows)


def _assigned(group: DescribedGroup | Failure | None, scope: Scope) -> set[Key]:
    if not isinstance(group, DescribedGroup):
        return set()
    return {key for member in group.members for key in member.assignment or () if scope.covers_topic(key[0])}
