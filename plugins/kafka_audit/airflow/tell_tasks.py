"""The tasks that tell people what is new: one at the end of each audit, and one that watches a cluster between audits."""

from datetime import timedelta
from typing import Any

from airflow.sdk import get_current_context, task

from kafka_audit.airflow.notify import tell_now
from kafka_audit.airflow.retries import final_errors
from kafka_audit.airflow.step import checked_plan
from kafka_audit.audit.clusters import cluster_of_dag
from kafka_audit.audit.outcome import why_unsealed
from kafka_audit.safe_text import visible

_RETRIES: dict[str, Any] = {
    "retries": 3,
    "retry_delay": timedelta(minutes=1),
    "retry_policy": None,  # unlike the DAG's other tasks, it is tried again after an error
    "execution_timeout": timedelta(minutes=10),
}
"""A mail server or a chat may be back in a moment; what was accepted is not sent again."""


@task(trigger_rule="all_done", multiple_outputs=False, **_RETRIES)
def tell(plan: dict[str, Any] | None) -> dict[str, Any]:
    """Tell what this audit found that was not told before, or that it ended without a report; {connection: kinds of news}."""
    run = get_current_context()["dag_run"]
    if not plan:
        refused = f"run {visible(run.run_id)} was refused before it began; the log of its task plan says why"
        return _tell(cluster_of_dag(run.dag_id).name, refused)
    made = checked_plan(plan)
    return _tell(made.cluster, why_unsealed(made.audit))


@task(multiple_outputs=False, map_index_template="{{ task.op_kwargs.cluster }}", **_RETRIES)
def watch(cluster: str) -> dict[str, Any]:
    """Tell what is new of a cluster and was not told, above all that it is stale, or that an audit did not finish in time."""
    return _tell(cluster)


def _tell(cluster: str, failed: str = "") -> dict[str, Any]:
    with final_errors():
        return tell_now(cluster, failed=failed)
