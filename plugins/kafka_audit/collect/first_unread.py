"""The first record that each lagging group has not read: its offset and its time, nothing else of it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from kafka_audit.cluster.commits import Commit
from kafka_audit.cluster.facade import Cluster
from kafka_audit.cluster.failures import Failure, unsupported
from kafka_audit.cluster.fetching import FETCH, OLDEST_FETCH
from kafka_audit.cluster.leaders import Leaders
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.offsets import Key, Log
from kafka_audit.collect.tables import READ_AT, table

NAME = "first_unread"
SCHEMA = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("record_offset", pa.int64()),
        ("timestamp_ms", pa.int64()),
        ("timestamp_type", pa.string()),
        ("error", pa.string()),
        ("read_at", READ_AT),
    ]
)


def collect(
    cluster: Cluster,
    leaders: Leaders,
    commits: Mapping[str, Sequence[Commit]],
    logs: Mapping[Key, Log],
    *,
    internal: Collection[str],
    now: Callable[[], datetime],
    errors: ErrorLog,
) -> pa.Table:
    """One row per partition and position of a group that is behind there, internal topics left out; needs Read on the topic.

    ``offset`` is where the group reads on: its commit, or the log start where that is later. ``record_offset`` is the first record at or
    after it; null without an error = only control records (the ends of transactions) follow up to the log end that was read.
    ``timestamp_ms`` is stored as the record has it: CreateTime may lie in the future, and records of open or aborted transactions count.
    """
    if not cluster.supports(FETCH, OLDEST_FETCH):
        errors.add(NAME, unsupported("Fetch version 4", "0.11"))
        return table(SCHEMA, ())
    read_at = now()
    wanted: dict[Key, set[int]] = {}
    for committed in commits.values():
        for commit in committed:
            log = logs.get((commit.topic, commit.partition))
            if commit.committed is None or log is None or commit.topic in internal:
                continue
            position = max(commit.committed, log.start)
            if position < log.end:
                wanted.setdefault((commit.topic, commit.partition), set()).add(position)
    found = cluster.read_first_records(
        leaders, {key: sorted(positions) for key, positions in wanted.items()}, {key: logs[key].end for key in wanted}
    )
    rows: list[tuple[object, ...]] = []
    for place, record in sorted(found.items()):
        if isinstance(record, Failure):
            errors.add(NAME, record)
            rows.append((*place, None, None, None, record.error, read_at))
        else:
            rows.append((*place, record.offset, record.timestamp_ms, record.timestamp_type, None, read_at))
    return table(SCHEMA, rows)
