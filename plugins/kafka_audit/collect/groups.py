"""Groups of every type with their members, and the offsets they have committed; of share groups their start offsets."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from operator import itemgetter

import pyarrow as pa

from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.commits import Commit, fetch_commits, fetch_share_offsets
from kafka_audit.cluster.failures import INVALID_RESPONSE, Failure
from kafka_audit.cluster.groups import DescribedGroup, Group, describe_groups, list_groups
from kafka_audit.cluster.routing import GROUP, Coordinators, TopicPartition
from kafka_audit.cluster.topics import Partition
from kafka_audit.collect.coordinators import without_leader
from kafka_audit.collect.datasets import COMMITTED_OFFSETS, GROUPS, MEMBERS
from kafka_audit.collect.part import Part
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.tables import ErrorLog, table

_PLACE = itemgetter(0, 1)  # topic and partition of a commit
READ_AGAIN = frozenset({"DescribeShareGroupOffsets", "OffsetFetch"})
"""What :func:`read_again` asks."""
_TYPES = frozenset({"classic", "consumer", "share", "streams"})


@dataclass(frozen=True, kw_only=True)
class GroupReading:
    """Groups in scope as listed and described, their commits, when these were read, and why groups are missing from the list.

    ``described`` and ``commits`` are by group id. ``unlisted`` names brokers that did not answer, and partitions of
    ``__consumer_offsets`` without a leader.
    """

    listed: tuple[Group, ...]
    described: Mapping[str, DescribedGroup | Failure]
    commits: Mapping[str, list[Commit]]
    read_at: datetime
    unlisted: tuple[Failure, ...]

    def client_hosts(self) -> dict[tuple[str, str], str]:
        """Client hosts by (group id, member id): only for display, no dataset holds them."""
        return {
            (group_id, member.member_id): member.client_host
            for group_id, group in self.described.items()
            if isinstance(group, DescribedGroup)
            for member in group.members
        }


@dataclass(frozen=True, kw_only=True)
class KnownCommits:
    """Commits that other processes read: their places and the broker that coordinates the group, both by group id; and the share groups."""

    places: Mapping[str, Collection[TopicPartition]] = field(default_factory=dict)
    coordinators: Mapping[str, int] = field(default_factory=dict)
    share_groups: Collection[str] = ()


def highest_commits(commits: Mapping[str, Sequence[Commit]]) -> dict[TopicPartition, int]:
    """The highest committed offset of any group, by partition; ``commits`` are by group."""
    highest: dict[TopicPartition, int] = {}
    for of_group in commits.values():
        for topic, partition, committed, *_ in of_group:
            if committed is not None and committed >= highest.get((topic, partition), 0):
                highest[topic, partition] = committed
    return highest


def read_groups(
    cluster: Cluster, scope: Scope, part: Part, *, partitions: Sequence[Partition], now: Callable[[], datetime], errors: ErrorLog
) -> GroupReading:
    """List the groups, describe those of ``part`` and fetch their commits. ``partitions`` are those of all topics, as listed before.

    Log ends are to be read later: the other order would show groups beyond the end.
    """
    found, unanswered = list_groups(cluster)
    unlisted = (*unanswered, *without_leader(cluster, "ListGroups", partitions))
    listed = tuple(group for group in found if scope.covers_group(group.group_id) and part.has(group.group_id))
    coordinators = Coordinators(cluster, GROUP, {group.group_id: group.coordinator_id for group in listed})
    described = describe_groups(cluster, coordinators, listed)
    streams = {group.group_id: described.get(group.group_id) for group in listed if group.group_type == "streams"}
    described |= _with_existing_partitions(streams, partitions)
    read_at = now()
    commits: dict[str, list[Commit]] = {}
    for is_share, fetch in ((False, fetch_commits), (True, fetch_share_offsets)):
        asked = {group.group_id: described.get(group.group_id) for group in listed if (group.group_type == "share") is is_share}
        commits |= _read_commits(partial(fetch, cluster, coordinators), asked, scope, errors)
    return GroupReading(listed=listed, described=described, commits=commits, read_at=read_at, unlisted=unlisted)


def read_again(cluster: Cluster, known: KnownCommits, *, now: Callable[[], datetime], errors: ErrorLog) -> GroupReading:
    """The commits on the places of ``known`` as they are now: one for each, with a failure where it was not answered. No groups.

    Beside log ends of a later time an earlier commit would show a lag that there never was, and losses.
    """
    coordinators, read_at = Coordinators(cluster, GROUP, known.coordinators), now()
    commits: dict[str, list[Commit]] = {}
    for is_share, fetch in ((False, fetch_commits), (True, fetch_share_offsets)):
        wanted = {group_id: sorted(places) for group_id, places in known.places.items() if (group_id in known.share_groups) is is_share}
        for group_id, found in fetch(cluster, coordinators, wanted).items():
            commits[group_id] = _one_each(group_id, wanted[group_id], found)
    for of_group in commits.values():
        errors.add_all(COMMITTED_OFFSETS, (commit.failure for commit in of_group if commit.failure is not None))
    return GroupReading(listed=(), described={}, commits=commits, read_at=read_at, unlisted=())


def _one_each(group_id: str, places: Sequence[TopicPartition], found: Sequence[Commit] | Failure) -> list[Commit]:
    if isinstance(found, Failure):
        return [Commit(*place, None, None, found) for place in places]
    answered = {(commit.topic, commit.partition): commit for commit in found}
    absent = Failure(api="OffsetFetch", error=INVALID_RESPONSE, message="the answer leaves out what was asked for by name")
    return [
        answered.get(place) or Commit(*place, None, None, replace(absent, topic=place[0], partition=place[1], group_id=group_id))
        for place in places
    ]


def _with_existing_partitions(
    groups: Mapping[str, DescribedGroup | Failure | None], partitions: Sequence[Partition]
) -> dict[str, DescribedGroup | Failure]:
    """Streams groups whose members have existing partitions only: a task names a partition of several topics, some of which have fewer."""
    there = {partition.key for partition in partitions} if groups else set()
    topics = {topic for topic, _ in there}

    def existing(assignment: tuple[TopicPartition, ...] | None) -> tuple[TopicPartition, ...] | None:
        return None if assignment is None else tuple(one for one in assignment if one in there or one[0] not in topics)

    return {
        group_id: replace(group, members=tuple(replace(one, assignment=existing(one.assignment)) for one in group.members))
        for group_id, group in groups.items()
        if isinstance(group, DescribedGroup)
    }


def _read_commits(
    fetch: Callable[[Mapping[str, Sequence[TopicPartition] | None]], dict[str, tuple[Commit, ...] | Failure]],
    groups: Mapping[str, DescribedGroup | Failure | None],
    scope: Scope,
    errors: ErrorLog,
) -> dict[str, list[Commit]]:
    """All commits of the groups on topics in scope, deleted topics included; of share groups the start offsets.

    A partition that a member has and that the broker leaves out is asked for by name: only so is "never committed" told apart
    from "not allowed to see it".
    """
    by_group: dict[str, list[Commit]] = {}
    absent: dict[str, list[TopicPartition]] = {}
    for group_id, commits in fetch(dict.fromkeys(groups)).items():
        if isinstance(commits, Failure):
            errors.add(COMMITTED_OFFSETS, commits)
            continue
        by_group[group_id] = [commit for commit in commits if scope.covers_topic(commit.topic)]
        missing = _assigned(groups[group_id], scope) - {(commit.topic, commit.partition) for commit in by_group[group_id]}
        if missing:
            absent[group_id] = sorted(missing)
    for group_id, commits in fetch(absent).items():
        if isinstance(commits, Failure):
            errors.add(COMMITTED_OFFSETS, commits)
        else:
            by_group[group_id].extend(commits)
    for all_commits in by_group.values():
        errors.add_all(COMMITTED_OFFSETS, (commit.failure for commit in all_commits if commit.failure is not None))
    return by_group


def _assigned(group: DescribedGroup | Failure | None, scope: Scope) -> set[TopicPartition]:
    if not isinstance(group, DescribedGroup):
        return set()
    return {key for member in group.members for key in member.assignment or () if scope.covers_topic(key[0])}


def groups(read: GroupReading, errors: ErrorLog) -> pa.Table:
    """One row per group in scope.

    ``authorized_operations`` (of the audit's principal, KIP-430) and ``assignor`` are null for a group that was not described: one
    that was refused, or that was listed as Empty.
    """
    errors.add_all(GROUPS, read.unlisted)
    rows: list[tuple[object, ...]] = []
    for group in read.listed:
        found = read.described.get(group.group_id)
        failure = found if isinstance(found, Failure) else None
        known = found if isinstance(found, DescribedGroup) else None
        rows.append(
            (
                group.group_id,
                group.group_type if group.group_type in _TYPES else "unknown",
                group.state or (known.state if known else "Unknown"),
                group.protocol_type,
                group.coordinator_id,
                failure.error if failure else None,
                known.authorized_operations if known else None,
                known.assignor if known else None,
            )
        )
    return table(GROUPS.schema, rows)


def members(read: GroupReading, scope: Scope, errors: ErrorLog) -> pa.Table:
    """One row per member; assignment and subscribed topics hold what is in scope, null = not known. No client hosts.

    A member that subscribes by a regular expression has null, because only the coordinator knows what that matches.
    """
    errors.add_all(MEMBERS, read.unlisted)
    rows: list[tuple[object, ...]] = []
    for group_id, group in sorted(read.described.items()):
        if isinstance(group, Failure):
            errors.add(MEMBERS, group)
            continue
        for member in sorted(group.members, key=lambda one: one.member_id):
            if member.failure is not None:
                errors.add(MEMBERS, member.failure)
            assignment = subscribed = None
            if member.assignment is not None:
                assignment = [{"topic": t, "partition": p} for t, p in sorted(member.assignment) if scope.covers_topic(t)]
            if member.subscribed_topics is not None:
                subscribed = sorted(topic for topic in member.subscribed_topics if scope.covers_topic(topic))
            rows.append((group_id, member.member_id, member.client_id, member.instance_id, assignment, subscribed))
    return table(MEMBERS.schema, rows)


def committed_offsets(read: GroupReading, errors: ErrorLog) -> pa.Table:
    """One row per group and partition; ``committed`` null without an error = the group has no commit there.

    Of a share group, ``committed`` is its start offset (KIP-932).
    """
    errors.add_all(COMMITTED_OFFSETS, read.unlisted)
    rows = [
        (group_id, topic, partition, committed, leader_epoch, failure.error if failure else None, read.read_at)
        for group_id, commits in sorted(read.commits.items())
        for topic, partition, committed, leader_epoch, failure in sorted(commits, key=_PLACE)
    ]
    return table(COMMITTED_OFFSETS.schema, rows)
