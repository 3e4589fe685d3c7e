"""Effective configuration of each broker, told by the broker itself."""

import pyarrow as pa

from kafka_audit.cluster.facade import Cluster
from kafka_audit.collect.config_keys import BROKER_KEYS
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.tables import SYNONYMS, table
from kafka_audit.collect.topic_configs import columns

NAME = "broker_configs"
SCHEMA = pa.schema(
    [
        ("broker_id", pa.int32()),
        ("name", pa.string()),
        ("value", pa.string()),
        ("source", pa.string()),
        ("is_sensitive", pa.bool_()),
        ("synonyms", SYNONYMS),
    ]
)


def collect(cluster: Cluster, errors: ErrorLog) -> pa.Table:
    """One row per broker and key of the allow-list; a broker that refused or did not answer has no row, and an error."""
    rows: list[tuple[object, ...]] = []
    for described in cluster.describe_broker_configs(BROKER_KEYS):
        if described.failure is not None:
            errors.add(NAME, described.failure)
        rows.extend((int(described.resource), *columns(config)) for config in described.configs)
    return table(SCHEMA, sorted(rows, key=lambda row: (row[0], row[1])))
