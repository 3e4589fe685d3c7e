"""The tasks of the roll-up DAG: choose the days, run the Spark job that rolls them up, then delete expired history."""

import logging
from datetime import date, timedelta, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context, task

from kafka_audit.airflow.retries import final_errors
from kafka_audit.airflow.spark_job import SparkJob
from kafka_audit.airflow.step import refuse_another_plan
from kafka_audit.audit.installation import POLICY_VARIABLE, audit_root
from kafka_audit.audit.request import RollUpRequest, check_request
from kafka_audit.policy import load_policy
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.mirrors import root_name

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

    from kafka_audit.store.retention import Decision

log = logging.getLogger(__name__)


@task(multiple_outputs=True)
def plan_roll_up() -> dict[str, Any]:
    """Refuse what cannot be run; else {request, today, arguments}. ``today`` is the run's own day (UTC), and is not rolled up."""
    with final_errors():
        planned = _planned(get_current_context())
        load_policy(RollUpRequest(**planned["request"]).policy_folder)
    return planned


def _planned(context: "Context") -> dict[str, Any]:
    """What a run does, from its own Params, its DAG and its time: {request, today, arguments}."""
    run = context["dag_run"]
    request = check_request(RollUpRequest, run.dag_id, context["params"], run.conf)
    today = run.run_after.astimezone(timezone.utc).date()
    until = today - timedelta(days=1)
    arguments = ["--root", root_name(audit_root()), "--cluster", request.cluster, "--until", until.isoformat()]
    if request.policy_dir:
        arguments += ["--policy", request.policy_dir]
    return {"request": request.model_dump(mode="json"), "today": today.isoformat(), "arguments": arguments}


class RollUp(SparkJob):
    """Rolls up the finished days, as the run was planned; ``application_args`` is the XCom of the plan."""

    def execute(self, context: "Context") -> None:
        """Refuse what the run itself does not give, then submit the job and wait for it."""
        with final_errors():
            own = _planned(context)["arguments"]
            refuse_another_plan({"arguments": self.application_args}, {"arguments": own})
        super().execute(context)


@task(multiple_outputs=False)
def delete_expired(request: dict[str, Any], today: str) -> dict[str, int]:
    """Delete what the policy keeps no longer: snapshots of rolled-up days, old days, old batches of commits; the log names each.

    Only by a policy that the run or ``KAFKA_AUDIT_POLICY`` names: without one nothing is deleted, and the log says what would have gone
    under the shipped policy. Nor is anything deleted in a dry run.
    """
    from kafka_audit.store import retention  # noqa: PLC0415  - pyarrow: not at DAG parse

    with final_errors():
        # What is deleted, and of which cluster, must not hang on an XCom, which can be edited.
        own = _planned(get_current_context())
        refuse_another_plan({"request": request, "today": today}, {"request": own["request"], "today": own["today"]})
        asked = RollUpRequest(**own["request"])
        history = load_policy(asked.policy_folder).history
        root, day = EvidenceRoot(path=audit_root()), date.fromisoformat(today)
        if root.remote:
            log.warning("nothing was deleted: %s is in an object store, and its lifecycle rules delete; see docs/storage.md", root.name)
            return {"deleted": 0, "would_go": 0, "kept": 0}
        dry_run = asked.dry_run or asked.policy_folder is None
        decided = retention.delete_expired(root, asked.cluster, history, day, lambda one: _log(one, dry_run), dry_run=dry_run)
    gone = sum(one.goes for one in decided)
    if asked.policy_folder is None:
        log.warning(
            "nothing was deleted, because nobody named a policy: set %s in Airflow's environment to the absolute path of a folder "
            "with tiers.yaml and slas.yaml, or name one as the run's Policy folder. What would have gone under the shipped policy is above",
            POLICY_VARIABLE,
        )
    return {"deleted": 0 if dry_run else gone, "would_go": gone if dry_run else 0, "kept": len(decided) - gone}


def _log(one: "Decision", dry_run: bool) -> None:
    log.log(logging.INFO if one.goes else logging.WARNING, "%s%s", "dry run: " if dry_run else "", one)
