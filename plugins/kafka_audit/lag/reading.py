"""One reading of a cluster for the eyes: the datasets of an offsets snapshot, kept in memory and written nowhere."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.scope import Scope
from kafka_audit.policy import Policy

DEADLINE_SECONDS = 60.0
Row = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """Rows by dataset, client hosts by (group id, member id), the cluster's id, and when it was begun."""

    datasets: Mapping[str, list[Row]]
    hosts: Mapping[tuple[str, str], str]
    cluster_id: str | None
    taken_at: datetime


def take_reading(settings: ConnectionSettings, scope: Scope, policy: Policy, now: Callable[[], datetime]) -> Reading:
    """Connect, read what lag needs and disconnect; CollectionError when the cluster cannot be read at all."""
    from kafka_audit.cluster.bootstrap import Cluster  # noqa: PLC0415 - kafka-python is needed only to read
    from kafka_audit.collect.collection import Collection  # noqa: PLC0415 - as above

    taken_at = now()
    with Cluster(settings, deadline_seconds=DEADLINE_SECONDS) as connected:
        collection = Collection(connected, light=True, scope=scope, policy=policy, now=now)
        datasets = {name: table.to_pylist() for name, table in collection.datasets()}
    return Reading(datasets=datasets, hosts=collection.hosts, cluster_id=collection.cluster_id, taken_at=taken_at)
