"""Groups of every type with their state."""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from kafka_audit.cluster.failures import Failure
from kafka_audit.cluster.groups import DescribedGroup, Group
from kafka_audit.collect.errors import ErrorLog
from kafka_audit.collect.tables import NAMES, table

NAME = "groups"
SCHEMA = pa.schema(
    [
        ("group_id", pa.string()),
        ("group_type", pa.string()),
        ("state", pa.string()),
        ("protocol_type", pa.string()),
        ("coordinator_id", pa.int32()),
        ("error", pa.string()),
        ("authorized_operations", NAMES),
        ("assignor", pa.string()),
    ]
)
_TYPES = frozenset({"classic", "consumer", "share", "streams"})


def collect(
    listed: Sequence[Group], described: Mapping[str, DescribedGroup | Failure], missing: Sequence[Failure], errors: ErrorLog
) -> pa.Table:
    """One row per group in scope; ``missing`` are brokers that could not list theirs.

    ``authorized_operations`` (of the audit's principal, KIP-430) and ``assignor`` are null for a group that was not described: one
    that was refused, or that was listed as Empty.
    """
    errors.add_all(NAME, missing)
    rows = []
    for group in listed:
        found = described.get(group.group_id)
        failure = found if isinstance(found, Failure) else None
        known = found if isinstance(found, DescribedGroup) else None
        state = group.state or (known.state if known else "Unknown")
        kind = group.group_type if group.group_type in _TYPES else "unknown"
        rows.append(
            (
                group.group_id,
                kind,
                state,
                group.protocol_type,
                group.coordinator_id,
                failure.error if failure else None,
                known.authorized_operations if known else None,
                known.assignor if known else None,
            )
        )
    return table(SCHEMA, rows)
