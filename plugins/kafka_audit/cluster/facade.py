"""One connected cluster, with read calls only."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import TracebackType

from kafka_audit.cluster import acls, brokers, commits, configs, first_records, groups, last_batches, offsets, topics, transactions
from kafka_audit.cluster.bootstrap import BrokerAddress, BrokerVersions, find_brokers, read_versions
from kafka_audit.cluster.channel import Channel
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.cluster.coordinators import GROUP, Coordinators
from kafka_audit.cluster.failures import Failure
from kafka_audit.cluster.leaders import Leaders, TopicPartition
from kafka_audit.cluster.read_apis import CONNECTION_APIS, READ_APIS

DEFAULT_DEADLINE_SECONDS = 600.0


class Cluster:
    """Read-only view of one Kafka cluster.

    Calls return typed results in which each item carries its own failure; they raise CollectionError only when the cluster
    cannot be reached at all. Everything sent passes an allow-list of read requests. ``deadline_seconds`` bounds the whole life
    of the object: what is asked later fails with DEADLINE_EXCEEDED.
    """

    def __init__(self, settings: ConnectionSettings, *, deadline_seconds: float = DEFAULT_DEADLINE_SECONDS) -> None:
        self._channel = Channel(settings, deadline_seconds=deadline_seconds)
        try:
            self.brokers: tuple[BrokerAddress, ...] = find_brokers(self._channel)
            self.versions: dict[int, BrokerVersions] = read_versions(self._channel, self.brokers)
        except BaseException:
            self._channel.close()
            raise
        self._channel.brokers = tuple(broker.broker_id for broker in self.brokers)
        self._channel.api_versions = {broker_id: versions.apis for broker_id, versions in self.versions.items()}

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._channel.close()

    @property
    def request_counts(self) -> Counter[tuple[str, int | str]]:
        """Requests sent so far by (API name, broker id), connection set-up included."""
        return self._channel.request_counts

    @staticmethod
    def read_apis() -> dict[str, int]:
        """The read APIs this facade uses, as name -> API key."""
        return {key.name: int(key) for key in READ_APIS - CONNECTION_APIS}

    def answered(self, api: str) -> int:
        """Items of an API that were answered without an error."""
        return self._channel.outcomes.answered(api)

    def denied(self, api: str) -> dict[str, int]:
        """Items of an API that were refused for lack of permission, by Kafka's name of the error."""
        return self._channel.outcomes.denied(api)

    def supports(self, api_key: int, version: int = 0) -> bool:
        """True when every broker that answered speaks at least this version of the API."""
        return self._channel.supports(api_key, version)

    @property
    def unanswered(self) -> frozenset[int]:
        """Brokers that left at least one request without a usable answer."""
        return frozenset(broker for broker in self._channel.unanswered if isinstance(broker, int))

    def sleep(self, seconds: float) -> None:
        """Wait, but not past the deadline."""
        self._channel.sleep(seconds)

    def describe_cluster(self) -> brokers.ClusterDescription:
        """See :func:`kafka_audit.cluster.brokers.describe_cluster`."""
        return brokers.describe_cluster(self._channel)

    def describe_quorum(self) -> tuple[tuple[brokers.QuorumReplica, ...], tuple[Failure, ...]]:
        """See :func:`kafka_audit.cluster.brokers.describe_quorum`."""
        return brokers.describe_quorum(self._channel)

    def describe_acls(self) -> tuple[tuple[acls.Acl, ...], Failure | None]:
        """See :func:`kafka_audit.cluster.acls.describe_acls`."""
        return acls.describe_acls(self._channel)

    def describe_log_dirs(self) -> Iterator[brokers.BrokerLogDirs]:
        """See :func:`kafka_audit.cluster.brokers.describe_log_dirs`."""
        return brokers.describe_log_dirs(self._channel, self._channel.brokers)

    def list_topics(self) -> topics.TopicListing:
        """See :func:`kafka_audit.cluster.topics.list_topics`."""
        return topics.list_topics(self._channel)

    def describe_partitions(
        self, partition_counts: Mapping[str, int]
    ) -> tuple[dict[TopicPartition, topics.Partition], tuple[Failure, ...]]:
        """See :func:`kafka_audit.cluster.topics.describe_partitions`."""
        return topics.describe_partitions(self._channel, partition_counts)

    def can_describe_partitions(self) -> bool:
        """True when brokers speak DescribeTopicPartitions (Kafka 3.7)."""
        return self.supports(topics.DESCRIBE_PARTITIONS)

    def list_reassignments(self) -> tuple[tuple[topics.Reassignment, ...], tuple[Failure, ...]]:
        """See :func:`kafka_audit.cluster.topics.list_reassignments`."""
        return topics.list_reassignments(self._channel)

    def describe_topic_configs(self, names: Sequence[str], keys: Collection[str]) -> Iterator[configs.Described]:
        """See :func:`kafka_audit.cluster.configs.describe_topic_configs`."""
        return configs.describe_topic_configs(self._channel, names, keys)

    def describe_broker_configs(self, keys: Collection[str]) -> Iterator[configs.Described]:
        """See :func:`kafka_audit.cluster.configs.describe_broker_configs`."""
        return configs.describe_broker_configs(self._channel, self._channel.brokers, keys)

    def describe_group_configs(self, group_ids: Sequence[str], keys: Collection[str]) -> Iterator[configs.Described]:
        """See :func:`kafka_audit.cluster.configs.describe_group_configs`."""
        return configs.describe_group_configs(self._channel, group_ids, keys)

    def list_groups(self) -> tuple[tuple[groups.Group, ...], tuple[Failure, ...]]:
        """See :func:`kafka_audit.cluster.groups.list_groups`."""
        return groups.list_groups(self._channel)

    def coordinators(self, listed: Iterable[groups.Group]) -> Coordinators:
        """Where to ask about the listed groups."""
        return Coordinators(self._channel, GROUP, {group.group_id: group.coordinator_id for group in listed})

    def describe_groups(self, coordinators: Coordinators, listed: Iterable[groups.Group]) -> dict[str, groups.DescribedGroup | Failure]:
        """See :func:`kafka_audit.cluster.groups.describe_groups`."""
        return groups.describe_groups(self._channel, coordinators, listed)

    def fetch_commits(self, coordinators: Coordinators, group_ids: Sequence[str]) -> dict[str, tuple[commits.Commit, ...] | Failure]:
        """See :func:`kafka_audit.cluster.commits.fetch_commits`."""
        return commits.fetch_commits(self._channel, coordinators, group_ids)

    def fetch_named_commits(
        self, coordinators: Coordinators, wanted: Mapping[str, Sequence[TopicPartition]]
    ) -> dict[str, tuple[commits.Commit, ...] | Failure]:
        """See :func:`kafka_audit.cluster.commits.fetch_named_commits`."""
        return commits.fetch_named_commits(self._channel, coordinators, wanted)

    def leaders(self, partitions: Iterable[topics.Partition]) -> Leaders:
        """Where to ask about the given partitions."""
        return Leaders(self._channel, partitions)

    def list_offsets(
        self, leaders: Leaders, wanted: Mapping[TopicPartition, int], *, read_committed: bool = False
    ) -> dict[TopicPartition, offsets.Offset | Failure]:
        """See :func:`kafka_audit.cluster.offsets.list_offsets`."""
        return offsets.list_offsets(self._channel, leaders, wanted, read_committed=read_committed)

    def read_last_batches(
        self, leaders: Leaders, last_offsets: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, last_batches.LastBatch | Failure]:
        """See :func:`kafka_audit.cluster.last_batches.read_last_batches`."""
        return last_batches.read_last_batches(self._channel, leaders, last_offsets)

    def read_first_records(
        self, leaders: Leaders, wanted: Mapping[TopicPartition, Sequence[int]], ends: Mapping[TopicPartition, int]
    ) -> dict[first_records.Place, first_records.FirstRecord | Failure]:
        """See :func:`kafka_audit.cluster.first_records.read_first_records`."""
        return first_records.read_first_records(self._channel, leaders, wanted, ends)

    def describe_producers(
        self, leaders: Leaders, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, tuple[offsets.Producer, ...] | Failure]:
        """See :func:`kafka_audit.cluster.offsets.describe_producers`."""
        return offsets.describe_producers(self._channel, leaders, partitions)

    def list_transactions(self) -> tuple[tuple[transactions.ListedTransaction, ...], tuple[Failure, ...]]:
        """See :func:`kafka_audit.cluster.transactions.list_transactions`."""
        return transactions.list_transactions(self._channel)

    def describe_transactions(
        self, listed: Sequence[transactions.ListedTransaction]
    ) -> dict[str, transactions.TransactionDetail | Failure]:
        """See :func:`kafka_audit.cluster.transactions.describe_transactions`."""
        return transactions.describe_transactions(self._channel, listed)
