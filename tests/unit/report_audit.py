"""Builds small audits on disk, in the files that the jobs and gates write, for the tests of the report."""

import json
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
from lag_rows import series_table, sla_table

from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import Catalogue
from kafka_audit.catalogue.remediation import Remediation
from kafka_audit.catalogue.rule import rule_of
from kafka_audit.findings import EvidenceClass, Severity
from kafka_audit.policy import load_policy
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot

WHEN = datetime(2026, 11, 20, 23, 20, tzinfo=timezone.utc)
SNAPSHOT_ID = "20261120T231500Z-ab12cd34ab12cd34"
AUDIT_ID = "20261120T231600Z-0badcafe0badcafe"

HOSTILE_GROUPS = (
    "=cmd|' /C calc'!A0",
    "<script>document.title='owned'</script><img src=http://198.51.100.9/x onerror=\"document.title='owned'\">",
    "pay\u202egnp.exe\u2066\u200b\u034f\U000e0100",
    "two\nlines\tand\r\x1b[31mred\x00\x85",
    "'; rm -rf ~; echo '$(id)`id`{topic}",
    "\u05e7\u05d1\u05d5\u05e6\u05d4 de facturaci\u00f3n",
    "javascript:alert(1)//" + "x" * 900,
)

_STATUSES = {"pass": "passed", "fail": "failed", "error": "errored", "not_assessed": "not_assessed", "not_applicable": "not_applicable"}

FINDINGS = pa.schema(
    [
        *(
            (name, pa.string())
            for name in ("audit_id", "snapshot_id", "cluster", "control_id", "code", "title", "subject", "resource", "topic")
        ),
        ("partition", pa.int32()),
        ("broker_id", pa.int32()),
        *(
            (name, pa.string())
            for name in ("group_id", "severity", "evidence_class", "status", "reason", "observed", "expected", "evidence", "tier")
        ),
        *((name, pa.string()) for name in ("catalogue_severity", "loosened", "waiver", "remediation", "rule_sha256", "rule_set_sha256")),
    ]
)
SUMMARY = pa.schema(
    [
        *((name, pa.string()) for name in ("control_id", "code", "title", "subject", "severity", "evidence_class", "rule_sha256")),
        *((name, pa.int64()) for name in ("population", "findings", "distinct_resources", *_STATUSES.values())),
    ]
)
GROUP_PARTITIONS = pa.schema(
    [
        *((name, pa.string()) for name in ("resource", "group_id", "topic")),
        ("partition", pa.int32()),
        *((name, pa.string()) for name in ("group_type", "state")),
        *((name, pa.bool_()) for name in ("topic_exists", "has_commit", "compacted")),
        *((name, pa.int64()) for name in ("committed", "log_start", "log_end", "lag", "lost", "beyond_end")),
    ]
)
_COMMITS = pa.struct(
    [
        *(("as_of", pa.string()), ("hours", pa.float64()), ("last_rewind_at", pa.string())),
        *((name, pa.int64()) for name in ("commits", "unchanged", "rewinds", "longest_gap_ms", "jumps")),
    ]
)
LAG_PARTITIONS = pa.schema(
    [
        *GROUP_PARTITIONS,
        *((name, pa.bool_()) for name in ("only_markers_unread", "lag_ms_is_bound", "behind_sla", "recreated")),
        *((name, pa.string()) for name in ("lag_ms_method", "time_to_loss_by", "status", "status_reason", "burrow")),
        *(
            (name, pa.int64())
            for name in ("margin", "truncated", "lag_ms", "lag_ms_least", "lag_ms_most", "time_to_loss_ms", "catch_up_ms")
        ),
        *((name, pa.int64()) for name in ("expires_in_ms", "status_window_ms", "detected_within_ms", "rewinds")),
        *((name, pa.float64()) for name in ("produced_per_s", "consumed_per_s", "expired_per_s")),
        *(("behaviour", _COMMITS), ("behaviour_reason", pa.string())),
    ]
)
_FEATURE = pa.list_(pa.struct([("name", pa.string()), ("finalized_min", pa.int16()), ("finalized_max", pa.int16())]))
_DATASETS = {
    "cluster": pa.schema([("cluster_id", pa.string()), ("controller_id", pa.int32()), ("features", _FEATURE)]),
    "brokers": pa.schema(
        [
            *(("broker_id", pa.int32()), ("host", pa.string()), ("port", pa.int32()), ("rack", pa.string())),
            *((name, pa.bool_()) for name in ("alive", "answered", "is_controller")),
        ]
    ),
    "groups": pa.schema([("group_id", pa.string()), ("group_type", pa.string()), ("state", pa.string())]),
    "errors": pa.schema(
        [
            *(("dataset", pa.string()), ("api", pa.string()), ("broker_id", pa.int32()), ("topic", pa.string()), ("partition", pa.int32())),
            *((name, pa.string()) for name in ("group_id", "error", "message")),
        ]
    ),
    "capabilities": pa.schema(
        [
            *(("api", pa.string()), ("api_key", pa.int32()), ("min_version", pa.int32()), ("max_version", pa.int32())),
            *(("supported", pa.bool_()), ("allowed", pa.bool_()), ("detail", pa.string())),
        ]
    ),
}
_BROKERS = [
    {
        "broker_id": one,
        "host": f"kafka-{one}.example.net",
        "port": 9092,
        "rack": f"zone-{'abc'[one - 1]}",
        "alive": True,
        "answered": one != 3,
    }
    for one in (1, 2, 3)
]
_SNAPSHOT_ROWS = {
    "cluster": [{"cluster_id": "mk5vR0-9Q1OaEwX7dA", "controller_id": 1, "features": [{"name": "metadata.version", "finalized_max": 29}]}],
    "brokers": [{**broker, "is_controller": broker["broker_id"] == 1} for broker in _BROKERS],
    "capabilities": [
        {"api": "DescribeConfigs", "api_key": 32, "min_version": 1, "max_version": 4, "supported": True, "allowed": True, "detail": ""},
        {
            **{"api": "DescribeProducers", "api_key": 61, "min_version": 0, "max_version": 0, "supported": True, "allowed": False},
            "detail": "TOPIC_AUTHORIZATION_FAILED: READ on the topic is missing",
        },
        {"api": "DescribeTopicPartitions", "api_key": 75, "supported": False, "detail": "not offered by this cluster"},
    ],
}


