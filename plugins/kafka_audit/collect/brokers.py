"""The cluster as a whole and its brokers: identity, quorum, access control lists, log directories and the replicas in them."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from operator import attrgetter
from typing import TypeVar

import pyarrow as pa

from kafka_audit.cluster.acls import describe_acls
from kafka_audit.cluster.bootstrap import BrokerAddress, Cluster, Feature
from kafka_audit.cluster.brokers import BrokerLogDirs, QuorumReplica
from kafka_audit.cluster.failures import Failure, unsupported
from kafka_audit.cluster.quotas import describe_client_quotas
from kafka_audit.collect.datasets import ACLS, BROKERS, CLIENT_QUOTAS, CLUSTER, LOG_DIRS, QUORUM, REPLICA_SIZES, Dataset
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.tables import ErrorLog, table

T = TypeVar("T")


def cluster(
    *,
    cluster_id: str | None,
    controller_id: int | None,
    features: Iterable[Feature],
    read_at: datetime,
    authorized_operations: Sequence[str] | None,
) -> pa.Table:
    """One row; ``controller_id`` is the active controller, ``authorized_operations`` what the audit's principal may do, null = not told."""
    return table(CLUSTER.schema, [(cluster_id, controller_id, read_at, list(map(asdict, features)), authorized_operations)])


def common_features(features: Iterable[Feature]) -> tuple[Feature, ...]:
    """Features over all brokers that answered: the levels that every one of them supports (KIP-584)."""
    by_name: dict[str, list[Feature]] = {}
    for feature in features:
        by_name.setdefault(feature.name, []).append(feature)
    return tuple(_common(found) for _, found in sorted(by_name.items()))


def _common(found: list[Feature]) -> Feature:
    lowest = [f.supported_min for f in found if f.supported_min is not None]
    highest = [f.supported_max for f in found if f.supported_max is not None]
    # Finalized levels belong to the cluster; a broker that lags behind shows an older one for a moment.
    newest = max(found, key=lambda f: -1 if f.finalized_max is None else f.finalized_max)
    return replace(newest, supported_min=max(lowest, default=None), supported_max=min(highest, default=None))


def brokers(
    *,
    alive: Iterable[BrokerAddress],
    registered: Sequence[BrokerAddress],
    replica_owners: Iterable[int],
    answering: Collection[int],
    releases: Mapping[int, int],
    controller_id: int | None,
) -> pa.Table:
    """One row per broker: alive, fenced, or known only as the owner of replicas.

    Host and port are null for an id that only replicas name. ``alive`` are those that any list of the brokers showed while the snapshot
    was taken. ``answering`` were asked and left nothing unanswered; a broker that came back in between was not asked. ``releases``:
    broker -> newest version of DescribeCluster that it offers, -1 for none. Version 1 (KIP-919) tells releases since 3.7 from older ones.
    """
    living = {broker.broker_id: broker for broker in alive}
    known: dict[int, BrokerAddress | None] = dict.fromkeys(replica_owners)
    known |= {node.broker_id: node for node in registered} | living
    rows: list[tuple[object, ...]] = []
    for broker_id, broker in sorted(known.items(), key=lambda item: item[0]):
        place = (broker.host, broker.port, broker.rack) if broker else (None, None, None)
        is_alive = broker_id in living
        is_controller = None if controller_id is None else broker_id == controller_id
        rows.append((broker_id, *place, is_alive, is_alive and broker_id in answering, is_controller, releases.get(broker_id)))
    return table(BROKERS.schema, rows)


def quorum(replicas: Iterable[QuorumReplica], read_at: datetime) -> pa.Table:
    """One row per voter and observer of the metadata quorum; role is ``voter`` or ``observer``, timestamps are of the leader's clock."""
    values = attrgetter(*QUORUM.schema.names[:-1])
    return table(QUORUM.schema, [(*values(one), read_at) for one in replicas])


def acls(source: Cluster, errors: ErrorLog) -> pa.Table:
    """One row per rule, in the words of kafka-acls.sh; the error SECURITY_DISABLED says that there is no authorizer, so no rule applies."""
    found = _described(source, ACLS, errors, describe_acls, api="DescribeAcls", since="0.11")
    return table(ACLS.schema, map(attrgetter(*ACLS.key), found))


def client_quotas(source: Cluster, errors: ErrorLog) -> pa.Table:
    """One row per entity and key; ``entity`` is JSON text of type and name of each of its parts, null for a default."""
    found = _described(source, CLIENT_QUOTAS, errors, describe_client_quotas, api="DescribeClientQuotas", since="2.6")
    return table(CLIENT_QUOTAS.schema, sorted((json.dumps(one.entity), one.key, one.value) for one in found))


def _described(
    source: Cluster,
    dataset: Dataset,
    errors: ErrorLog,
    describe: Callable[[Cluster], tuple[Sequence[T], Failure | None]],
    *,
    api: str,
    since: str,
) -> Sequence[T]:
    """What ``describe`` reads; an error where it fails, or where brokers do not have the API, which came with release ``since``."""
    if not source.supports(api):
        errors.add(dataset, unsupported(api, since))
        return ()
    found, failure = describe(source)
    if failure is not None:
        errors.add(dataset, failure)
    return found


def log_dirs(read: Sequence[BrokerLogDirs], errors: ErrorLog) -> pa.Table:
    """One row per log directory; a broker whose directories are not known has one row with a null path and the error."""
    rows: list[tuple[object, ...]] = []
    for broker in sorted(read, key=lambda one: one.broker_id):
        if broker.failure is not None:
            errors.add(LOG_DIRS, broker.failure)
            rows.append((broker.broker_id, None, broker.failure.error, None, None))
        rows.extend((broker.broker_id, d.path, d.error, d.total_bytes, d.usable_bytes) for d in sorted(broker.dirs, key=lambda d: d.path))
    return table(LOG_DIRS.schema, rows)


def replica_sizes(read: Sequence[BrokerLogDirs], scope: Scope, errors: ErrorLog) -> pa.Table:
    """One row per replica of a topic in scope, hidden topics included; Kafka does not list replicas in a failed directory."""
    rows: list[tuple[int, str, str, int, int, int, bool]] = []
    for broker in read:
        if broker.failure is not None:
            errors.add(REPLICA_SIZES, broker.failure)
        for directory in broker.dirs:
            rows.extend(
                (broker.broker_id, directory.path, r.topic, r.partition, r.size_bytes, r.offset_lag, r.is_future)
                for r in directory.replicas
                if scope.covers_topic(r.topic)
            )
    return table(REPLICA_SIZES.schema, sorted(rows))
