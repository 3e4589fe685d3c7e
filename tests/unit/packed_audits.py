"""Sealed audits with everything that a report and an evidence package are made of, for their tests."""

import shutil
from pathlib import Path

from report_audit import AUDIT_ID, WHEN, FakeAudit, finding

from kafka_audit.audit.inputs import keep_rules, keep_used, rules_record
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.policy import load_policy
from kafka_audit.report import write_report
from kafka_audit.store.durable_files import read_json, write_json
from kafka_audit.store.layout import EvidenceRoot, seal_audit

CLUSTER = "orders-prod"
EARLIER_ID = "20261119T231600Z-0badcafe0badcafe"
EARLIER_SNAPSHOT = "20261119T231500Z-0badcafe0badcafe"
LATER_ID = "20261121T231600Z-0badcafe0badcafe"
HOSTILE_FILE = r"C:\..\evil $(id) \u202e%.properties"
"""The name of a client's settings file, which leads out of its folder on Windows."""

_RULES = ("topic_replication_factor_sufficient.yaml", "lag_within_sla.yaml")
_CLIENT = "name: a, kind: producer, implementation: java, owner: a, declared_on: 2026-11-01, source: a, topics: [a]"


def bare_audit(root: Path, audit_id: str) -> Path:
    """Seal an audit that holds next to nothing, as a neighbour in the chain."""
    evidence = EvidenceRoot(path=root)
    audit = evidence.audit(CLUSTER, audit_id)
    write_json(audit.run_file, {"audit_id": audit_id})
    seal_audit(evidence, CLUSTER, audit_id, {"snapshot": {"snapshot_id": "x"}})
    return audit.path


def sealed_audit(root: Path, *, hostile: bool = False, seal: bool = True, compared: bool = False) -> Path:
    """The folder of a sealed audit below ``root``, as its task ``report`` leaves it.

    ``hostile``: its policy names HOSTILE_FILE. ``compared``: its snapshot was compared with the snapshot EARLIER_SNAPSHOT.
    """
    controls, policy_folder = root.parent / f"{root.name}-controls", root.parent / f"{root.name}-policy"
    controls.mkdir(parents=True)
    for name in _RULES:
        shutil.copy(shipped_controls() / name, controls)
    shutil.copytree(load_policy().folder, policy_folder)
    if hostile:
        (policy_folder / HOSTILE_FILE).write_text("acks=all\n")
        (policy_folder / "clients.yaml").write_text(f"version: 1\nclients: [{{{_CLIENT}, settings_file: '{HOSTILE_FILE}'}}]\n")
    catalogue, policy = load_catalogue([controls]), load_policy(policy_folder)
    fake = FakeAudit(root, catalogue.controls)
    fake.catalogue, fake.policy = catalogue, policy
    if compared:
        judged, earlier = fake.snapshot, fake.take_snapshot({}, EARLIER_SNAPSHOT)
        fake.history = [{"snapshot_id": EARLIER_SNAPSHOT, "manifest_sha256": earlier.manifest_sha256}]
        fake.snapshot = judged
    of_topics = next(one for one in catalogue.controls if one.subject == "topic")
    fake.settings([finding(of_topics, "orders"), finding(of_topics, "clicks", "pass")])
    fake.lag([])
    fake.gates()
    evidence = EvidenceRoot(path=root)
    keep_used(fake.audit, evidence, CLUSTER)
    keep_rules(fake.audit, policy, catalogue, [controls])
    write_report(fake.audit, fake.snapshot, catalogue, policy, generated_at=WHEN)
    page = fake.audit.report / "report.html"
    snapshot = {"snapshot_id": fake.snapshot.snapshot_id, "manifest_sha256": fake.snapshot.manifest_sha256}
    about = {"snapshot": snapshot, **rules_record(policy, catalogue)}
    about["not_written"] = read_json(page.with_name("report.json"))["not_written"]
    if seal:
        seal_audit(evidence, CLUSTER, AUDIT_ID, about)
    path: Path = fake.audit.path
    return path
