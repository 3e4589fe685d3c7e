"""Small snapshots and audits that pass both gates; each test damages one thing in them."""

import glob
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from expectations.gate import judge_findings
from kafka_audit.audit.gate_result import GateResult, OldFailures
from kafka_audit.collect.datasets import DATASETS
from kafka_audit.findings import Severity, Verdict
from kafka_audit.policy.waivers import Waiver
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot

STARTED = datetime(2026, 11, 20, 23, 15, 0, tzinfo=timezone.utc)
READ = STARTED + timedelta(seconds=2)
FINISHED = STARTED + timedelta(seconds=4)
NOW = FINISHED + timedelta(seconds=60)
SNAPSHOT_ID = "20261120T231500Z-ab12cd34ab12cd34"
HOSTILE = "<script>alert(1)</script>\"'`=cmd|' /C calc'!A0\n\u202e"

Rows = dict[str, list[dict[str, Any]]]


def healthy_rows() -> Rows:
    """Two brokers, one topic of two partitions, one group that commits; every dataset is there."""
    places = [{"topic": HOSTILE, "partition": number} for number in (0, 1)]
    return {
        **{name: [] for name in DATASETS},
        "cluster": [{"cluster_id": "c1", "controller_id": 1, "read_at": READ, "features": []}],
        "brokers": [{"broker_id": number, "alive": True, "answered": True} for number in (1, 2)],
        "broker_configs": [{"broker_id": number, "name": "min.insync.replicas", "value": "2"} for number in (1, 2)],
        "topics": [{"topic": HOSTILE, "partition_count": 2}],
        "partitions": [{**place, "leader": 1, "replicas": [1, 2], "isr": [1, 2], "read_at": READ} for place in places],
        "topic_configs": [{"topic": HOSTILE, "name": "retention.ms", "value": "1"}],
        "groups": [{"group_id": HOSTILE, "state": "Stable"}],
        "members": [{"group_id": HOSTILE, "member_id": "m1"}],
        "committed_offsets": [{"group_id": HOSTILE, **place, "committed": 5, "read_at": READ} for place in places],
        "offsets": [{**place, "log_start": 0, "log_end": 5, "read_at": READ} for place in places],
        "sla_offsets": [{**place, "max_lag_seconds": limit, "offset": 4, "read_at": READ} for place in places for limit in (60, 300)],
        "first_unread": [{**place, "offset": offset, "record_offset": 4, "read_at": READ} for place in places for offset in (3, 4)],
        "capabilities": [{"api": "Metadata", "supported": True}],
    }


def manifest_fields() -> dict[str, Any]:
    return {"cluster_id": "c1", "started_at": STARTED.isoformat(), "finished_at": FINISHED.isoformat()}


def write_snapshot(
    root: Path, rows: Rows, *, fields: Mapping[str, Any] | None = None, tables: Mapping[str, pa.Table | None] | None = None
) -> Snapshot:
    """Seal a snapshot of ``rows``; ``tables`` replaces whole datasets (None leaves the file out)."""
    with EvidenceRoot(path=root).snapshot_writer("demo", SNAPSHOT_ID) as writer:
        for name, dataset in rows.items():
            table = (tables or {}).get(name, pa.Table.from_pylist(dataset, schema=DATASETS[name].schema))
            if table is not None and not (tables and name in tables and tables[name] is None):
                writer.write(name, table)
        return Snapshot.open(writer.seal(manifest_fields() if fields is None else fields))


# code, id, severity, job, status of each finding
CONTROLS = {
    "durable_topics": ("TOP-01", Severity.CRITICAL, "settings"),
    "racks_are_set": ("BRK-03", Severity.MEDIUM, "settings"),
    "lag_within_sla": ("CON-01", Severity.HIGH, "lag"),
}
CATALOGUE = {name: severity for name, (_, severity, _) in CONTROLS.items()}
HEALTHY = {"durable_topics": ["pass"] * 8, "racks_are_set": ["pass", "not_applicable"], "lag_within_sla": ["pass"] * 3}
_COLUMNS = {"pass": "passed", "fail": "failed", "error": "errored", "not_assessed": "not_assessed", "not_applicable": "not_applicable"}


