"""The Python tasks of the audit DAG: each checks the plan, calls one step of the platform and returns a few small facts."""

import logging
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context, task
from airflow.sdk.exceptions import AirflowSkipException

from kafka_audit.airflow.retries import final_errors
from kafka_audit.airflow.step import checked_plan, own_plan
from kafka_audit.audit.inputs import policy_files
from kafka_audit.audit.policy_fit import check_policy
from kafka_audit.audit.request import AuditPlan, AuditRequest
from kafka_audit.collect.scope import Scope
from kafka_audit.errors import IntegrityError
from kafka_audit.policy import load_policy
from kafka_audit.shipped import provide
from kafka_audit.store.durable_files import read_json, write_json
from kafka_audit.store.layout import unseal_audit
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
        check_policy(policy, _catalogue(made))
        policy_files(policy)
        signing_key()
        audit = made.evidence_root.bring_audit(made.cluster, made.audit_id)
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
                if remote := made.evidence_root.remote:
                    remote.send_audit(audit.path)
    log.info("audit %s of cluster %s below %s", made.audit_id, made.cluster, made.root)
    return made.model_dump(mode="json")


@task(multiple_outputs=False)
def evidence_gate(plan: dict[str, Any]) -> dict[str, Any]:
    """Judge whether the evidence is fit to be judged; records the answer and never fails the run."""
    return _run("evidence_gate", checked_plan(plan))


@task(multiple_outputs=False)
def findings_gate(plan: dict[str, Any]) -> dict[str, Any]:
    """Judge the findings against the policy; records the answer and never fails the run."""
    return _run("findings_gate", checked_plan(plan))


@task(trigger_rule="all_done", multiple_outputs=False)
def report(plan: dict[str, Any] | None) -> dict[str, Any]:
    """Write the report of whatever was assessed, then seal the audit. Without a snapshot there is nothing to report on.

    The log and the XCom get the audit's number and the sha256 of its manifest: witnesses outside of the folder. A format that could not
    be written costs only itself: report.json and the manifest name it with the reason, and so does the task gate.
    """
    made = checked_plan(plan) if plan else None
    if made is None or made.snapshot is None:
        raise AirflowSkipException("there is no snapshot, so there is nothing to report on; the gate says why")
    return _run("report", made)


def _run(step: str, made: AuditPlan) -> dict[str, Any]:
    provide("expectations")
    from kafka_audit.airflow.results import STEPS  # noqa: PLC0415 - pyarrow: not at DAG parse

    return STEPS[step](made)


def _now() -> datetime:
    return datetime.now(timezone.utc)


def _catalogue(request: AuditRequest) -> "Catalogue":
    from kafka_audit.catalogue.load import load_catalogue, shipped_controls  # noqa: PLC0415 - sqlglot: not at DAG parse

    return load_catalogue([shipped_controls(), *request.controls_folders])
