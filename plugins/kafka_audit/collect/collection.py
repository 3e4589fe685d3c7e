"""The order in which the datasets of a snapshot are read, and what each passes to the next."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import pyarrow as pa

from kafka_audit.cluster.bootstrap import BrokerAddress, Cluster, Feature
from kafka_audit.cluster.brokers import describe_cluster, describe_log_dirs, describe_quorum
from kafka_audit.cluster.commits import Commit
from kafka_audit.cluster.read_apis import ASKED_APIS
from kafka_audit.cluster.routing import Leaders, TopicPartition
from kafka_audit.cluster.topics import Partition, Reassignment, Topic, TopicListing, list_reassignments
from kafka_audit.collect import brokers, configs, datasets, groups, offsets, producers, records, tiered, topics
from kafka_audit.collect.datasets import Dataset
from kafka_audit.collect.facts import Facts, OfCluster
from kafka_audit.collect.groups import GroupReading, KnownCommits
from kafka_audit.collect.offsets import LagSlas, Log
from kafka_audit.collect.part import WHOLE, Part
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.tables import ErrorLog

OFFSETS_SNAPSHOT_KEYS = frozenset({"cleanup.policy", "retention.bytes", "retention.ms"})
"""The topic configuration that an offsets snapshot has."""
SECOND_LOOK_SECONDS = 5.0
_ELR_FEATURE = "eligible.leader.replicas.version"
_Tables = Iterator[tuple[Dataset, pa.Table]]
Commits = Mapping[str, Sequence[Commit]]
"""What groups have committed, by group."""


@dataclass(kw_only=True)
class Collection:
    """One pass over a connected cluster; iterate :meth:`datasets` once, then read the other attributes.

    ``light``: groups, commits and the ends of the logs only, as in an offsets snapshot. ``policy`` tells which SLAs in seconds are asked
    about; without it none is. ``now`` gives the current time in UTC. ``part``: what of a whole snapshot is read; for a part of the topics
    ``known`` are the commits of all groups on them, which are read again.
    ``hosts`` are the members' client hosts by (group id, member id): only for display, no dataset holds them. ``quorum``: of a part
    of the topics that does not have this dataset, its rows, for the clock of this machine.
    """

    cluster: Cluster
    light: bool
    scope: Scope
    policy: LagSlas | None
    now: Callable[[], datetime]
    second_look_seconds: float = SECOND_LOOK_SECONDS
    part: Part = WHOLE
    known: KnownCommits = field(default_factory=KnownCommits)
    errors: ErrorLog = field(default_factory=ErrorLog, init=False)
    facts: Facts = field(init=False)
    hosts: Mapping[tuple[str, str], str] = field(default_factory=dict, init=False)
    quorum: pa.Table | None = field(default=None, init=False)

    def datasets(self) -> Iterator[tuple[str, pa.Table]]:
        """Name and content of every dataset, each as soon as it is read, so that the caller can store and forget it.

        CollectionError when not even the topics can be listed.
        """
        whole = self._everything if self.part.topics else self._groups_only
        for dataset, table in self._offsets_only() if self.light else whole():
            yield dataset.name, table
        yield datasets.ERRORS.name, self.errors.to_table()

    def _offsets_only(self) -> _Tables:
        cluster, log = self.cluster, self.errors
        listing, in_scope, partitions = self._list_topics()
        leaders = Leaders(cluster, partitions)
        reading = self._read_groups(listing)
        commits = reading.commits
        _, logs = yield from self._ends(leaders, sorted(one.key for one in partitions), commits, {})
        yield from self._of_groups(reading)
        yield datasets.TOPICS, topics.topics(in_scope, log)
        with_commits = {commit.topic for of_group in commits.values() for commit in of_group if commit.committed is not None}
        names = [name for name in _described(in_scope) if name in with_commits]
        yield datasets.TOPIC_CONFIGS, configs.topic_configs(cluster, names, log, keys=OFFSETS_SNAPSHOT_KEYS)
        # Last: where many groups lag far behind it takes the longest, and a deadline must cost nothing else.
        internal = _internal(in_scope)
        yield datasets.FIRST_UNREAD, records.first_unread(cluster, leaders, commits, logs, internal=internal, now=self.now, errors=log)
        _, operations = self._describe_cluster()
        self.facts = self._facts(listing, of_cluster=OfCluster(operations=operations))

    def _groups_only(self) -> _Tables:
        listing, _, _ = self._list_topics()
        yield from self._of_groups(self._read_groups(listing))
        self.facts = self._facts(listing)

    def _everything(self) -> _Tables:
        cluster, log, part, now = self.cluster, self.errors, self.part, self.now
        read_at, looked_at = now(), time.monotonic()
        listing, in_scope, listed = self._list_topics()
        running, failures = list_reassignments(cluster)
        log.add_all(datasets.REASSIGNMENTS, failures)
        features = brokers.common_features(cluster.features)
        has_elr = any(f.name == _ELR_FEATURE and (f.finalized_max or 0) > 0 for f in features)
        seen = topics.first_look(cluster, listed, in_scope, has_elr=has_elr, read_at=read_at, errors=log)
        # Brokers that come or go between two lists are alive in one of them: a leader that either shows is no dead one.
        alive = {broker.broker_id: broker for broker in (*cluster.addresses, *listing.brokers)}
        bad = topics.bad_partitions(seen, running, alive)
        of_cluster = None
        if part.leads:
            of_cluster = yield from self._of_cluster(listing, running, features, alive.values(), read_at)
        else:
            self.quorum = brokers.quorum(describe_quorum(cluster)[0], now())

        yield from self._storage(listing)
        yield datasets.TOPICS, topics.topics(in_scope, log)
        of_topics = configs.topic_configs(cluster, _described(in_scope), log)
        yield datasets.TOPIC_CONFIGS, of_topics
        retention_ms = configs.retention_ms(of_topics)
        leaders, internal = Leaders(cluster, (one.partition for one in seen.values())), _internal(in_scope)
        reading = self._read_groups(listing) if part.groups else groups.read_again(cluster, self.known, now=now, errors=log)
        commits = reading.commits
        ends, logs = yield from self._ends(leaders, sorted(seen), commits, retention_ms)
        if part.groups:
            yield from self._of_groups(reading)
        else:
            yield datasets.COMMITTED_OFFSETS, groups.committed_offsets(reading, log)
        yield datasets.TIERED_OFFSETS, tiered.tiered_offsets(cluster, leaders, of_topics, ends, now=now, errors=log)
        del of_topics
        yield datasets.FIRST_UNREAD, records.first_unread(cluster, leaders, commits, logs, internal=internal, now=now, errors=log)
        yield datasets.LAST_BATCHES, records.last_batches(cluster, leaders, ends, internal=internal, now=now, errors=log)
        of_clients = [key for key in sorted(seen) if key[0] not in internal]
        yield datasets.PRODUCERS, producers.producers(cluster, leaders, of_clients, log)
        # Right after the producers, by every part: an open transaction that coordinators do not know then is one that hangs.
        yield datasets.TRANSACTIONS, producers.transactions(cluster, listing.partitions, part, log)

        if bad:
            cluster.sleep(max(0.0, self.second_look_seconds - (time.monotonic() - looked_at)))
            seen, listed_again = topics.second_look(cluster, seen, bad, alive=alive, has_elr=has_elr, now=now, errors=log)
            alive |= {broker.broker_id: broker for broker in listed_again}
        yield datasets.PARTITIONS, topics.partitions(seen)
        self.facts = self._facts(listing, alive.values(), of_cluster)
        if part == WHOLE:
            yield from self.facts.datasets()

    def _of_cluster(
        self,
        listing: TopicListing,
        running: Sequence[Reassignment],
        features: Sequence[Feature],
        alive: Iterable[BrokerAddress],
        read_at: datetime,
    ) -> Generator[tuple[Dataset, pa.Table], None, OfCluster]:
        """The datasets of the cluster as a whole, but for transactions, which are read after their producers."""
        cluster, log = self.cluster, self.errors
        registered, operations = self._describe_cluster()
        internal = _internal(listing.topics)
        # Hidden topics, too.
        covered = (one for one in running if self.scope.covers_topic(one.topic, is_internal=one.topic in internal))
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
                cluster_id=listing.cluster_id,
                controller_id=controller,
                features=features,
                read_at=read_at,
                authorized_operations=operations,
            ),
        )
        yield datasets.BROKER_CONFIGS, configs.broker_configs(cluster, log)
        owners = {replica for one in listing.partitions for replica in one.replicas}
        known = owners | {broker.broker_id for broker in (*registered, *alive)}
        yield datasets.CONTROLLER_CONFIGS, configs.controller_configs(cluster, replicas, known, log)
        yield datasets.ACLS, brokers.acls(cluster, log)
        yield datasets.CLIENT_QUOTAS, brokers.client_quotas(cluster, log)
        return OfCluster(registered=registered, replica_owners=sorted(owners), controller_id=controller, operations=operations)

    def _list_topics(self) -> tuple[TopicListing, list[Topic], list[Partition]]:
        """All topics, and the topics in scope and of this part with their partitions."""
        listing, covers = topics.listing(self.cluster), self.scope.covers_topic
        in_scope = [one for one in listing.topics if self.part.has(one.name) and covers(one.name, is_internal=one.is_internal)]
        names = {topic.name for topic in in_scope}
        return listing, in_scope, [one for one in listing.partitions if one.topic in names]

    def _facts(self, listing: TopicListing, alive: Iterable[BrokerAddress] = (), of_cluster: OfCluster | None = None) -> Facts:
        cluster, asked = self.cluster, ASKED_APIS.values()
        # What a part of the topics reads again was counted by those of the groups.
        counted_before = frozenset() if self.part.groups else groups.READ_AGAIN
        answered, denied = cluster.outcomes.counts()
        return Facts(
            cluster_id=listing.cluster_id,
            alive=tuple(alive),
            answering=sorted(set(cluster.brokers) - cluster.unanswered),
            versions={broker: {key: apis[key] for key in asked if key in apis} for broker, apis in cluster.api_versions.items()},
            answered={api: count for api, count in answered.items() if api not in counted_before},
            denied={api: errors for api, errors in denied.items() if api not in counted_before},
            of_cluster=of_cluster,
        )

    def _describe_cluster(self) -> tuple[Sequence[BrokerAddress], Sequence[str] | None]:
        """The registered brokers, and what the audit's principal may do; where both are missing, an error says why."""
        registered, operations, failure = describe_cluster(self.cluster)
        if failure is not None:
            self.errors.add(datasets.CLUSTER, failure, column="authorized_operations")
        return registered, operations

    def _storage(self, listing: TopicListing) -> _Tables:
        stored = list(describe_log_dirs(self.cluster, [broker for broker in self.cluster.brokers if self.part.has(str(broker))]))
        yield datasets.LOG_DIRS, brokers.log_dirs(stored, self.errors)
        yield datasets.REPLICA_SIZES, brokers.replica_sizes(stored, self.scope, self.errors)
        on_disk = {replica.topic for broker in stored for directory in broker.dirs for replica in directory.replicas}
        topics.note_hidden(on_disk, (topic.name for topic in listing.topics), self.scope, self.errors)

    def _read_groups(self, listing: TopicListing) -> GroupReading:
        reading = groups.read_groups(self.cluster, self.scope, self.part, partitions=listing.partitions, now=self.now, errors=self.errors)
        self.hosts = reading.client_hosts()
        return reading

    def _of_groups(self, reading: GroupReading) -> _Tables:
        yield datasets.GROUPS, groups.groups(reading, self.errors)
        yield datasets.MEMBERS, groups.members(reading, self.scope, self.errors)
        yield datasets.COMMITTED_OFFSETS, groups.committed_offsets(reading, self.errors)
        if not self.light:
            yield datasets.GROUP_CONFIGS, configs.group_configs(self.cluster, reading.listed, self.errors)

    def _ends(
        self, leaders: Leaders, keys: Sequence[TopicPartition], commits: Commits, retention_ms: Mapping[str, int]
    ) -> Generator[tuple[Dataset, pa.Table], None, tuple[pa.Table, dict[TopicPartition, Log]]]:
        """The ends of the logs, to be read right after the commits; returns the dataset ``offsets``, and the known logs."""
        cluster, log, now = self.cluster, self.errors, self.now
        ends = offsets.offsets(
            cluster,
            leaders,
            keys,
            commits=groups.highest_commits(commits),
            retention_ms=retention_ms,
            positions_only=self.light,
            now=now,
            errors=log,
        )
        yield datasets.OFFSETS, ends
        logs, limit = offsets.known_logs(ends), offsets.seconds_of(self.policy)
        sla_offsets = offsets.sla_offsets(cluster, leaders, commits, logs, max_lag_seconds=limit, now=now, errors=log)
        yield datasets.SLA_OFFSETS, sla_offsets
        return ends, logs


def _described(in_scope: Iterable[Topic]) -> list[str]:
    """The names of the topics that the cluster described, in order."""
    return sorted(topic.name for topic in in_scope if topic.failure is None)


def _internal(listed: Iterable[Topic]) -> set[str]:
    """The names of internal topics."""
    return {topic.name for topic in listed if topic.is_internal}
