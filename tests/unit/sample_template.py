"""A small sealed audit that sample histories can be made from: the shipped controls, with a few resources each."""

from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
from lag_rows import group_sla, series_table, sla_table
from report_audit import FINDINGS, LAG_PARTITIONS, SUMMARY, finding, group_partition, spark_folder, summary

from kafka_audit.audit.inputs import keep_rules, rules_record
from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.collect.datasets import DATASETS
from kafka_audit.policy import load_policy
from kafka_audit.sample.template import Template, read_template
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, new_id, seal_audit

TAKEN = datetime(2026, 11, 25, 23, 41, 30, tzinfo=timezone.utc)
CLUSTER = "demo-faulty"
GROUPS = {
    "warehouse": ("inventory", 2),
    "order-service": ("orders", 3),
    "reporting": ("customers", 1),
    "billing": ("invoices", 2),
    "email-sender": ("email-outbox", 1),
}
FAILING = {
    "TOP-01": ("legacy-import", "clickstream"),
    "TOP-02": ("clickstream", "inventory"),
    "TOP-04": ("sessions",),
    "TOP-12": ("ledger",),
    "BRK-05": ("cluster",),
    "BRK-08": ("2",),
    "SEC-01": ("cluster",),
    "TXN-01": ("refund-requests-0",),
    "PRD-02": ("producer web-tracker",),
    "PRD-03": ("producer web-tracker",),
    "TOP-17": ("customers",),
}
SUMMED = pa.schema([*SUMMARY, ("waived", pa.int64()), ("loosened", pa.int64())])


def sample_template(root: EvidenceRoot) -> Template:
    """Write and seal the audit below ``root``, and read it as a template."""
    snapshot_id, audit_id = new_id(TAKEN, "template snapshot"), new_id(TAKEN, "template audit")
    catalogue, policy = load_catalogue([shipped_controls()]), load_policy()
    _snapshot(root, snapshot_id)
    audit = root.audit(CLUSTER, audit_id)
    about = {"audit_id": audit_id, "cluster": CLUSTER, "snapshot_id": snapshot_id, "started_at": TAKEN.isoformat()}
    write_json(audit.run_file, {**about, "params": {}})
    for part in ("settings", "lag"):
        controls = [one for one in catalogue.controls if SUBJECTS[one.subject].part == part]
        of_all = {"rule_set_sha256": catalogue.rule_set_sha256, "audit_id": audit_id, "snapshot_id": snapshot_id, "cluster": CLUSTER}
        rows = [{**row, **of_all} for one in controls for row in _findings(one)]
        spark_folder(audit.path / part / "findings.parquet", rows, FINDINGS)
        spark_folder(
            audit.path / part / "summary.parquet", [{**summary(one, rows), "waived": 0, "loosened": 0} for one in controls], SUMMED
        )
        write_json(audit.path / part / "rules.json", rules_record(policy, catalogue))
    spark_folder(audit.lag / "group_partitions.parquet", list(_partitions()), LAG_PARTITIONS)
    slas = sla_table([group_sla(one) for one in GROUPS])
    for name, table in {"group_slas": slas, "lag_series": series_table([])}.items():
        spark_folder(audit.lag / f"{name}.parquet", table.to_pylist(), table.schema)
    keep_rules(audit, policy, catalogue, [shipped_controls()])
    seal_audit(root, CLUSTER, audit_id, {"snapshot": {"snapshot_id": snapshot_id}})
    return read_template(root, CLUSTER, audit_id)


def _findings(control: Control) -> Iterator[dict[str, object]]:
    """The failures that FAILING lists, a pass, and what every group needs."""
    for resource in FAILING.get(control.code, ()):
        yield finding(control, resource, topic=resource if control.subject == "topic" else None)
    if control.subject == "group_partition":
        yield from (finding(control, row["resource"], "pass", group_id=row["group_id"]) for row in _partitions())
    elif control.subject == "group_sla":
        yield from (finding(control, one, "pass", group_id=one) for one in GROUPS)
    elif control.code not in FAILING:
        yield finding(control, "cluster", "not_assessed" if control.evidence.value == "manual" else "pass", reason="open", topic=None)


def _partitions() -> Iterator[dict[str, Any]]:
    for group_id, (topic, count) in GROUPS.items():
        for partition in range(count):
            yield group_partition(group_id, topic, partition, status="OK")


def _snapshot(root: EvidenceRoot, snapshot_id: str) -> None:
    brokers = [1, 2, 3]
    topics = dict(GROUPS.values())
    places = [{"topic": topic, "partition": number} for topic, count in topics.items() for number in range(count)]
    rows: dict[str, list[dict[str, Any]]] = {
        "cluster": [{"cluster_id": "real", "controller_id": 1, "read_at": TAKEN}],
        "brokers": [{"broker_id": one, "host": f"kafka-{one}", "port": 9092, "alive": True, "answered": True} for one in brokers],
        "topics": [{"topic": topic, "partition_count": count, "is_internal": False} for topic, count in topics.items()],
        "partitions": [{**one, "leader": 1, "replicas": [1, 2], "isr": [1], "offline_replicas": [2], "read_at": TAKEN} for one in places],
        "offsets": [
            {**one, "log_start": 0, "log_end": 100, "last_stable": 100, "max_timestamp_ms": 1_795_650_081_692, "read_at": TAKEN}
            for one in places
        ],
        "groups": [{"group_id": one, "group_type": "classic", "state": "Stable"} for one in GROUPS],
        "committed_offsets": [
            {"group_id": row["group_id"], "topic": row["topic"], "partition": row["partition"], "committed": 100, "read_at": TAKEN}
            for row in _partitions()
        ],
        "errors": [
            {"dataset": "acls", "api": "DescribeAcls", "error": "SECURITY_DISABLED", "message": "no authorizer"},
            {"dataset": "offsets", "api": "ListOffsets", "topic": "orders", "partition": 1, "error": "NOT_LEADER", "message": "moved"},
        ],
    }
    with root.snapshot_writer(CLUSTER, snapshot_id) as writer:
        for name, dataset in DATASETS.items():
            writer.write(name, pa.Table.from_pylist(rows.get(name, []), schema=dataset.schema))
        times = {"started_at": TAKEN.isoformat(), "finished_at": TAKEN.isoformat()}
        scope = {"topics": ["*"], "groups": ["*"]}
        writer.seal(
            {"cluster_id": "real", "scope": scope, "versions": {"kafka_audit": "0.1.0"}, "errors": {"acls": 1, "offsets": 1}, **times}
        )
