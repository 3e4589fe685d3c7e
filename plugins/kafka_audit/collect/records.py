"""What is read of records: offset and time of the first one a group has not read, and the header of the last batch of a partition."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from operator import attrgetter

import pyarrow as pa

from kafka_audit.cluster.bootstrap import Cluster
from kafka_audit.cluster.commits import Commit
from kafka_audit.cluster.failures import INVALID_RESPONSE, Failure, unsupported
from kafka_audit.cluster.fetching import API, OLDEST_FETCH, LastBatch, read_last_batches
from kafka_audit.cluster.first_records import read_first_records
from kafka_audit.cluster.routing import Leaders, TopicPartition
from kafka_audit.collect.datasets import FIRST_UNREAD, LAST_BATCHES, Dataset
from kafka_audit.collect.offsets import Log
from kafka_audit.collect.tables import ErrorLog, table

_BATCH_COLUMNS = LAST_BATCHES.schema.names[2:-2]


def first_unread(
    cluster: Cluster,
    leaders: Leaders,
    commits: Mapping[str, Sequence[Commit]],
    logs: Mapping[TopicPartition, Log],
    *,
    internal: Collection[str],
    now: Callable[[], datetime],
    errors: ErrorLog,
) -> pa.Table:
    """One row per partition and position of a group that is behind there, internal topics left out; needs Read on the topic.

    ``offset`` is where the group reads on: its commit, or the log start where that is later. ``record_offset`` is the first record at or
    after it that no aborted transaction wrote; null without an error = only control records (the ends of transactions) and records of
    aborted transactions follow up to the log end that was read. Records of open transactions count. ``timestamp_ms`` is stored as the
    record has it: CreateTime may lie in the future.
    """
    if not _can_fetch(cluster, FIRST_UNREAD, errors):
        return table(FIRST_UNREAD.schema, ())
    read_at = now()
    wanted: dict[TopicPartition, set[int]] = {}
    # Many groups stand at the same offset.
    known = {(one.topic, one.partition, one.committed) for of_group in commits.values() for one in of_group if one.committed is not None}
    for topic, partition, committed in sorted(known):
        log = logs.get((topic, partition))
        if log is None or topic in internal:
            continue
        position = max(committed, log.start)
        if position < log.end:
            wanted.setdefault((topic, partition), set()).add(position)
    found = read_first_records(
        cluster,
        leaders,
        {key: sorted(positions) for key, positions in wanted.items()},
        stable={key: logs[key].stable for key in wanted},
        ends={key: logs[key].end for key in wanted},
    )
    rows: list[tuple[object, ...]] = []
    for place, record in sorted(found.items()):
        if isinstance(record, Failure):
            errors.add(FIRST_UNREAD, record)
            rows.append((*place, None, None, None, record.error, read_at))
        else:
            rows.append((*place, record.offset, record.timestamp_ms, record.timestamp_type, None, read_at))
    return table(FIRST_UNREAD.schema, rows)


def last_batches(
    cluster: Cluster, leaders: Leaders, ends: pa.Table, *, internal: Collection[str], now: Callable[[], datetime], errors: ErrorLog
) -> pa.Table:
    """One row per partition of ``ends`` (the dataset ``offsets``) that is not internal and not known to be empty.

    Where ``error`` is set, the rest is null. producer_id, producer_epoch and base_sequence are -1 where the writer was not idempotent.
    Only headers are kept, never records.
    """
    if not _can_fetch(cluster, LAST_BATCHES, errors):
        return table(LAST_BATCHES.schema, ())
    read_at = now()
    found: dict[TopicPartition, LastBatch | Failure] = {}
    wanted: dict[TopicPartition, int] = {}
    columns = (ends.column(name).to_pylist() for name in ("topic", "partition", "log_start", "log_end", "error"))
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
    found |= read_last_batches(cluster, leaders, wanted)
    values = attrgetter(*_BATCH_COLUMNS)
    rows: list[tuple[object, ...]] = []
    for key, batch in sorted(found.items()):
        if isinstance(batch, Failure):
            errors.add(LAST_BATCHES, batch)
            rows.append((*key, *(None for _ in _BATCH_COLUMNS), batch.error, read_at))
        else:
            rows.append((*key, *values(batch), None, read_at))
    return table(LAST_BATCHES.schema, rows)


def _can_fetch(cluster: Cluster, dataset: Dataset, errors: ErrorLog) -> bool:
    supported = cluster.supports(API, OLDEST_FETCH)
    if not supported:
        errors.add(dataset, unsupported("Fetch version 4", "0.11"))
    return supported
