"""Voters and observers of the metadata quorum."""

from collections.abc import Iterable
from datetime import datetime

import pyarrow as pa

from kafka_audit.cluster.brokers import QuorumReplica
from kafka_audit.collect.tables import READ_AT, table

NAME = "quorum"
SCHEMA = pa.schema(
    [
        ("replica_id", pa.int32()),
        ("role", pa.string()),
        ("is_leader", pa.bool_()),
        ("log_end_offset", pa.int64()),
        ("last_fetch_timestamp_ms", pa.int64()),
        ("last_caught_up_timestamp_ms", pa.int64()),
        ("read_at", READ_AT),
    ]
)


def collect(replicas: Iterable[QuorumReplica], read_at: datetime) -> pa.Table:
    """One row per voter and observer; role is ``voter`` or ``observer``, timestamps are of the leader's clock."""
    rows = [
        (
            one.replica_id,
            "voter" if one.is_voter else "observer",
            one.is_leader,
            one.log_end_offset,
            one.last_fetch_timestamp_ms,
            one.last_caught_up_timestamp_ms,
            read_at,
        )
        for one in replicas
    ]
    return table(SCHEMA, rows)
