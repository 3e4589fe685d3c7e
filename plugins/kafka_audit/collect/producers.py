"""Producers that partition leaders remember."""

from collections.abc import Sequence

import pyarrow as pa

from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.failures import Failure, unsupported
from kafka_audit.cluster.leaders import Leaders
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.tables import table

NAME = "producers"
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int32()),
        ("last_sequence", pa.int32()),
        ("last_timestamp_ms", pa.int64()),
        ("coordinator_epoch", pa.int32()),
        ("current_txn_start_offset", pa.int64()),
    ]
)
Key = tuple[str, int]


def collect(cluster: Cluster, leaders: Leaders, partitions: Sequence[Key], errors: ErrorLog) -> pa.Table:
    """One row per partition and producer id; only producers with an id (idempotent or transactional) are remembered."""
    if not cluster.supports(cluster.read_apis()["DescribeProducers"]):
        errors.add(NAME, unsupported("DescribeProducers", "2.8"))
        return table(SCHEMA, ())
    rows: list[tuple[object, ...]] = []
    for key, found in sorted(cluster.describe_producers(leaders, partitions).items()):
        if isinstance(found, Failure):
            errors.add(NAME, found)
            continue
        rows.extend(
            (
                *key,
                one.producer_id,
                one.producer_epoch,
                one.last_sequence,
                one.last_timestamp_ms,
                one.coordinator_epoch,
                one.current_txn_start_offset,
            )
            for one in sorted(found, key=lambda producer: producer.producer_id)
        )
    return table(SCHEMA, rows)