def control(control_id: str, code: str, **changes: object) -> Control:
    """A control with all its texts; ``changes`` replace fields."""
    fields: dict[str, object] = {
        "id": control_id,
        "code": code,
        "title": control_id.replace("_", " ").capitalize(),
        "subject": "topic",
        "severity": Severity.CRITICAL,
        "evidence": EvidenceClass.OBSERVED,
        "needs": ("partitions",),
        "applies_when": None,
        "pass_when": "replication_factor_min >= policy.replication_factor",
        "observed": "replication_factor_min",
        "expected": "at least 3",
        "rationale": "A replica that does not exist cannot take over.",
        "failure_scenario": "One disk fails, and the partition with all its records is gone.",
        "remediation": Remediation(
            text="Add replicas.", commands=('kafka-topics.sh --bootstrap-server "$BOOTSTRAP" --describe --topic {topic}',)
        ),
        "remediation_impact": "Copying replicas costs network bandwidth.",
        "references": ("KIP-966 - https://cwiki.apache.org/confluence/display/KAFKA/KIP-966", "javascript:alert(1)", "Kafka, Operations"),
        "false_positives": ("A topic of throw-away test data.",),
        "examples": (),
    }
    return Control.model_construct(**{**fields, **changes})


def finding(of: Control, resource: str, status: str = "fail", **changes: object) -> dict[str, object]:
    """One row of findings.parquet."""
    row: dict[str, object] = {
        **{
            "audit_id": AUDIT_ID,
            "snapshot_id": SNAPSHOT_ID,
            "cluster": "orders-prod",
            "control_id": of.id,
            "code": of.code,
            "title": of.title,
        },
        **{
            "subject": of.subject,
            "resource": resource,
            "severity": of.severity.value,
            "catalogue_severity": of.severity.value,
            "evidence_class": of.evidence.value,
            "rule_sha256": rule_of(of).sha256,
            "status": status,
        },
        "tier": "no_loss",
        "topic": resource if of.subject == "topic" else None,
        "group_id": resource if of.subject == "group" else None,
        **{"observed": "1", "expected": "at least 3", "evidence": json.dumps({"replicas": [1], "partition": 0})},
    }
    return {**row, **changes}


def summary(of: Control, rows: list[dict[str, object]], **changes: int) -> dict[str, object]:
    """The summary row that fits the findings of one control."""
    mine = [row for row in rows if row["control_id"] == of.id]
    counts = {name: sum(row["status"] == status for row in mine) for status, name in _STATUSES.items()}
    words = {"control_id": of.id, "code": of.code, "title": of.title, "subject": of.subject}
    classes = {"severity": of.severity.value, "evidence_class": of.evidence.value, "rule_sha256": rule_of(of).sha256}
    return {**words, **classes, "population": len(mine), "findings": len(mine), "distinct_resources": len(mine), **counts, **changes}


def group_partition(group_id: str, topic: str, partition: int, **changes: object) -> dict[str, object]:
    row: dict[str, object] = {
        **{"resource": f"{group_id}:{topic}-{partition}", "group_id": group_id, "topic": topic, "partition": partition},
        **{"group_type": "classic", "state": "Stable", "topic_exists": True, "has_commit": True, "compacted": False},
        **{"committed": 100, "log_start": 0, "log_end": 100, "lag": 0, "lost": 0, "beyond_end": 0},
    }
    return {**row, **changes}


def gate(name: str, verdict: str, exit_code: int, **changes: object) -> dict[str, object]:
    """The content of one gate's JSON file."""
    result = {
        "rule_id": "GATE-01",
        "severity": "critical",
        "status": verdict,
        "description": "Something is asked.",
        "expected": "3",
        "observed": "3",
        "detail": "",
    }
    value: dict[str, object] = {
        **{
            "schema_version": 1,
            "gate": name,
            "verdict": verdict,
            "exit_code": exit_code,
            "reasons": [] if not exit_code else [f"{name}: no"],
        },
        "coverage": {"assessed": 3, "applicable": 4, "ratio": 0.75},
        "suite": {"name": f"{name}_gate", "sha256": "0f" * 32, "expectations": 1},
        "results": [result],
    }
    return {**value, **changes}


