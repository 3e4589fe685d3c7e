"""Running partition reassignments."""

from collections.abc import Iterable

import pyarrow as pa

from kafka_audit.cluster.topics import Reassignment
from kafka_audit.collect.tables import BROKER_IDS, table

NAME = "reassignments"
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("replicas", BROKER_IDS),
        ("adding_replicas", BROKER_IDS),
        ("removing_replicas", BROKER_IDS),
    ]
)


def collect(running: Iterable[Reassignment]) -> pa.Table:
    """One row per partition that is being reassigned."""
    return table(SCHEMA, [(one.topic, one.partition, one.replicas, one.adding_replicas, one.removing_replicas) for one in running])
