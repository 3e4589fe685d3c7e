"""Effective configuration of the groups whose protocol lets the brokers decide: consumer, share and streams."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.groups import Group
from kafka_audit.collect.config_keys import GROUP_KEYS
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.tables import SYNONYMS, table
from kafka_audit.collect.topic_configs import columns

NAME = "group_configs"
SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("name", pa.string()),
        ("value", pa.string()),
        ("source", pa.string()),
        ("is_sensitive", pa.bool_()),
        ("synonyms", SYNONYMS),
    ]
)
# Brokers answer every key for every group; those of another type mean nothing.
_KEYS_BY_TYPE: Mapping[str, frozenset[str]] = {
    kind: frozenset(key for key in GROUP_KEYS if key.startswith(f"{kind}.")) for kind in ("consumer", "share", "streams")
}


def collect(cluster: Cluster, listed: Sequence[Group], errors: ErrorLog) -> pa.Table:
    """One row per group and key of its type; a group that was refused has no row, and an error. Classic groups have no configuration."""
    rows: list[tuple[object, ...]] = []
    for kind, keys in _KEYS_BY_TYPE.items():
        for described in cluster.describe_group_configs([group.group_id for group in listed if group.group_type == kind], keys):
            if described.failure is not None:
                errors.add(NAME, described.failure)
            rows.extend((described.resource, *columns(config)) for config in described.configs)
    return table(SCHEMA, sorted(rows, key=lambda row: (row[0], row[1])))
