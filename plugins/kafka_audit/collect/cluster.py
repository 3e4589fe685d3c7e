"""Identity and feature levels of the cluster: one row."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from kafka_audit.cluster.bootstrap import BrokerVersions, Feature
from kafka_audit.collect.tables import NAMES, READ_AT, table

NAME = "cluster"
_LEVEL = pa.int16()
SCHEMA = pa.schema(
    [
        ("cluster_id", pa.string()),
        ("controller_id", pa.int32()),
        ("read_at", READ_AT),
        (
            "features",
            pa.list_(
                pa.struct(
                    [
                        ("name", pa.string()),
                        ("finalized_min", _LEVEL),
                        ("finalized_max", _LEVEL),
                        ("supported_min", _LEVEL),
                        ("supported_max", _LEVEL),
                    ]
                )
            ),
        ),
        ("authorized_operations", NAMES),
    ]
)


def collect(
    *,
    cluster_id: str | None,
    controller_id: int | None,
    features: Iterable[Feature],
    read_at: datetime,
    authorized_operations: Sequence[str] | None,
) -> pa.Table:
    """One row; ``controller_id`` is the active controller, ``authorized_operations`` what the audit's principal may do, null = not told."""
    listed = [
        {
            "name": f.name,
            "finalized_min": f.finalized_min,
            "finalized_max": f.finalized_max,
            "supported_min": f.supported_min,
            "supported_max": f.supported_max,
        }
        for f in features
    ]
    return table(SCHEMA, [(cluster_id, controller_id, read_at, listed, authorized_operations)])


def common_features(versions: Mapping[int, BrokerVersions]) -> tuple[Feature, ...]:
    """Features over all brokers that answered: the levels that every one of them supports (KIP-584)."""
    by_name: dict[str, list[Feature]] = {}
    for broker in versions.values():
        for feature in broker.features:
            by_name.setdefault(feature.name, []).append(feature)
    return tuple(_common(found) for _, found in sorted(by_name.items()))


def _common(found: list[Feature]) -> Feature:
    lowest = [f.supported_min for f in found if f.supported_min is not None]
    highest = [f.supported_max for f in found if f.supported_max is not None]
    # Finalized levels belong to the cluster; a broker that lags behind shows an older one for a moment.
    newest = max(found, key=lambda f: -1 if f.finalized_max is None else f.finalized_max)
    return Feature(
        name=newest.name,
        finalized_min=newest.finalized_min,
        finalized_max=newest.finalized_max,
        supported_min=max(lowest) if lowest else None,
        supported_max=min(highest) if highest else None,
    )
