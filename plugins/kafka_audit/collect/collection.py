"""The order in which the datasets of one snapshot are read, and what each passes to the next."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from kafka_audit.cluster.brokers import BrokerLogDirs
from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.leaders import Leaders
from kafka_audit.cluster.topics import Topic
from kafka_audit.collect import (
    acls,
    broker_configs,
    brokers,
    capabilities,
    cluster,
    committed_offsets,
    errors,
    first_unread,
    group_configs,
    groups,
    last_batches,
    log_dirs,
    members,
    offsets,
    partitions,
    producers,
    quorum,
    reassignments,
    replica_sizes,
    sla_offsets,
    topic_configs,
    topics,
    transactions,
)
from kafka_audit.collect.group_reading import read_groups
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.sla_offsets import MaxLagSeconds
from kafka_audit.collect.tables import Dataset

_ELR_FEATURE = "eligible.leader.replicas.version"


class Collection:
    """One pass over a connected cluster; iterate :meth:`datasets` once, then read the other attributes."""

    def __init__(
        self,
        *,
        cluster: Cluster,
        scope: Scope,
        max_lag_seconds: MaxLagSeconds,
        now: Callable[[], datetime],
        second_look_seconds: float,
    ) -> None:
        self.scope = scope
        self.errors = errors.ErrorLog()
        self.capabilities: Mapping[str, str] = {}
        self.cluster_id: str | None = None
        self._cluster = cluster
        self._max_lag_seconds = max_lag_seconds
        self._now = now
        self._second_look_seconds = second_look_seconds

    def datasets(self) -> Iterator[Dataset]:
        """Every dataset once, each as soon as it is read, so that the caller can store and forget it.

        CollectionError when not even the topics can be listed.
        """
        source, log = self._cluster, self.errors
        description = source.describe_cluster()
        read_at, looked_at = self._now(), time.monotonic()
        listing = topics.listing(source)
        self.cluster_id = listing.cluster_id
        running, failures = source.list_reassignments()
        log.add_all(reassignments.NAME, failures)
        in_scope = [topic for topic in listing.topics if self.scope.covers_topic(topic.name, is_internal=topic.is_internal)]
        names = {topic.name for topic in in_scope}
        listed = [one for one in listing.partitions if one.topic in names]
        features = cluster.common_features(source.versions)
        has_elr = any(f.name == _ELR_FEATURE and (f.finalized_max or 0) > 0 for f in features)
        seen = partitions.read(source, listed, in_scope, has_elr=has_elr, read_at=read_at, errors=log)
        adding = partitions.adding_replicas(running)
        bad = [key for key, one in seen.items() if partitions.is_bad(one.partition, adding)]
        yield reassignments.NAME, reassignments.collect(one for one in running if one.topic in names)

        replicas, failures = source.describe_quorum()
        log.add_all(quorum.NAME, failures)
        controller = next((one.replica_id for one in replicas if one.is_leader), None)
        if controller is None and not source.supports(source.read_apis()["DescribeQuorum"]):
            controller = listing.controller_id  # only before KRaft does Metadata name the true controller
        yield quorum.NAME, quorum.collect(replicas, self._now())
        yield (
            cluster.NAME,
            cluster.collect(
                cluster_id=self.cluster_id,
                controller_id=controller,
                features=features,
                read_at=read_at,
                authorized_operations=description.authorized_operations,
            ),
        )
        yield broker_configs.NAME, broker_configs.collect(source, log)
        yield acls.NAME, acls.collect(source, log)
        yield from self._storage(listing.topics)
        yield topics.NAME, topics.collect(in_scope, log)
        configs = topic_configs.collect(source, sorted(topic.name for topic in in_scope if topic.failure is None), log)
        yield topic_configs.NAME, configs
        retention = _retention(configs)
        del configs
        leaders = source.leaders(one.partition for one in seen.values())
        internal = {topic.name for topic in in_scope if topic.is_internal}
        yield from self._groups_and_offsets(leaders, sorted(seen), retention, internal)
        yield producers.NAME, producers.collect(source, leaders, [key for key in sorted(seen) if key[0] not in internal], log)
        yield transactions.NAME, transactions.collect(source, log)

        if bad:
            source.sleep(max(0.0, self._second_look_seconds - (time.monotonic() - looked_at)))
            seen = partitions.look_again(source, seen, bad, has_elr=has_elr, now=self._now, errors=log)
        yield partitions.NAME, partitions.collect(seen)
        yield (
            brokers.NAME,
            brokers.collect(
                alive=source.brokers,
                registered=description.nodes,
                replica_owners={replica for one in listing.partitions for replica in one.replicas},
                unanswered=source.unanswered,
                controller_id=controller,
            ),
        )
        matrix = capabilities.read(source, may_describe_cluster=description.may_describe_cluster)
        self.capabilities = capabilities.words(matrix)
        yield capabilities.NAME, capabilities.collect(matrix)
        yield errors.NAME, errors.collect(log)

    def _storage(self, visible: Sequence[Topic]) -> Iterator[Dataset]:
        stored: list[BrokerLogDirs] = list(self._cluster.describe_log_dirs())
        yield log_dirs.NAME, log_dirs.collect(stored, self.errors)
        yield replica_sizes.NAME, replica_sizes.collect(stored, self.scope, self.errors)
        on_disk = {replica.topic for broker in stored for directory in broker.dirs for replica in directory.replicas}
        topics.note_hidden(on_disk, (topic.name for topic in visible), self.scope, self.errors)

    def _groups_and_offsets(
        self, leaders: Leaders, keys: Sequence[tuple[str, int]], retention: Mapping[str, int], internal: set[str]
    ) -> Iterator[Dataset]:
        source, log, now = self._cluster, self.errors, self._now
        reading = read_groups(source, self.scope, now, log)
        committed, missing = reading.committed, reading.missing
        ends = offsets.collect(source, leaders, keys, commits=committed.highest, retention_ms=retention, now=now, errors=log)
        yield offsets.NAME, ends
        logs, commits = offsets.logs(ends), committed.by_group
        limits = self._max_lag_seconds
        yield sla_offsets.NAME, sla_offsets.collect(source, leaders, commits, logs, max_lag_seconds=limits, now=now, errors=log)
        yield first_unread.NAME, first_unread.collect(source, leaders, commits, logs, internal=internal, now=now, errors=log)
        yield last_batches.NAME, last_batches.collect(source, leaders, ends, internal=internal, now=now, errors=log)
        yield groups.NAME, groups.collect(reading.listed, reading.described, missing, log)
        yield members.NAME, members.collect(reading.described, self.scope, missing, log)
        yield committed_offsets.NAME, committed_offsets.collect(committed, missing, log)
        yield group_configs.NAME, group_configs.collect(source, reading.listed, log)


def _retention(configs: pa.Table) -> dict[str, int]:
    """retention.ms by topic, from the rows of ``topic_configs``."""
    found: dict[str, int] = {}
    for topic, name, value in zip(*(configs.column(column).to_pylist() for column in ("topic", "name", "value")), strict=True):
        if name == "retention.ms" and value is not None:
            found[topic] = int(value)
    return found
