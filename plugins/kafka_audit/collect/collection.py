"""The order in which the datasets of a snapshot are read, and what each passes to the next."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from kafka_audit.cluster.bootstrap import BrokerAddress, Cluster
from kafka_audit.cluster.brokers import describe_cluster, describe_log_dirs, describe_quorum
from kafka_audit.cluster.routing import Leaders, TopicPartition
from kafka_audit.cluster.topics import Partition, Topic, TopicListing, list_reassignments
from kafka_audit.collect import brokers, capabilities, configs, datasets, groups, offsets, producers, records, tiered, topics
from kafka_audit.collect.datasets import Dataset
from kafka_audit.collect.groups import GroupReading
from kafka_audit.collect.offsets import LagSlas, Log
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.tables import ErrorLog

OFFSETS_SNAPSHOT_KEYS = frozenset({"cleanup.policy", "retention.bytes", "retention.ms"})
"""The topic configuration that an offsets snapshot has."""
SECOND_LOOK_SECONDS = 5.0
_ELR_FEATURE = "eligible.leader.replicas.version"
_Tables = Iterator[tuple[Dataset, pa.Table]]


@dataclass(kw_only=True)
class Collection:
    """One pass over a connected cluster; iterate :meth:`datasets` once, then read the other attributes.

    ``light``: groups, commits and the ends of the logs only, as in an offsets snapshot. ``policy`` tells which SLAs in seconds are asked
    about; without it none is. ``now`` gives the current time in UTC.
    ``hosts`` are the members' client hosts by (group id, member id): only for display, no dataset holds them.
    """

    cluster: Cluster
    light: bool
    scope: Scope
    policy: LagSlas | None
    now: Callable[[], datetime]
    second_look_seconds: float = SECOND_LOOK_SECONDS
    errors: ErrorLog = field(default_factory=ErrorLog, init=False)
    capabilities: Mapping[str, str] = field(default_factory=dict, init=False)
    cluster_id: str | None = field(default=None, init=False)
    hosts: Mapping[tuple[str, str], str] = field(default_factory=dict, init=False)

    def datasets(self) -> Iterator[tuple[str, pa.Table]]:
        """Name and content of every dataset, each as soon as it is read, so that the caller can store and forget it.

        CollectionError when not even the topics can be listed.
        """
        for dataset, table in self._offsets_only() if self.light else self._everything():
            yield dataset.name, table
        yield datasets.ERRORS.name, self.errors.to_table()

    def _offsets_only(self) -> _Tables:
        cluster, log = self.cluster, self.errors
        listing, in_scope, partitions = self._list_topics()
        leaders = Leaders(cluster, partitions)
        reading, _, logs = yield from self._groups_and_ends(listing, leaders, sorted(one.key for one in partitions), {})
        yield datasets.TOPICS, topics.topics(in_scope, log)
        with_commits = {commit.topic for commits in reading.commits.values() for commit in commits if commit.committed is not None}
        names = [name for name in _described(in_scope) if name in with_commits]
        yield datasets.TOPIC_CONFIGS, configs.topic_configs(cluster, names, log, keys=OFFSETS_SNAPSHOT_KEYS)
        # Last: where many groups lag far behind it takes the longest, and a deadline must cost nothing else.
        internal, commits = _internal(in_scope), reading.commits
        yield datasets.FIRST_UNREAD, records.first_unread(cluster, leaders, commits, logs, internal=internal, now=self.now, errors=log)
        _, operations = self._describe_cluster()
        self.capabilities = capabilities.words(capabilities.read_capabilities(cluster, operations))

    def _everything(self) -> _Tables:
        cluster, log = self.cluster, self.errors
        registered, operations = self._describe_cluster()
        read_at, looked_at = self.now(), time.monotonic()
        listing, in_scope, listed = self._list_topics()
        running, failures = list_reassignments(cluster)
        log.add_all(datasets.REASSIGNMENTS, failures)
        features = brokers.common_features(cluster.features)
        has_elr = any(f.name == _ELR_FEATURE and (f.finalized_max or 0) > 0 for f in features)
        seen = topics.first_look(cluster, listed, in_scope, has_elr=has_elr, read_at=read_at, errors=log)
        # Brokers that come or go between two lists are alive in one of them: a leader that either shows is no dead one.
        alive = {broker.broker_id: broker for broker in (*cluster.addresses, *listing.brokers)}
        bad = topics.bad_partitions(seen, running, alive)
        names = {topic.name for topic in in_scope}
        covered = (one for one in running if one.topic in names or self.scope.covers_topic(one.topic))  # hidden topics, too
        yield datasets.REASSIGNMENTS, topics.reassignments(covered)

        replicas, failures = describe_quorum(cluster)
        log.add_all(datasets.QUORUM, failures)
        controller = next((one.replica_id for one in replicas if one.is_leader), None)
        if controller is None and not cluster.supports("DescribeQuorum"):
            controller = listing.controller_id  # only before KRaft does Metadata name the true controller
        yield datasets.QUORUM, brokers.quorum(replicas, self.now())
        yield (
            datasets.CLUSTER,
            brokers.cluster(
                cluster_id=self.cluster_id,
                controller_id=controller,
                features=features,
                read_at=read_at,
                authorized_operations=operations,
            ),
        )
        yield datasets.BROKER_CONFIGS, configs.broker_configs(cluster, log)
        yield (
            datasets.CONTROLLER_CONFIGS,
            configs.controller_configs(cluster, replicas, _known_brokers(listing, *registered, *alive.values()), log),
        )
        yield datasets.ACLS, brokers.acls(cluster, log)
        yield datasets.CLIENT_QUOTAS, brokers.client_quotas(cluster, log)
        yield from self._storage(listing)
        yield datasets.TOPICS, topics.topics(in_scope, log)
        of_topics = configs.topic_configs(cluster, _described(in_scope), log)
        yield datasets.TOPIC_CONFIGS, of_topics
        retention_ms = configs.retention_ms(of_topics)
        leaders, internal, now = Leaders(cluster, (one.partition for one in seen.values())), _internal(in_scope), self.now
        reading, ends, logs = yield from self._groups_and_ends(listing, leaders, sorted(seen), retention_ms)
        yield datasets.TIERED_OFFSETS, tiered.tiered_offsets(cluster, leaders, of_topics, ends, now=now, errors=log)
        del of_topics
        yield datasets.FIRST_UNREAD, records.first_unread(cluster, leaders, reading.commits, logs, internal=internal, now=now, errors=log)
        yield datasets.LAST_BATCHES, records.last_batches(cluster, leaders, ends, internal=internal, now=now, errors=log)
        yield datasets.GROUP_CONFIGS, configs.group_configs(cluster, reading.listed, log)
        of_clients = [key for key in sorted(seen) if key[0] not in internal]
        yield datasets.PRODUCERS, producers.producers(cluster, leaders, of_clients, log)
        yield datasets.TRANSACTIONS, producers.transactions(cluster, listing.partitions, log)

        if bad:
            cluster.sleep(max(0.0, self.second_look_seconds - (time.monotonic() - looked_at)))
            seen, listed_again = topics.second_look(cluster, seen, bad, alive=alive, has_elr=has_elr, now=self.now, errors=log)
            alive |= {broker.broker_id: broker for broker in listed_again}
        yield datasets.PARTITIONS, topics.partitions(seen)
        yield (
            datasets.BROKERS,
            brokers.brokers(
                alive=alive.values(),
                registered=registered,
                replica_owners={replica for one in listing.partitions for replica in one.replicas},
                answering=set(cluster.brokers) - cluster.unanswered,
                releases={broker: cluster.newest_version(broker, "DescribeCluster") for broker in cluster.api_versions},
                controller_id=controller,
            ),
        )
        matrix = capabilities.read_capabilities(cluster, operations)
        self.capabilities = capabilities.words(matrix)
        yield datasets.CAPABILITIES, capabilities.capabilities(matrix)

    def _list_topics(self) -> tuple[TopicListing, list[Topic], list[Partition]]:
        """All topics, and the topics in scope with their partitions."""
        listing = topics.listing(self.cluster)
        self.cluster_id = listing.cluster_id
        in_scope = [topic for topic in listing.topics if self.scope.covers_topic(topic.name, is_internal=topic.is_internal)]
        names = {topic.name for topic in in_scope}
        return listing, in_scope, [one for one in listing.partitions if one.topic in names]

    def _describe_cluster(self) -> tuple[Sequence[BrokerAddress], Sequence[str] | None]:
        """The registered brokers, and what the audit's principal may do; where both are missing, an error says why."""
        registered, operations, failure = describe_cluster(self.cluster)
        if failure is not None:
            self.errors.add(datasets.CLUSTER, failure, column="authorized_operations")
        return registered, operations

    def _storage(self, listing: TopicListing) -> _Tables:
        stored = list(describe_log_dirs(self.cluster))
        yield datasets.LOG_DIRS, brokers.log_dirs(stored, self.errors)
        yield datasets.REPLICA_SIZES, brokers.replica_sizes(stored, self.scope, self.errors)
        on_disk = {replica.topic for broker in stored for directory in broker.dirs for replica in directory.replicas}
        topics.note_hidden(on_disk, (topic.name for topic in listing.topics), self.scope, self.errors)

    def _groups_and_ends(
        self, listing: TopicListing, leaders: Leaders, keys: Sequence[TopicPartition], retention_ms: Mapping[str, int]
    ) -> Generator[tuple[Dataset, pa.Table], None, tuple[GroupReading, pa.Table, dict[TopicPartition, Log]]]:
        """Groups and commits, then the ends of the logs; returns what was read of groups, the dataset ``offsets``, and the known logs."""
        cluster, log, now = self.cluster, self.errors, self.now
        reading = groups.read_groups(cluster, self.scope, listing.partitions, now, log)
        self.hosts = reading.client_hosts()
        ends = offsets.offsets(
            cluster,
            leaders,
            keys,
            commits=reading.highest_commits(),
            retention_ms=retention_ms,
            positions_only=self.light,
            now=now,
            errors=log,
        )
        yield datasets.GROUPS, groups.groups(reading, log)
        yield datasets.MEMBERS, groups.members(reading, self.scope, log)
        yield datasets.COMMITTED_OFFSETS, groups.committed_offsets(reading, log)
        yield datasets.OFFSETS, ends
        logs, limit = offsets.known_logs(ends), offsets.seconds_of(self.policy)
        sla_offsets = offsets.sla_offsets(cluster, leaders, reading.commits, logs, max_lag_seconds=limit, now=now, errors=log)
        yield datasets.SLA_OFFSETS, sla_offsets
        return reading, ends, logs


def _described(in_scope: Iterable[Topic]) -> list[str]:
    """The names of the topics that the cluster described, in order."""
    return sorted(topic.name for topic in in_scope if topic.failure is None)


def _known_brokers(listing: TopicListing, *listed: BrokerAddress) -> set[int]:
    """The ids of all brokers, those that only replicas name included."""
    return {broker.broker_id for broker in listed} | {replica for one in listing.partitions for replica in one.replicas}


def _internal(in_scope: Iterable[Topic]) -> set[str]:
    """The names of internal topics."""
    return {topic.name for topic in in_scope if topic.is_internal}
