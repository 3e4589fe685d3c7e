"""What a task makes sure of before it uses what the first task planned: that its own run gives the same plan.

An XCom can be edited by whoever may edit runs of the DAG, and a run's defaults by a new deployment between two of its tasks.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow.sdk import get_current_context

from kafka_audit.airflow.retries import final_errors
from kafka_audit.audit.installation import audit_root
from kafka_audit.audit.plan import AuditPlan, make_plan
from kafka_audit.audit.request import AuditRequest, check_request
from kafka_audit.errors import ConfigurationError

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


def checked_plan(plan: Mapping[str, Any], context: "Context | None" = None) -> AuditPlan:
    """The plan of the run whose task is running; the task fails for good when ``plan``, the XCom, says anything else."""
    own: Any = context or get_current_context()
    run = own["dag_run"]
    with final_errors():
        request = check_request(AuditRequest, run.dag_id, own["params"], run.conf)
        made = make_plan(request, root=audit_root(), dag_id=run.dag_id, run_id=run.run_id, run_after=run.run_after)
        refuse_another_plan(plan, made.model_dump(mode="json"))
    return made


def refuse_another_plan(said: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """ConfigurationError unless the XCom ``said`` is what the run gives: ``own``."""
    other = sorted(name for name in {*said, *own} if name not in said or name not in own or said[name] != own[name])
    if other:
        told = "; ".join(f"{name}: planned {said.get(name)!r}, the run itself gives {own.get(name)!r}" for name in other)
        raise ConfigurationError(
            f"the plan is not that of this run ({told}): the XCom of its first task was edited, or the installation's settings were "
            "changed since. Start a new run"
        )
