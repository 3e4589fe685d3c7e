"""Brokers: those alive, those fenced, and those known only as owners of replicas."""

from collections.abc import Collection, Iterable, Sequence

import pyarrow as pa

from kafka_audit.cluster.bootstrap import BrokerAddress
from kafka_audit.cluster.brokers import ClusterNode
from kafka_audit.collect.tables import table

NAME = "brokers"
SCHEMA = pa.schema(
    [
        ("broker_id", pa.int32()),
        ("host", pa.string()),
        ("port", pa.int32()),
        ("rack", pa.string()),
        ("alive", pa.bool_()),
        ("answered", pa.bool_()),
        ("is_controller", pa.bool_()),
    ]
)


def collect(
    *,
    alive: Sequence[BrokerAddress],
    registered: Sequence[ClusterNode],
    replica_owners: Iterable[int],
    unanswered: Collection[int],
    controller_id: int | None,
) -> pa.Table:
    """One row per broker id; host and port are null for an id that only replicas name. ``answered`` is false for all not alive."""
    rows: dict[int, tuple[object, ...]] = {}
    for broker_id in replica_owners:
        rows[broker_id] = (broker_id, None, None, None, False, False, _is(broker_id, controller_id))
    for node in registered:
        rows[node.broker_id] = (node.broker_id, node.host, node.port, node.rack, False, False, _is(node.broker_id, controller_id))
    for broker in alive:
        answered = broker.broker_id not in unanswered
        row = (broker.broker_id, broker.host, broker.port, broker.rack, True, answered, _is(broker.broker_id, controller_id))
        rows[broker.broker_id] = row
    return table(SCHEMA, [rows[broker_id] for broker_id in sorted(rows)])


def _is(broker_id: int, controller_id: int | None) -> bool | None:
    return None if controller_id is None else broker_id == controller_id
