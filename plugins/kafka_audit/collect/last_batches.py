"""Headers of the last record batch of each partition: who wrote last, and how."""

from collections.abc import Callable, Collection
from datetime import datetime

import pyarrow as pa

from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.failures import INVALID_RESPONSE, Failure, unsupported
from kafka_audit.cluster.fetching import FETCH, OLDEST_FETCH
from kafka_audit.cluster.last_batches import LastBatch
from kafka_audit.cluster.leaders import Leaders, TopicPartition
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.tables import READ_AT, table

NAME = "last_batches"
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("producer_id", pa.int64()),
        ("producer_epoch", pa.int32()),
        ("base_sequence", pa.int32()),
        ("is_transactional", pa.bool_()),
        ("is_control", pa.bool_()),
        ("max_timestamp_ms", pa.int64()),
        ("error", pa.string()),
        ("read_at", READ_AT),
    ]
)
_UNREAD = (None,) * 8


def collect(
    cluster: Cluster, leaders: Leaders, offsets: pa.Table, *, internal: Collection[str], now: Callable[[], datetime], errors: ErrorLog
) -> pa.Table:
    """One row per partition of ``offsets`` that is not internal and not known to be empty; where ``error`` is set, the rest is null.

    producer_id, producer_epoch and base_sequence are -1 where the writer was not idempotent. Only headers are kept, never records.
    """
    if not cluster.supports(FETCH, OLDEST_FETCH):
        errors.add(NAME, unsupported("Fetch version 4", "0.11"))
        return table(SCHEMA, ())
    read_at = now()
    found: dict[TopicPartition, LastBatch | Failure] = {}
    wanted: dict[TopicPartition, int] = {}
    columns = (offsets.column(name).to_pylist() for name in ("topic", "partition", "log_start", "log_end", "error"))
    for topic, partition, start, end, error in zip(*columns, strict=True):
        if topic in internal:
            continue
        if start is None or end is None:
            text = "the end of the log is not known, so its last batch was not read"
            found[topic, partition] = Failure(
                api="ListOffsets", error=error or INVALID_RESPONSE, message=text, topic=topic, partition=partition
            )
        elif start < end:
            wanted[topic, partition] = end - 1
    found |= cluster.read_last_batches(leaders, wanted)
    rows: list[tuple[object, ...]] = []
    for key, batch in sorted(found.items()):
        if isinstance(batch, Failure):
            errors.add(NAME, batch)
            rows.append((*key, *_UNREAD, batch.error, read_at))
        else:
            rows.append((*key, *_columns(batch), None, read_at))
    return table(SCHEMA, rows)


def _columns(batch: LastBatch) -> tuple[object, ...]:
    return (
        batch.base_offset,
        batch.last_offset,
        batch.producer_id,
        batch.producer_epoch,
        batch.base_sequence,
        batch.is_transactional,
        batch.is_control,
        batch.max_timestamp_ms,
    )