def findings_of(statuses: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    return [
        {
            "snapshot_id": SNAPSHOT_ID,
            "control_id": control,
            "code": CONTROLS[control][0] if control in CONTROLS else "XXX-01",
            "resource": f"{HOSTILE}-{number}",
            "severity": CONTROLS[control][1].value if control in CONTROLS else "low",
            "status": status,
            "waiver": None,
        }
        for control, found in statuses.items()
        for number, status in enumerate(found)
    ]


def summary_of(statuses: Mapping[str, Sequence[str]]) -> list[dict[str, Any]]:
    rows = []
    for control, found in statuses.items():
        code, severity, _ = CONTROLS.get(control, ("XXX-01", Severity.LOW, "settings"))
        counts = {column: list(found).count(status) for status, column in _COLUMNS.items()}
        total = {"population": len(found), "findings": len(found), "distinct_resources": len(found), "waived": 0}
        rows.append({"control_id": control, "code": code, "severity": severity.value, **total, **counts})
    return rows


def write_audit(root: Path, summary: Sequence[Mapping[str, Any]], findings: Sequence[Mapping[str, Any]]) -> Audit:
    """The tables of both parts, in folders as Spark leaves them."""
    audit = EvidenceRoot(path=root).audit("demo", SNAPSHOT_ID)
    audit.gate.mkdir(parents=True)
    audit.run_file.write_text(json.dumps({"started_at": FINISHED.isoformat()}))
    for part, folder in (("settings", audit.settings), ("lag", audit.lag)):
        for name, rows in (("summary", summary), ("findings", findings)):
            own = [dict(row) for row in rows if CONTROLS.get(str(row.get("control_id")), ("", "", "settings"))[2] == part]
            schema = pa.Table.from_pylist([dict(row) for row in rows]).schema if rows else pa.schema([("control_id", pa.string())])
            write_spark_folder(folder / f"{name}.parquet", pa.Table.from_pylist(own, schema=schema))
    return audit


def write_spark_folder(folder: Path, table: pa.Table) -> None:
    folder.mkdir(parents=True)
    pq.write_table(table, folder / "part-00000-6d1a.snappy.parquet")
    (folder / "_SUCCESS").touch()


def mark_evidence(out: Path, snapshot: Snapshot, *, exit_code: int = 0, verdict: str = "PASS") -> None:
    """What the findings gate reads of an earlier evidence gate, without running that one."""
    about = {"snapshot_id": snapshot.snapshot_id, "manifest_sha256": snapshot.manifest_sha256}
    said = {"gate": "evidence", "verdict": verdict, "exit_code": exit_code, "results": [], "snapshot": about}
    (out / "evidence.json").write_text(json.dumps(said))


class Case:
    """Tables of an audit about to be written; tests damage them first."""

    def __init__(self, statuses=HEALTHY):
        self.summary = summary_of(statuses)
        self.findings = findings_of(statuses)
        self.controls = CATALOGUE
        self.evidence = {}
        self.waivers = []
        self.old = None

    def waive(self, **changes):
        """Let the one failure of CON-01 be waived, by finding, summary and policy; ``changes`` damage the policy's waiver."""
        failing = next(row for row in self.findings if row["status"] == "fail")
        failing["waiver"] = "W-1"
        self.row(failing["control_id"])["waived"] = 1
        self.waivers = [waiver(**{"control": failing["code"], "resource": glob.escape(failing["resource"]), **changes})]
        return self

    def knowing(self, **old):
        """Let the gate block on new failures only."""
        previous = old.pop("previous", "20261119T231500Z-ab12cd34ab12cd34")
        self.old = OldFailures(**{"previous": previous, "baseline": previous, **old})
        return self

    def row(self, control):
        return next(row for row in self.summary if row["control_id"] == control)


def judge(tmp_path, case, *, after=None, fail_on=Severity.HIGH, min_coverage=0.9):
    snapshot = write_snapshot(tmp_path, healthy_rows())
    audit = write_audit(tmp_path, case.summary, case.findings)
    if case.evidence is not None:
        mark_evidence(audit.gate, snapshot, **case.evidence)
    if after:
        after(audit)
    return judge_findings(
        audit,
        snapshot,
        audit.gate,
        fail_on=fail_on,
        min_coverage=min_coverage,
        controls=case.controls,
        waivers=case.waivers,
        old=case.old,
    )


def waiver(**changes: Any) -> Waiver:
    fields = {
        "id": "W-1",
        "control": "CON-01",
        "resource": "*",
        "owner": "ada",
        "approver": "bob",
        "ticket": "OPS-1",
        "justification": "until the new consumers are deployed",
        "approved_on": "2026-11-01",
        "expires": "2027-01-31T00:00:00Z",
    }
    return Waiver.model_validate({**fields, **changes})


def lagging() -> Case:
    """Findings that are healthy but for one failure of CON-01."""
    return Case({**HEALTHY, "lag_within_sla": ["pass", "pass", "fail"]})


def statuses(result: GateResult) -> dict[str, Verdict]:
    return {row.rule_id: row.status for row in result.results}
