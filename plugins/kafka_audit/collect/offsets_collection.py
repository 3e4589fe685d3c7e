"""The light pass: groups with their commits, then the ends of the logs, and nothing that lag does not need."""

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.groups import DescribedGroup
from kafka_audit.collect import (
    capabilities,
    committed_offsets,
    errors,
    first_unread,
    groups,
    members,
    offsets,
    sla_offsets,
    topic_configs,
    topics,
)
from kafka_audit.collect.group_reading import GroupReading, read_groups
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.sla_offsets import MaxLagSeconds
from kafka_audit.collect.tables import Dataset

CONFIG_KEYS = frozenset({"cleanup.policy", "retention.bytes", "retention.ms"})


class OffsetsCollection:
    """One light pass over a connected cluster; iterate :meth:`datasets` once, then read the other attributes.

    ``hosts`` are the members' client hosts by (group id, member id): for eyes only, no dataset holds them.
    """

    def __init__(self, *, cluster: Cluster, scope: Scope, max_lag_seconds: MaxLagSeconds, now: Callable[[], datetime]) -> None:
        self.scope = scope
        self.errors = errors.ErrorLog()
        self.capabilities: Mapping[str, str] = {}
        self.cluster_id: str | None = None
        self.hosts: Mapping[tuple[str, str], str] = {}
        self._cluster = cluster
        self._max_lag_seconds = max_lag_seconds
        self._now = now

    def datasets(self) -> Iterator[Dataset]:
        """Every dataset once, each as soon as it is read; CollectionError when not even the topics can be listed."""
        source, log, now = self._cluster, self.errors, self._now
        listing = topics.listing(source)
        self.cluster_id = listing.cluster_id
        in_scope = [topic for topic in listing.topics if self.scope.covers_topic(topic.name, is_internal=topic.is_internal)]
        names = {topic.name for topic in in_scope}
        reading = read_groups(source, self.scope, now, log)
        committed = reading.committed
        self.hosts = _hosts(reading)
        yield groups.NAME, groups.collect(reading.listed, reading.described, reading.missing, log)
        yield members.NAME, members.collect(reading.described, self.scope, reading.missing, log)
        yield committed_offsets.NAME, committed_offsets.collect(committed, reading.missing, log)

        partitions = [one for one in listing.partitions if one.topic in names]
        leaders = source.leaders(partitions)
        keys = sorted(one.key for one in partitions)
        ends = offsets.collect(source, leaders, keys, commits=committed.highest, retention_ms={}, positions_only=True, now=now, errors=log)
        yield offsets.NAME, ends
        logs = offsets.logs(ends)
        commits = committed.by_group
        yield (
            sla_offsets.NAME,
            sla_offsets.collect(source, leaders, commits, logs, max_lag_seconds=self._max_lag_seconds, now=now, errors=log),
        )
        yield topics.NAME, topics.collect(in_scope, log)
        read = {commit.topic for group_commits in commits.values() for commit in group_commits if commit.committed is not None}
        configured = sorted(topic.name for topic in in_scope if topic.failure is None and topic.name in read)
        yield topic_configs.NAME, topic_configs.collect(source, configured, log, keys=CONFIG_KEYS)
        # Last: where many groups lag far behind it takes the longest, and a deadline must cost nothing else.
        internal = {topic.name for topic in in_scope if topic.is_internal}
        yield first_unread.NAME, first_unread.collect(source, leaders, commits, logs, internal=internal, now=now, errors=log)
        matrix = capabilities.read(source, may_describe_cluster=source.describe_cluster().may_describe_cluster)
        self.capabilities = capabilities.words(matrix)
        yield errors.NAME, errors.collect(log)


def _hosts(reading: GroupReading) -> dict[tuple[str, str], str]:
    return {
        (group_id, member.member_id): member.client_host
        for group_id, group in reading.described.items()
        if isinstance(group, DescribedGroup)
        for member in group.members
    }
