"""Producers that partition leaders remember, and transactions that coordinators remember."""

from collections.abc import Iterable, Sequence
from operator import attrgetter

import pyarrow as pa

from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.failures import Failure, unsupported
from kafka_audit.cluster.offsets import describe_producers
from kafka_audit.cluster.routing import Leaders, TopicPartition
from kafka_audit.cluster.topics import Partition
from kafka_audit.cluster.transactions import TransactionDetail, describe_transactions, list_transactions
from kafka_audit.collect.coordinators import without_leader
from kafka_audit.collect.datasets import PRODUCERS, TRANSACTIONS
from kafka_audit.collect.part import Part
from kafka_audit.collect.tables import ErrorLog, table


def producers(cluster: Cluster, leaders: Leaders, partitions: Sequence[TopicPartition], errors: ErrorLog) -> pa.Table:
    """One row per partition and producer id; only producers with an id (idempotent or transactional) are remembered."""
    if not cluster.supports("DescribeProducers"):
        errors.add(PRODUCERS, unsupported("DescribeProducers", "2.8"))
        return table(PRODUCERS.schema, ())
    values = attrgetter(*PRODUCERS.schema.names[2:])
    rows: list[tuple[object, ...]] = []
    for key, found in sorted(describe_producers(cluster, leaders, partitions).items()):
        if isinstance(found, Failure):
            errors.add(PRODUCERS, found)
        else:
            rows.extend((*key, *values(one)) for one in sorted(found, key=lambda producer: producer.producer_id))
    return table(PRODUCERS.schema, rows)


def transactions(cluster: Cluster, partitions: Iterable[Partition], part: Part, errors: ErrorLog) -> pa.Table:
    """One row per transactional id; timeout, start and partitions are null where it could not be described.

    ``partitions`` are those of all topics, as listed before. A row names those partitions of which ``part`` has the topics.
    """
    if not cluster.supports("ListTransactions"):
        errors.add(TRANSACTIONS, unsupported("ListTransactions", "3.0"))
        return table(TRANSACTIONS.schema, ())
    listed, failures = list_transactions(cluster)
    errors.add_all(TRANSACTIONS, (*failures, *without_leader(cluster, "ListTransactions", partitions)))
    details = describe_transactions(cluster, listed)
    rows: list[tuple[object, ...]] = []
    for one in listed:
        detail = details[one.transactional_id]
        known = detail if isinstance(detail, TransactionDetail) else None
        if isinstance(detail, Failure):
            errors.add(TRANSACTIONS, detail)
        rows.append(
            (
                one.transactional_id,
                one.producer_id,
                known.state if known else one.state,
                one.coordinator_id,
                known.timeout_ms if known else None,
                known.start_time_ms if known else None,
                [{"topic": topic, "partition": index} for topic, index in known.partitions if part.has(topic)] if known else None,
            )
        )
    return table(TRANSACTIONS.schema, rows)
