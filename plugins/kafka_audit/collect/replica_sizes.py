"""Size and lag of every replica in every log directory."""

from collections.abc import Sequence

import pyarrow as pa

from kafka_audit.cluster.brokers import BrokerLogDirs
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.tables import table

NAME = "replica_sizes"
SCHEMA = pa.schema(
    [
        ("broker_id", pa.int32()),
        ("path", pa.string()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("size_bytes", pa.int64()),
        ("offset_lag", pa.int64()),
        ("is_future", pa.bool_()),
    ]
)


def collect(brokers: Sequence[BrokerLogDirs], scope: Scope, errors: ErrorLog) -> pa.Table:
    """One row per replica of a topic in scope, hidden topics included; Kafka does not list replicas in a failed directory."""
    rows: list[tuple[int, str, str, int, int, int, bool]] = []
    for broker in brokers:
        if broker.failure is not None:
            errors.add(NAME, broker.failure)
        for directory in broker.dirs:
            rows.extend(
                (broker.broker_id, directory.path, r.topic, r.partition, r.size_bytes, r.offset_lag, r.is_future)
                for r in directory.replicas
                if scope.covers_topic(r.topic)
            )
    return table(SCHEMA, sorted(rows))
