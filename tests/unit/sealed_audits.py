"""Small sealed audits with real files: a snapshot, the jobs' records of earlier evidence, policy and controls, a report."""

import hashlib
import json
import shutil
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_audit.audit.inputs import keep_rules, keep_used, rules_record
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.policy import load_policy
from kafka_audit.store.chain_state import Seal
from kafka_audit.store.durable_files import sha256_of, write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot, new_id, seal_audit
from kafka_audit.store.manifest import tree_files
from kafka_audit.store.sealed import OFFSETS, SNAPSHOT

CLUSTER = "prod"
NOON = datetime(2026, 11, 20, 12, 0, 0, tzinfo=timezone.utc)


def audit_id(hour: float) -> str:
    return new_id(NOON + timedelta(hours=hour), f"audit {hour}")


def seal(root: EvidenceRoot, hour: float, text: str = "PASSED") -> Seal:
    """Seal a bare audit: a run file and a report."""
    audit = root.audit(CLUSTER, audit_id(hour))
    write_json(audit.run_file, {"audit_id": audit.path.name})
    write_json(audit.report / "report.json", {"verdict": text})
    return seal_audit(root, CLUSTER, audit.path.name, {"snapshot": {"snapshot_id": "x"}})


def snapshot(root: EvidenceRoot, hour: float, kind: str = SNAPSHOT) -> Snapshot:
    taken = NOON + timedelta(hours=hour)
    with root.snapshot_writer(CLUSTER, new_id(taken, kind), kind) as writer:
        writer.write("topics", pa.table({"topic": ["orders"], "hour": [hour]}))
        return Snapshot.open(writer.seal({"cluster_id": "one", "started_at": taken.isoformat(), "finished_at": taken.isoformat()}))


def sealed_folder(folder: Path, rows: int, **about: Any) -> Path:
    """A rolled-up day, or behaviour tables: a folder with one table and a manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"value": list(range(rows))}), folder / "groups.parquet")
    write_json(folder / "manifest.json", {**about, "schema_version": 1, "cluster": CLUSTER, "files": tree_files(folder)})
    return folder


class WholeAudit:
    """One audit with everything that a real one names, made of small files."""

    def __init__(self, path: Path, hour: float = 0) -> None:
        self.root = EvidenceRoot(path=path)
        self.controls = path / "controls"
        self.controls.mkdir(parents=True)
        for name in ("log_dirs_healthy.yaml", "declared_groups_alive.yaml"):
            shutil.copy(shipped_controls() / name, self.controls)
        self.snapshot = snapshot(self.root, hour)
        self.earlier = snapshot(self.root, hour - 24)
        self.offsets = snapshot(self.root, hour - 1, OFFSETS)
        self.day = sealed_folder(self.root.lag_days(CLUSTER) / "2026-11-19", 3, kind="lag_day", day="2026-11-19")
        tables = self.root.commit_history(CLUSTER) / "behaviour" / "20261120T110000Z"
        self.behaviour = sealed_folder(tables, 2, kind="commit_behaviour", end="2026-11-20T11:00:00+00:00")
        self.audit: Audit = self.root.audit(CLUSTER, audit_id(hour))
        named = {"used": [_named(self.earlier)], "used_offsets": [_named(self.offsets)], "left_out": [], "of_another_cluster": []}
        write_json(self.audit.run_file, {"audit_id": self.audit.path.name})
        for job in (self.audit.settings, self.audit.lag):
            write_json(job / "history.json", named)
            write_json(job / "rules.json", rules_record(load_policy(), load_catalogue([self.controls])))
        self.findings = self.audit.settings / "findings.parquet" / "part-00000.parquet"
        self.findings.parent.mkdir()
        self.write_findings()
        days = [{"day": self.day.name, "manifest_sha256": sha256_of(self.day / "manifest.json")}]
        write_json(self.audit.lag / "lag_history.json", {"days": days, "offsets_snapshots": [_named(self.offsets)]})
        used = {"folder": f"behaviour/{self.behaviour.name}", "manifest_sha256": sha256_of(self.behaviour / "manifest.json")}
        write_json(self.audit.lag / "commit_history.json", used)
        write_json(self.audit.report / "report.json", {"verdict": "FAILED"})
        self.sealed = self.seal()

    def write_findings(self, **changes: str) -> None:
        """Two findings, as the job wrote them; ``changes`` replace fields of the second."""
        catalogue = load_catalogue([self.controls])
        rule = {"control_id": "log_dirs_healthy", "rule_sha256": catalogue.rules["log_dirs_healthy"].sha256}
        row = {**rule, "rule_set_sha256": catalogue.rule_set_sha256, "status": "fail"}
        pq.write_table(pa.Table.from_pylist([row, {**row, **changes}]), self.findings)

    def seal(self) -> Seal:
        policy, catalogue = load_policy(), load_catalogue([self.controls])
        keep_used(self.audit, self.root, CLUSTER)
        keep_rules(self.audit, policy, catalogue, [self.controls])
        about = {"snapshot": _named(self.snapshot), **rules_record(policy, catalogue)}
        return seal_audit(self.root, CLUSTER, self.audit.path.name, about)


def _named(one: Snapshot) -> Mapping[str, str]:
    return {"snapshot_id": one.snapshot_id, "manifest_sha256": one.manifest_sha256}


def forge(folder: Path, change: Mapping[str, Any] | None = None) -> str:
    """Make a manifest fit the folder's files again, as one who may write there can, and change fields of it; returns its sha256."""
    file = folder / "manifest.json"
    manifest = json.loads(file.read_text())
    manifest["files"] = {name: {**manifest["files"].get(name, {}), **entry} for name, entry in tree_files(folder).items()}
    file.write_text(json.dumps({**manifest, **(change or {})}))
    return hashlib.sha256(file.read_bytes()).hexdigest()
