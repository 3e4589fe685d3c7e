"""The last task of an audit run: it alone turns the run red, after the report exists."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from airflow.sdk import BaseOperator, BaseOperatorLink
from airflow.sdk.exceptions import AirflowFailException

from kafka_audit.airflow.step import checked_plan, run_states, tell_seal
from kafka_audit.audit.outcome import audit_outcome
from kafka_audit.audit.published import PUBLISH_TASK
from kafka_audit.store.mirrors import where

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context
    from airflow.sdk.types import TaskInstanceKey


log = logging.getLogger(__name__)


class ReportLink(BaseOperatorLink):
    """The button "Audit report" on the gate task."""

    name = "Audit report"

    def get_link(self, operator: BaseOperator, *, ti_key: "TaskInstanceKey") -> str:
        return f"/dags/{quote(ti_key.dag_id, safe='')}/runs/{quote(ti_key.run_id, safe='')}/plugin/audit-report"


class AuditGate(BaseOperator):
    """Fail with the audit's reasons unless every step succeeded, the report is sealed, both gates passed and the verdict is published.

    It runs whatever happened before it (``all_done``), so it is the task that decides the run's colour: a crashed step, a void
    audit and a failed policy all end here, with their reasons.
    """

    template_fields: Sequence[str] = ("plan",)
    operator_extra_links = (ReportLink(),)

    def __init__(self, *, plan: Any, **kwargs: Any) -> None:  # noqa: ANN401  (an XComArg until it is rendered)
        super().__init__(trigger_rule="all_done", **kwargs)
        self.plan = plan

    def execute(self, context: "Context") -> dict[str, Any]:
        """Return {verdict, exit_code, report} and the seal when the audit passed; AirflowFailException with every reason otherwise."""
        if not self.plan:
            raise AirflowFailException("the run was refused before it began: the log of the task plan says why")
        plan = checked_plan(self.plan, context)
        states = run_states(plan, context)
        result = audit_outcome(plan.audit, plan.snapshot, states)
        seal = tell_seal(plan, log)
        if result.exit_code:
            raise AirflowFailException(str(result))
        if states.get(PUBLISH_TASK) != "success":
            raise AirflowFailException(
                f"The audit ended {result.verdict}, but other DAGs were not told: the task {PUBLISH_TASK} ended "
                f"{states.get(PUBLISH_TASK)}, and its log says why. Clear {PUBLISH_TASK} with its downstream tasks"
            )
        log.log(logging.WARNING if result.notices else logging.INFO, "%s", result)
        return {"verdict": result.verdict, "exit_code": result.exit_code, "report": where(result.report), **seal}