def spark_folder(path: Path, rows: list[dict[str, object]], schema: pa.Schema, parts: int = 1) -> None:
    """Rows as Spark leaves them: a folder of part files beside a _SUCCESS marker."""
    path.mkdir(parents=True)
    (path / "_SUCCESS").touch()
    size = max(1, -(-len(rows) // parts))
    for number in range(parts):
        part = rows[number * size : (number + 1) * size]
        pq.write_table(pa.Table.from_pylist(part, schema=schema), path / f"part-{number:05}-x.snappy.parquet")


class FakeAudit:
    """A snapshot and an audit below ``root``; each step is written by its own call, so a test can leave one out."""

    def __init__(self, root: Path, controls: tuple[Control, ...], cluster: str = "orders-prod") -> None:
        self.catalogue = Catalogue(controls=controls, sha256="ca" * 32)
        self.policy = replace(load_policy(), frameworks=())
        self.history: list[dict[str, str]] = []
        self.left_out: list[str] = []
        evidence = EvidenceRoot(path=root)
        self.audit: Audit = evidence.audit(cluster, AUDIT_ID)
        self._evidence, self._cluster = evidence, cluster
        run = {"audit_id": AUDIT_ID, "cluster": cluster, "snapshot_id": SNAPSHOT_ID, "started_at": "2026-11-20T23:16:00+00:00"}
        write_json(self.audit.run_file, {**run, "params": {"fail_on": "high", "min_coverage": 0.9, "password": "s3cret"}})
        self.snapshot: Snapshot = self.take_snapshot({})

    def take_snapshot(self, rows: dict[str, list[dict[str, object]]], snapshot_id: str = SNAPSHOT_ID) -> Snapshot:
        """Write and seal a snapshot whose datasets hold ``rows`` beside the usual ones."""
        with self._evidence.snapshot_writer(self._cluster, snapshot_id) as writer:
            for name, schema in _DATASETS.items():
                writer.write(name, pa.Table.from_pylist(rows.get(name, _SNAPSHOT_ROWS.get(name, [])), schema=schema))
            writer.seal(
                {
                    "cluster_id": "mk5vR0-9Q1OaEwX7dA",
                    "started_at": "2026-11-20T23:15:00+00:00",
                    "finished_at": "2026-11-20T23:15:04+00:00",
                    "scope": {"topics": ["*"], "groups": ["*"]},
                    "versions": {"kafka_audit": "0.1.0", "python": "3.11.9"},
                }
            )
        self.snapshot = self._evidence.snapshot(self._cluster, snapshot_id)
        return self.snapshot

    def settings(self, rows: list[dict[str, object]], summaries: list[dict[str, object]] | None = None, parts: int = 1) -> None:
        controls = [one for one in self.catalogue.controls if one.subject not in ("group", "group_partition", "declared_group")]
        self._step("settings", rows, summaries if summaries is not None else [summary(one, rows) for one in controls], parts)

    def lag(
        self,
        rows: list[dict[str, object]],
        partitions: list[dict[str, object]] | None = None,
        schema: pa.Schema = LAG_PARTITIONS,
        **further: pa.Table,
    ) -> None:
        """Write the files of the lag part; ``further`` are group_slas and lag_series, which are empty when they are not given."""
        controls = [one for one in self.catalogue.controls if one.subject in ("group", "group_partition", "declared_group", "group_sla")]
        self._step("lag", rows, [summary(one, rows) for one in controls], 1)
        spark_folder(self.audit.lag / "group_partitions.parquet", partitions or [], schema)
        for name, table in {"group_slas": sla_table([]), "lag_series": series_table([]), **further}.items():
            spark_folder(self.audit.lag / f"{name}.parquet", table.to_pylist(), table.schema)

    def _step(self, name: str, rows: list[dict[str, object]], summaries: list[dict[str, object]], parts: int) -> None:
        of_all = {"rule_set_sha256": self.catalogue.rule_set_sha256}
        spark_folder(self.audit.path / name / "findings.parquet", [{**of_all, **row} for row in rows], FINDINGS, parts)
        spark_folder(self.audit.path / name / "summary.parquet", summaries, SUMMARY)
        record = {"used": self.history, "left_out": self.left_out, "first_audit": False}
        write_json(self.audit.path / name / "history.json", record)

    def gates(self, evidence: tuple[str, int] = ("PASS", 0), findings: tuple[str, int] = ("FAIL", 3), **changes: object) -> None:
        write_json(self.audit.gate / "evidence.json", gate("evidence", *evidence))
        write_json(self.audit.gate / "findings.json", gate("findings", *findings, **changes))

    @property
    def inputs(self) -> SimpleNamespace:
        """The arguments of write_report and read_report, in order."""
        return SimpleNamespace(args=(self.audit, self.snapshot, self.catalogue, self.policy), kwargs={"generated_at": WHEN})
