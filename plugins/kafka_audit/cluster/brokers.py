"""Reads what concerns brokers as such: who is registered, log directories and the controller quorum."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from kafka.protocol.admin.cluster import DescribeClusterRequest, DescribeLogDirsRequest, DescribeQuorumRequest
from kafka.protocol.metadata import MetadataRequest

from kafka_audit.cluster.acls import operation_names
from kafka_audit.cluster.bootstrap import BrokerAddress, addresses_in
from kafka_audit.cluster.channel import Channel, Message
from kafka_audit.cluster.failures import Failure, error_name, refused

_CLUSTER_AUTHORIZATION_FAILED = 31
_METADATA_TOPIC = "__cluster_metadata"


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaSize:
    """One replica in one log directory."""

    topic: str
    partition: int
    size_bytes: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class LogDir:
    """One log directory of a broker; ``error`` is set when it has failed (KIP-112)."""

    path: str
    error: str | None
    total_bytes: int | None
    usable_bytes: int | None
    replicas: tuple[ReplicaSize, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class BrokerLogDirs:
    """All log directories of one broker, or why they are not known."""

    broker_id: int
    dirs: tuple[LogDir, ...] = ()
    failure: Failure | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Listener:
    """One listener of a controller, by its name in the controller's configuration."""

    name: str
    host: str
    port: int


@dataclass(frozen=True, kw_only=True, slots=True)
class QuorumReplica:
    """One voter or observer (``role``) of the metadata quorum (KIP-595, KIP-836); timestamps in epoch ms of the leader's clock.

    ``listeners``: a voter's, as the quorum's leader knows them since Kafka 3.9 (KIP-853); none before.
    """

    replica_id: int
    role: str
    is_leader: bool
    log_end_offset: int | None
    last_fetch_timestamp_ms: int | None
    last_caught_up_timestamp_ms: int | None
    listeners: tuple[Listener, ...] = ()


def describe_cluster(channel: Channel) -> tuple[tuple[BrokerAddress, ...], tuple[str, ...] | None, Failure | None]:
    """Registered brokers, fenced ones included where the broker can tell (version 2, Kafka 4.0), and what the asking principal may do.

    None in place of the latter where the broker did not tell. The failure says why both are missing.
    """
    request = DescribeClusterRequest(include_cluster_authorized_operations=True, include_fenced_brokers=True)
    response, failure = channel.response_of(channel.ask_any(request))
    if failure is not None:
        return (), None, failure
    nodes = tuple(
        BrokerAddress(broker_id=b.broker_id, host=b.host, port=b.port, rack=b.rack)
        for b in sorted(response.brokers, key=lambda broker: broker.broker_id)
    )
    return nodes, operation_names(response.authorized_operations), None


def list_brokers(channel: Channel) -> tuple[BrokerAddress, ...]:
    """The brokers that are alive now, by Metadata; none when no broker answered."""
    reply = channel.ask_any(MetadataRequest(topics=[], allow_auto_topic_creation=False))
    return () if reply.failure is not None else addresses_in(reply.response)


def describe_log_dirs(channel: Channel, brokers: Iterable[int]) -> Iterator[BrokerLogDirs]:
    """Every log directory of these brokers with all its replicas, also of topics that Metadata hides from this principal."""
    requests = {broker_id: [DescribeLogDirsRequest(topics=None)] for broker_id in brokers}
    for reply in channel.ask_all(requests):
        broker_id = int(reply.broker_id)
        if reply.failure is not None:
            yield BrokerLogDirs(broker_id=broker_id, failure=replace(reply.failure, broker_id=broker_id))
            continue
        response = reply.response
        # Before version 3 there is no top-level code: a refusal is an empty list, and a broker always has a directory.
        code = response.error_code or (0 if response.results else _CLUSTER_AUTHORIZATION_FAILED)
        channel.outcomes.note("DescribeLogDirs", code)
        if code:
            yield BrokerLogDirs(broker_id=broker_id, failure=replace(refused("DescribeLogDirs", code), broker_id=broker_id))
        else:
            yield BrokerLogDirs(broker_id=broker_id, dirs=tuple(_log_dir(result) for result in response.results))


def _log_dir(raw: Message) -> LogDir:
    return LogDir(
        path=raw.log_dir,
        error=error_name(raw.error_code) if raw.error_code else None,
        total_bytes=_known(raw.total_bytes),
        usable_bytes=_known(raw.usable_bytes),
        replicas=tuple(
            ReplicaSize(
                topic=topic.name,
                partition=partition.partition_index,
                size_bytes=partition.partition_size,
                offset_lag=partition.offset_lag,
                is_future=bool(partition.is_future_key),
            )
            for topic in raw.topics
            for partition in topic.partitions
        ),
    )


def describe_quorum(channel: Channel) -> tuple[tuple[QuorumReplica, ...], tuple[Failure, ...]]:
    """Voters and observers of the KRaft quorum; any broker passes the question to the leader."""
    request = DescribeQuorumRequest
    topic = request.TopicData(topic_name=_METADATA_TOPIC, partitions=[request.TopicData.PartitionData(partition_index=0)])
    response, failure = channel.response_of(channel.ask_any(request(topics=[topic])))
    if failure is not None:
        return (), (failure,)
    found: list[QuorumReplica] = []
    listeners = {node.node_id: _listeners(node) for node in response.nodes or ()}
    for partition in (p for topic in response.topics for p in topic.partitions):
        if partition.error_code:
            return (), (refused("DescribeQuorum", partition.error_code, partition.error_message),)
        for role, states in (("voter", partition.current_voters), ("observer", partition.observers)):
            found.extend(
                QuorumReplica(
                    replica_id=state.replica_id,
                    role=role,
                    is_leader=role == "voter" and state.replica_id == partition.leader_id,
                    log_end_offset=_known(state.log_end_offset),
                    last_fetch_timestamp_ms=_known(state.last_fetch_timestamp),
                    last_caught_up_timestamp_ms=_known(state.last_caught_up_timestamp),
                    listeners=listeners.get(state.replica_id, ()) if role == "voter" else (),
                )
                for state in states
            )
    return tuple(sorted(found, key=lambda one: (one.role != "voter", one.replica_id))), ()


def _listeners(node: Message) -> tuple[Listener, ...]:
    found = (Listener(name=one.name, host=one.host, port=one.port) for one in node.listeners or ())
    return tuple(sorted(found, key=lambda one: one.name))


def _known(number: int) -> int | None:
    """Kafka writes -1 for "not known"."""
    return None if number is None or number < 0 else number
