"""Effective configuration of topics, with source and synonyms."""

from collections.abc import Collection, Sequence

import pyarrow as pa

from kafka_audit.cluster.configs import Config
from kafka_audit.cluster.facade import Cluster
from kafka_audit.collect.config_keys import TOPIC_KEYS
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.tables import SYNONYMS, table

NAME = "topic_configs"
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("name", pa.string()),
        ("value", pa.string()),
        ("source", pa.string()),
        ("is_sensitive", pa.bool_()),
        ("synonyms", SYNONYMS),
    ]
)


def collect(cluster: Cluster, topics: Sequence[str], errors: ErrorLog, *, keys: Collection[str] = TOPIC_KEYS) -> pa.Table:
    """One row per topic and key of ``keys`` (default: the allow-list); a topic that was refused has no row at all, and an error."""
    rows: list[tuple[object, ...]] = []
    for described in cluster.describe_topic_configs(topics, keys):
        if described.failure is not None:
            errors.add(NAME, described.failure)
        rows.extend((described.resource, *columns(config)) for config in described.configs)
    return table(SCHEMA, sorted(rows, key=lambda row: (row[0], row[1])))


def columns(config: Config) -> tuple[object, ...]:
    """Name, value, source, is_sensitive and synonyms of one configuration, as both config datasets store them."""
    synonyms = [{"name": s.name, "value": s.value, "source": s.source} for s in config.synonyms]
    return config.name, config.value, config.source, config.is_sensitive, synonyms
