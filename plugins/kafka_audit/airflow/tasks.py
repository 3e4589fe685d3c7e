"""The Python tasks of the audit DAG: each checks the plan, calls one step of the platform and returns a few small facts."""

import logging
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from kafka_audit.airflow.retries import final_errors
from kafka_audit.airflow.step import audit_step, checked_plan, clock_of, own_plan, tell_seal
from kafka_audit.audit.formats import not_written, shown_file
from kafka_audit.audit.inputs import keep_rules, keep_used, policy_files, rules_record
from kafka_audit.audit.policy_fit import check_policy
from kafka_audit.audit.request import AuditPlan, AuditRequest
from kafka_audit.collect.scope import Scope
from kafka_audit.errors import IntegrityError
from kafka_audit.policy import load_policy
from kafka_audit.store.durable_files import read_json, write_json
from kafka_audit.store.layout import seal_audit, unseal_audit
from kafka_audit.store.manifest import FileHashes
from kafka_audit.store.signing_key import signing_key
from kafka_audit.store.sweep import sweep

if TYPE_CHECKING:
    from kafka_audit.catalogue.load import Catalogue

log = logging.getLogger(__name__)


@task(multiple_outputs=False)
def plan() -> dict[str, Any]:
    """Refuse what cannot be run, give the run its ids, write ``run.json``; the plan is the XCom of all later tasks."""
    with final_errors():
        made = own_plan(get_current_context())
        # Read here only to refuse what cannot be used before the cluster is touched; each step reads them again.
        Scope.from_text(topics=made.topics, groups=made.groups)
        policy = load_policy(made.policy_folder)
        check_policy(policy, _catalogue(made)[0])
        policy_files(policy)
        signing_key()
    audit = made.audit
    sweep(made.evidence_root, made.cluster, log.warning)
    with final_errors():
        known = read_json(audit.run_file) if audit.run_file.is_file() else {}
        if known and (known.get("dag_id"), known.get("run_id")) != (made.dag_id, made.run_id):
            whose = f"run {known.get('run_id')!r} of {known.get('dag_id')!r}"
            raise IntegrityError(f"{audit.path} belongs to {whose}, not to this run, and was left as it is: start a new run")
    run = {
        **made.model_dump(include={"audit_id", "cluster", "snapshot_id", "dag_id", "run_id"}),
        "params": made.request(),
        "started_at": known.get("started_at") or _now().isoformat(),
        **({"judged_at": known["judged_at"]} if "judged_at" in known else {}),
    }
    if run != known:
        with final_errors():
            if unseal_audit(audit):
                write_json(audit.run_file, run)
    log.info("audit %s of cluster %s below %s", made.audit_id, made.cluster, made.root)
    return made.model_dump(mode="json")


@task(multiple_outputs=False)
def evidence_gate(plan: dict[str, Any]) -> dict[str, Any]:
    """Judge whether the evidence is fit to be judged; records the answer and never fails the run."""
    return _judge(checked_plan(plan), "evidence")


@task(multiple_outputs=False)
def findings_gate(plan: dict[str, Any]) -> dict[str, Any]:
    """Judge the findings against the policy; records the answer and never fails the run."""
    return _judge(checked_plan(plan), "findings")


def _judge(made: AuditPlan, gate: str) -> dict[str, Any]:
    from kafka_audit.airflow.gates import judge  # noqa: PLC0415 - pyarrow: not at DAG parse

    result = judge(made, gate)
    for reason in result.reasons:
        log.info("%s gate: %s", gate, reason)
    return {"verdict": result.verdict, "exit_code": result.exit_code, "reasons": list(result.reasons[:20])}


@task(trigger_rule="all_done", multiple_outputs=False)
def report(plan: dict[str, Any] | None) -> dict[str, Any]:
    """Write the report of whatever was assessed, then seal the audit. Without a snapshot there is nothing to report on.

    The log and the XCom get the audit's number and the sha256 of its manifest: witnesses outside of the folder. A format that could not
    be written costs only itself: report.json and the manifest name it with the reason, and so does the task gate.
    """
    from kafka_audit.index.write import write_report_and_index  # noqa: PLC0415 - pyarrow: not at DAG parse

    made = checked_plan(plan) if plan else None
    found = made.snapshot if made else None
    if made is None or found is None:
        raise AirflowSkipException("there is no snapshot, so there is nothing to report on; the gate says why")
    with audit_step(made, "report") as due:
        if due:
            (catalogue, folders), policy, file_hashes = _catalogue(made), load_policy(made.policy_folder), FileHashes()
            keep_used(made.audit, made.evidence_root, made.cluster, file_hashes)
            keep_rules(made.audit, policy, catalogue, folders)
            write_report_and_index(made.audit, found, catalogue, policy, generated_at=clock_of(made), formats=made.report_formats)
            missing = not_written(read_json(made.audit.report / "report.json").get("not_written"))
            evidence = {"snapshot_id": found.snapshot_id, "manifest_sha256": found.manifest_sha256}
            about = {**rules_record(policy, catalogue), "snapshot": evidence, "not_written": [asdict(one) for one in missing]}
            seal_audit(made.evidence_root, made.cluster, made.audit_id, about, file_hashes)
    return {"report": str(shown_file(made.audit.report)), **tell_seal(made, log)}


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _catalogue(request: AuditRequest) -> "tuple[Catalogue, list[Path]]":
    """The controls that a run judges by, and the folders that they came from."""
    from kafka_audit.catalogue.load import load_catalogue, shipped_controls  # noqa: PLC0415 - sqlglot: not at DAG parse

    folders = [shipped_controls(), *request.controls_folders]
    return load_catalogue(folders), folders
