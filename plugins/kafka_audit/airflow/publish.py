"""The task that publishes an audit's verdict on the cluster's asset, for other DAGs, and its lineage where OpenLineage is installed."""

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowSkipException

from kafka_audit.airflow.assets import audit_asset
from kafka_audit.airflow.step import checked_plan, run_states, tell_seal
from kafka_audit.audit.clusters import cluster_of_dag
from kafka_audit.audit.outcome import audit_outcome
from kafka_audit.audit.published import PublishedVerdict, broken, publish
from kafka_audit.errors import AuditError

if TYPE_CHECKING:
    from airflow.providers.openlineage.extractors import OperatorLineage
    from airflow.sdk.definitions.context import Context

    from kafka_audit.audit.request import AuditPlan

log = logging.getLogger(__name__)


class PublishVerdict(BaseOperator):
    """Update the asset ``kafka-audit://audits/<cluster>`` with how the audit ended: PASSED, FAILED, INCOMPLETE, VOID or ERROR.

    A task of its own, because a task that fails emits no asset event, and the gate fails for each verdict but PASSED. It runs whatever
    happened before (``all_done``), and computes the same outcome as the gate from the same files and states.
    """

    template_fields: Sequence[str] = ("plan",)

    def __init__(self, *, plan: Any, **kwargs: Any) -> None:  # noqa: ANN401  (an XComArg until it is rendered)
        super().__init__(trigger_rule="all_done", **kwargs)
        self.plan = plan
        self.outlets = [audit_asset(cluster_of_dag(self.dag.dag_id).name)]
        self._lineage: tuple[AuditPlan, PublishedVerdict] | None = None

    def execute(self, context: "Context") -> dict[str, Any]:
        """Return what the event says (:class:`~kafka_audit.audit.published.PublishedVerdict`).

        Skipped when the run was refused before it began: then there is no audit, and what is known of the cluster has not changed.
        """
        if not self.plan:
            raise AirflowSkipException("the run was refused before it began, so there is no audit to publish; the gate says why")
        plan = checked_plan(self.plan, context)
        try:
            outcome = audit_outcome(plan.audit, plan.snapshot, run_states(plan, context))
            seal = tell_seal(plan, log)
        except AuditError as problem:
            outcome, seal = broken(problem), {}
        said = publish(plan, outcome, seal)
        self._lineage = (plan, said)
        event = said.model_dump(mode="json")
        context["outlet_events"][self.outlets[0]].extra = event
        log.info("published on %s: %s", self.outlets[0].uri, said.verdict)
        return event

    def get_openlineage_facets_on_complete(self, _task_instance: Any) -> "OperatorLineage | None":  # noqa: ANN401  (Airflow's own)
        """Topics in, audit out; called by Airflow's OpenLineage provider only, after ``execute``."""
        if self._lineage is None:
            return None
        from kafka_audit.airflow.lineage import audit_lineage  # noqa: PLC0415 - the provider may not be installed

        return audit_lineage(*self._lineage)
