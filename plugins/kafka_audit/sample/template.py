"""The real audit that sample audits are made from: its rules and its tables, read once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from kafka_audit.catalogue.load import Catalogue, load_catalogue
from kafka_audit.collect.datasets import DATASETS
from kafka_audit.errors import IntegrityError
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot
from kafka_audit.store.sealed import AUDIT, Sealed
from kafka_audit.times import parse_time

PARTS = ("settings", "lag")


@dataclass(frozen=True, kw_only=True)
class Template:
    """A sealed audit with results of both parts: ``findings`` and ``summaries`` by part, ``lag`` its three tables of groups by name."""

    audit: Audit
    snapshot: Snapshot
    catalogue: Catalogue
    findings: Mapping[str, pa.Table]
    summaries: Mapping[str, pa.Table]
    lag: Mapping[str, pa.Table]
    datasets: Mapping[str, pa.Table]

    @cached_property
    def rows(self) -> dict[str, list[dict[str, Any]]]:
        """The findings of each part as dicts; nobody changes them."""
        return {part: table.to_pylist() for part, table in self.findings.items()}

    @property
    def controls(self) -> Path:
        return self.audit.inputs / "controls"

    @property
    def policy(self) -> Path:
        return self.audit.inputs / "policy"

    @property
    def began(self) -> datetime:
        """When its snapshot was begun."""
        return datetime.fromtimestamp(self.snapshot.taken_ms / 1000, timezone.utc)

    @property
    def seconds(self) -> float:
        """How long its snapshot took."""
        ended: datetime = parse_time(self.snapshot.manifest["finished_at"])
        return (ended - parse_time(self.snapshot.manifest["started_at"])).total_seconds()


def newest_with_results(root: EvidenceRoot, clusters: Sequence[str]) -> tuple[str, str] | None:
    """(cluster, audit id) of the newest sealed audit that left findings of both parts, of the first cluster that has one; else None."""
    for cluster in clusters:
        for audit_id in reversed(root.sealed_ids(cluster, AUDIT)):
            folder = root.audit(cluster, audit_id).path
            if all((folder / part / "findings.parquet").exists() for part in PARTS) and (folder / "inputs").is_dir():
                return cluster, audit_id
    return None


def read_template(root: EvidenceRoot, cluster: str, audit_id: str) -> Template:
    """Read an audit as a template, after its hashes were checked; IntegrityError (exit 5) if it or its snapshot is not as it was sealed."""
    audit = root.audit(cluster, audit_id)
    Sealed.verified(audit.path, root.place(cluster, AUDIT))
    snapshot = Snapshot.verified(root.snapshot_dir(cluster, str(audit.run()["snapshot_id"])))
    return Template(
        audit=audit,
        snapshot=snapshot,
        catalogue=load_catalogue([audit.inputs / "controls"]),
        findings={part: _read(audit.path / part / "findings.parquet") for part in PARTS},
        summaries={part: _read(audit.path / part / "summary.parquet") for part in PARTS},
        lag={name: _read(audit.lag / f"{name}.parquet") for name in ("group_partitions", "group_slas", "lag_series")},
        datasets={name: _read(snapshot.dataset(name)) for name in DATASETS},
    )


def _read(path: Path) -> pa.Table:
    """A whole table: a template is the audit of a demo, which is small."""
    try:
        return ds.dataset(path, format="parquet").to_table()
    except (OSError, pa.ArrowException) as problem:
        raise IntegrityError(f"{path}: cannot be read as Parquet ({problem}), so no sample can be made of it") from problem
