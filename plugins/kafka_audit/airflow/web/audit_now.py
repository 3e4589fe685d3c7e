"""Where the button *Audit now* of a cluster's page leads."""

from kafka_audit.airflow.links import trigger_link
from kafka_audit.airflow.web.newest import Cluster
from kafka_audit.airflow.web.unsealed import RunStates


def audit_now(known: Cluster, states: RunStates) -> str | None:
    """The run of the newest sealed audit if Airflow still has it, else the cluster's DAG; None for a sample, which no DAG can audit."""
    if known.overview and known.overview.sample:
        return None
    sealed = known.sealed
    like = sealed is not None and sealed.dag_id == known.dag_id and (sealed.dag_id, sealed.run_id) in states
    return trigger_link(known.dag_id, sealed.run_id if sealed and like else None)
