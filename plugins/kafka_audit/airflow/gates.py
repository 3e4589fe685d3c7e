"""Runs the two gates of an audit; apart from the tasks, because it loads pyarrow, which nothing may when a DAG file is parsed."""

from expectations import gate as gates
from kafka_audit.airflow.step import audit_step, clock_of
from kafka_audit.audit.gate_result import GateResult, read_gate
from kafka_audit.audit.request import AuditPlan
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.findings import Severity
from kafka_audit.policy import load_policy
from kafka_audit.report.changes import old_failures


def judge(made: AuditPlan, gate: str) -> GateResult:
    """Run the ``evidence`` or the ``findings`` gate of an audit if it is due; the result that is recorded then."""
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
    return read_gate(made.audit.gate, gate, found)
