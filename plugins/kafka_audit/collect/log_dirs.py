"""Log directories of the brokers: failed or not, size and free space."""

from collections.abc import Sequence

import pyarrow as pa

from kafka_audit.cluster.brokers import BrokerLogDirs
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.tables import table

NAME = "log_dirs"
SCHEMA = pa.schema(
    [
        ("broker_id", pa.int32()),
        ("path", pa.string()),
        ("error", pa.string()),
        ("total_bytes", pa.int64()),
        ("usable_bytes", pa.int64()),
    ]
)


def collect(brokers: Sequence[BrokerLogDirs], errors: ErrorLog) -> pa.Table:
    """One row per directory; a broker whose directories are not known has one row with a null path and the error."""
    rows: list[tuple[object, ...]] = []
    for broker in sorted(brokers, key=lambda one: one.broker_id):
        if broker.failure is not None:
            errors.add(NAME, broker.failure)
            rows.append((broker.broker_id, None, broker.failure.error, None, None))
        rows.extend((broker.broker_id, d.path, d.error, d.total_bytes, d.usable_bytes) for d in sorted(broker.dirs, key=lambda d: d.path))
    return table(SCHEMA, rows)
