"""A Spark job that is one step of an audit."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from kafka_audit.airflow.plan_check import checked_plan
from kafka_audit.airflow.spark_job import SparkJob
from kafka_audit.airflow.step import audit_step
from kafka_audit.audit.plan import AuditPlan

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class AuditJob(SparkJob):
    """Runs the job on the snapshot and the audit folder of ``plan``."""

    template_fields: Sequence[str] = (*SparkJob.template_fields, "plan")

    def __init__(self, *, plan: Any, **kwargs: Any) -> None:  # noqa: ANN401  (an XComArg until it is rendered)
        super().__init__(**kwargs)
        self.plan = plan

    def execute(self, context: "Context") -> None:
        """Submit the job unless its result is evidence already; a failure is noted where the gate finds it."""
        plan = checked_plan(self.plan, context)
        with audit_step(plan, self.job) as due:
            if due:
                self.application_args = _arguments(plan)
                super().execute(context)


def _arguments(plan: AuditPlan) -> list[str]:
    arguments = ["--snapshot", str(plan.snapshot_dir), "--audit", str(plan.audit.path)]
    if plan.policy_dir:
        arguments += ["--policy", plan.policy_dir]
    for folder in plan.controls_folders:
        arguments += ["--controls", str(folder)]
    return arguments
