"""Effective configuration of topics, brokers and groups: the values in force, where each comes from and what would hold without it."""

from collections.abc import Collection, Container, Iterable, Mapping, Sequence

import pyarrow as pa

from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.brokers import QuorumReplica
from kafka_audit.cluster.configs import Described, describe_broker_configs, describe_group_configs, describe_topic_configs
from kafka_audit.cluster.controllers import describe_controller_configs
from kafka_audit.cluster.groups import Group
from kafka_audit.collect.config_keys import BROKER_KEYS, CONTROLLER_KEYS, GROUP_KEYS, TOPIC_KEYS
from kafka_audit.collect.datasets import BROKER_CONFIGS, CONTROLLER_CONFIGS, GROUP_CONFIGS, TOPIC_CONFIGS, Dataset
from kafka_audit.collect.tables import ErrorLog, table

# Brokers answer every key for every group; those of another type mean nothing.
_GROUP_KEYS_BY_TYPE: Mapping[str, frozenset[str]] = {
    kind: frozenset(key for key in GROUP_KEYS if key.startswith(f"{kind}.")) for kind in ("consumer", "share", "streams")
}


def broker_configs(cluster: Cluster, errors: ErrorLog) -> pa.Table:
    """One row per broker and key of the allow-list; a broker that refused or did not answer has no row, and an error."""
    return _table(BROKER_CONFIGS, describe_broker_configs(cluster, BROKER_KEYS), errors)


def controller_configs(cluster: Cluster, replicas: Iterable[QuorumReplica], brokers: Container[int], errors: ErrorLog) -> pa.Table:
    """One row per dedicated controller and key of the allow-list: the voters of the quorum that are none of ``brokers``.

    A controller that refused, or that cannot be reached from here, has no row, and an error.
    """
    dedicated = [one for one in replicas if one.role == "voter" and one.replica_id not in brokers]
    return _table(CONTROLLER_CONFIGS, describe_controller_configs(cluster, dedicated, CONTROLLER_KEYS), errors)


def topic_configs(cluster: Cluster, topics: Sequence[str], errors: ErrorLog, *, keys: Collection[str] = TOPIC_KEYS) -> pa.Table:
    """One row per topic and key of ``keys`` (default: the allow-list); a topic that was refused has no row at all, and an error."""
    return _table(TOPIC_CONFIGS, describe_topic_configs(cluster, topics, keys), errors)


def group_configs(cluster: Cluster, listed: Sequence[Group], errors: ErrorLog) -> pa.Table:
    """One row per group and key of its type; a group that was refused has no row, and an error. Classic groups have no configuration."""
    described = (
        one
        for kind, keys in _GROUP_KEYS_BY_TYPE.items()
        for one in describe_group_configs(cluster, [group.group_id for group in listed if group.group_type == kind], keys)
    )
    return _table(GROUP_CONFIGS, described, errors)


def retention_ms(configs: pa.Table) -> dict[str, int]:
    """retention.ms by topic, from the rows of ``topic_configs``."""
    columns = (configs.column(column).to_pylist() for column in ("topic", "name", "value"))
    return {topic: int(value) for topic, name, value in zip(*columns, strict=True) if name == "retention.ms" and value is not None}


def _table(dataset: Dataset, described: Iterable[Described], errors: ErrorLog) -> pa.Table:
    rows: list[tuple[object, ...]] = []
    for one in described:
        if one.failure is not None:
            errors.add(dataset, one.failure)
        resource = int(one.resource) if dataset in (BROKER_CONFIGS, CONTROLLER_CONFIGS) else one.resource
        for config in one.configs:
            rows.append((resource, config.name, config.value, config.source, config.is_sensitive, config.synonyms))
    return table(dataset.schema, sorted(rows, key=lambda row: row[:2]))
