"""The Python tasks of the roll-up DAG: which days are rolled up, and what is deleted after that."""

import logging
from datetime import date, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk import task
from airflow.sdk.exceptions import AirflowFailException

from kafka_audit.airflow.home import audit_root
from kafka_audit.airflow.request import PolicyRequest, check_request
from kafka_audit.airflow.retries import final_errors

if TYPE_CHECKING:
    from airflow.sdk.types import DagRunProtocol

log = logging.getLogger(__name__)


@task(multiple_outputs=True)
def plan_roll_up(params: dict[str, Any] | None = None, dag_run: "DagRunProtocol | None" = None) -> dict[str, Any]:
    """Refuse what cannot be run; else {request, today, arguments}. ``today`` is the run's own day (UTC), and is not rolled up."""
    if params is None or dag_run is None:
        raise AirflowFailException("this task runs only as part of a DAG run")
    from kafka_audit.policy import load_policy  # noqa: PLC0415  (heavy)

    with final_errors():
        request = check_request(PolicyRequest, dag_run.dag_id, params, dag_run.conf)
        load_policy(request.policy_folder)
    today = dag_run.run_after.astimezone(timezone.utc).date()
    until = today - timedelta(days=1)
    arguments = ["--root", str(audit_root()), "--cluster", request.cluster, "--until", until.isoformat()]
    if request.policy_dir:
        arguments += ["--policy", request.policy_dir]
    return {"request": request.model_dump(mode="json"), "today": today.isoformat(), "arguments": arguments}


@task(multiple_outputs=False)
def delete_expired(request: dict[str, Any], today: str) -> dict[str, int]:
    """Delete what the policy keeps no longer: snapshots of rolled-up days, old days, old batches of commits; the log names each."""
    from kafka_audit import retention  # noqa: PLC0415  (heavy)
    from kafka_audit.evidence import EvidenceRoot  # noqa: PLC0415  (pyarrow: not at DAG parse)
    from kafka_audit.policy import load_policy  # noqa: PLC0415  (heavy)

    asked = PolicyRequest(**request)
    kept: list[str] = []
    with final_errors():
        history = load_policy(asked.policy_folder).history
        root = EvidenceRoot(path=audit_root())
        deleted = retention.delete_expired(root, asked.cluster, history, date.fromisoformat(today), say=kept.append)
    log.info("deleted: %s", ", ".join(deleted) or "nothing had expired")
    for reason in kept:
        log.warning("%s", reason)
    return {"deleted": len(deleted), "kept": len(kept)}
