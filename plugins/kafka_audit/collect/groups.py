"""Groups of every type with their state."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from kafka_audit.cluster.failures import Failure
from kafka_audit.cluster.groups import DescribedGroup, Group
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.tables import table

NAME = "groups"
SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("group_type", pa.string()),
        ("state", pa.string()),
        ("protocol_type", pa.string()),
        ("coordinator_id", pa.int32()),
        ("error", pa.string()),
    ]
)
_TYPES = frozenset({"classic", "consumer", "share", "streams"})


def collect(
    listed: Sequence[Group], described: Mapping[str, DescribedGroup | Failure], missing: Sequence[Failure], errors: ErrorLog
) -> pa.Table:
    """One row per group in scope; ``missing`` are brokers that could not list theirs."""
    errors.add_all(NAME, missing)
    rows = []
    for group in listed:
        found = described.get(group.group_id)
        failure = found if isinstance(found, Failure) else None
        state = group.state or (found.state if isinstance(found, DescribedGroup) else "Unknown")
        kind = group.group_type if group.group_type in _TYPES else "unknown"
        rows.append((group.group_id, kind, state, group.protocol_type, group.coordinator_id, failure.error if failure else None))
    return table(SCHEMA, rows)
