"""A root with audits of which only what notifications look at is real: run.json, the index, the seal."""

from datetime import datetime, timedelta, timezone
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from news_overviews import overview

from kafka_audit.index.news_item import Observed
from kafka_audit.index.observe import observe
from kafka_audit.index.tables import FAILURE_ROW
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, new_id, seal_audit

CLUSTER = "orders-prod"
NOON = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)
HOUR = timedelta(hours=1)


class IndexedCluster:
    """Audits of which only what is observed is real: run.json, the index, the seal."""

    def __init__(self, path: Path) -> None:
        self.root = EvidenceRoot(path=path)

    def begun(self, hour: float) -> Audit:
        at = NOON + hour * HOUR
        audit = self.root.audit(CLUSTER, new_id(at, "audit"))
        write_json(audit.run_file, {"audit_id": audit.path.name, "started_at": at.isoformat(), "dag_id": "d", "run_id": f"run {hour:g}"})
        return audit

    def sealed(self, hour: float, waived: str | None = None, **fields: object) -> Audit:
        audit = self.begun(hour)
        self.write_index(audit, waived=waived, **fields)
        seal_audit(self.root, CLUSTER, audit.path.name, {"snapshot": {"snapshot_id": "x"}})
        return audit

    @staticmethod
    def write_index(audit: Audit, cluster: str = CLUSTER, waived: str | None = None, **fields: object) -> None:
        """An index with two failures, of which the first may be waived; ``fields`` are those of its overview."""
        value = overview(**fields).model_dump(mode="json") | {"audit_id": audit.path.name, "cluster": cluster}
        write_json(audit.path / "index" / "overview.json", value)
        blank = dict.fromkeys(FAILURE_ROW.names)
        rows = [{**blank, "control_id": "c", "resource": name, "waiver": waiver} for name, waiver in (("a", waived), ("b", None))]
        pq.write_table(pa.Table.from_pylist(rows, FAILURE_ROW), audit.path / "index" / "failures.parquet")

    def seen(self, hour: float, **about: str) -> Observed:
        return observe(self.root, CLUSTER, now=NOON + hour * HOUR, finish_within=2 * HOUR, **about)
