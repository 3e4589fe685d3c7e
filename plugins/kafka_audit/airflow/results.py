"""The steps that judge an audit and write its report; apart from the tasks, because they load pyarrow, which nothing may at DAG parse."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any

from expectations import gate as gates
from kafka_audit.airflow.step import audit_step, clock_of, tell_seal
from kafka_audit.audit.formats import not_written, shown_file
from kafka_audit.audit.gate_result import read_gate
from kafka_audit.audit.inputs import keep_rules, keep_used, rules_record
from kafka_audit.audit.request import AuditPlan
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.findings import Severity
from kafka_audit.index.write import write_report_and_index
from kafka_audit.policy import load_policy
from kafka_audit.report.changes import old_failures
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.layout import seal_audit
from kafka_audit.store.manifest import FileHashes
from kafka_audit.store.mirrors import where

log = logging.getLogger(__name__)


def judge(made: AuditPlan, gate: str) -> dict[str, Any]:
    """Run the ``evidence`` or the ``findings`` gate of an audit if it is due; what is recorded then, its reasons also in the log."""
    with audit_step(made, f"{gate}_gate") as due:
        found = made.evidence_root.snapshot(made.cluster, made.snapshot_id)
        if due and gate == "evidence":
            service = load_policy(made.policy_folder).managed_service
            hidden = service.datasets if service else ()
            gates.judge_evidence(found, made.audit.gate, now=clock_of(made), max_age_seconds=made.max_age_seconds, hidden=hidden)
        elif due:
            catalogue, policy = load_catalogue([shipped_controls(), *made.controls_folders]), load_policy(made.policy_folder)
            gates.judge_findings(
                made.audit,
                found,
                made.audit.gate,
                fail_on=Severity(made.fail_on),
                min_coverage=made.min_coverage,
                controls={control.id: control.severity for control in catalogue.controls},
                waivers=policy.waivers,
                old=old_failures(made.audit, found, catalogue, policy) if made.fail_on_new else None,
            )
    result = read_gate(made.audit.gate, gate, found)
    for reason in result.reasons:
        log.info("%s gate: %s", gate, reason)
    return {"verdict": result.verdict, "exit_code": result.exit_code, "reasons": list(result.reasons[:20])}


def write_report(made: AuditPlan) -> dict[str, Any]:
    """Write the report and the index of an audit that has a snapshot, and seal it: where the report is, and the seal."""
    with audit_step(made, "report") as due:
        if due:
            found, folders = made.evidence_root.snapshot(made.cluster, made.snapshot_id), [shipped_controls(), *made.controls_folders]
            catalogue, policy, file_hashes = load_catalogue(folders), load_policy(made.policy_folder), FileHashes()
            keep_used(made.audit, made.evidence_root, made.cluster, file_hashes)
            keep_rules(made.audit, policy, catalogue, folders)
            write_report_and_index(made.audit, found, catalogue, policy, generated_at=clock_of(made), formats=made.report_formats)
            missing = not_written(read_json(made.audit.report / "report.json").get("not_written"))
            evidence = {"snapshot_id": found.snapshot_id, "manifest_sha256": found.manifest_sha256}
            about = {**rules_record(policy, catalogue), "snapshot": evidence, "not_written": [asdict(one) for one in missing]}
            seal_audit(made.evidence_root, made.cluster, made.audit_id, about, file_hashes)
    return {"report": where(shown_file(made.audit.report)), **tell_seal(made, log)}


STEPS: Mapping[str, Callable[[AuditPlan], dict[str, Any]]] = {
    "evidence_gate": partial(judge, gate="evidence"),
    "findings_gate": partial(judge, gate="findings"),
    "report": write_report,
}
"""By the id of the task that runs it."""
