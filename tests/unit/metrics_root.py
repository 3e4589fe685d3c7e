"""A root with snapshots of offsets, for the tests of the metrics page."""

from datetime import datetime, timedelta, timezone
from typing import Any

import pyarrow as pa
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from kafka_audit.collect.datasets import DATASETS, QUORUM
from kafka_audit.lag.standings import READ
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id
from kafka_audit.store.sealed import OFFSETS, SNAPSHOT

AT = datetime(2026, 11, 21, 0, 0, tzinfo=timezone.utc)
Rows = dict[str, list[dict[str, Any]]]
Samples = dict[tuple[str, ...], float]


def offsets_snapshot(root: EvidenceRoot, cluster: str, rows: Rows, at: datetime = AT, kind: str = OFFSETS, **about: Any) -> Snapshot:
    """Seal a snapshot of these rows (dataset -> rows), begun at ``at``; what was read has that time. ``about``: more of the manifest."""
    tables = {name: pa.Table.from_pylist(rows.get(name, []), schema=DATASETS[name].schema) for name in (*READ, QUORUM.name)}
    return sealed(root, cluster, tables, at, kind, **about)


def sealed(root: EvidenceRoot, cluster: str, tables: dict[str, pa.Table], at: datetime = AT, kind: str = OFFSETS, **more: Any) -> Snapshot:
    with root.snapshot_writer(cluster, new_id(at, cluster + kind), kind) as writer:
        for name, table in tables.items():
            if kind == SNAPSHOT or DATASETS[name].light:
                writer.write(name, table)
        about = {"cluster_id": "one", "started_at": at.isoformat(), "finished_at": (at + timedelta(seconds=4)).isoformat()}
        return Snapshot.open(writer.seal({**about, **more}))


def samples(text: str) -> Samples:
    """(name, label values in the order of their names) -> value, by a parser that is not ours."""
    return {(one.name, *one.labels.values()): one.value for family in text_string_to_metric_families(text) for one in family.samples}
