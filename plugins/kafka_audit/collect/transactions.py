"""Transactions that coordinators remember."""

import pyarrow as pa

from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.failures import Failure, unsupported
from kafka_audit.cluster.transactions import TransactionDetail
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.tables import PARTITION_LIST, table

NAME = "transactions"
SCHEMA = pa.schema(
    [
        ("transactional_id", pa.string()),
        ("producer_id", pa.int64()),
        ("state", pa.string()),
        ("coordinator_id", pa.int32()),
        ("timeout_ms", pa.int64()),
        ("start_time_ms", pa.int64()),
        ("partitions", PARTITION_LIST),
    ]
)


def collect(cluster: Cluster, errors: ErrorLog) -> pa.Table:
    """One row per transactional id; timeout, start and partitions are null where it could not be described."""
    if not cluster.supports(cluster.read_apis()["ListTransactions"]):
        errors.add(NAME, unsupported("ListTransactions", "3.0"))
        return table(SCHEMA, ())
    listed, failures = cluster.list_transactions()
    errors.add_all(NAME, failures)
    details = cluster.describe_transactions(listed)
    rows: list[tuple[object, ...]] = []
    for one in listed:
        detail = details[one.transactional_id]
        known = detail if isinstance(detail, TransactionDetail) else None
        if isinstance(detail, Failure):
            errors.add(NAME, detail)
        rows.append(
            (
                one.transactional_id,
                one.producer_id,
                known.state if known else one.state,
                one.coordinator_id,
                known.timeout_ms if known else None,
                known.start_time_ms if known else None,
                [{"topic": topic, "partition": index} for topic, index in known.partitions] if known else None,
            )
        )
    return table(SCHEMA, rows)
