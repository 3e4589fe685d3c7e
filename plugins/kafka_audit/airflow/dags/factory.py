"""Makes the DAGs of an installation, for the DAG file that asks for them."""

from airflow.sdk import DAG

from kafka_audit.airflow.dags.audits import reliability_audit_dag
from kafka_audit.airflow.dags.commits import commit_history_dag
from kafka_audit.airflow.dags.offsets import offsets_snapshot_dag
from kafka_audit.airflow.dags.roll_up import offsets_roll_up_dag
from kafka_audit.airflow.dags.watch import reliability_watch_dag
from kafka_audit.audit.clusters import KINDS, dag_clusters
from kafka_audit.audit.notification import notifies
from kafka_audit.errors import ConfigurationError

WATCH = "kafka_reliability_watch"
_MAKERS = dict(zip(KINDS, (reliability_audit_dag, offsets_snapshot_dag, offsets_roll_up_dag, commit_history_dag), strict=True))


def audit_dags(*kinds: str) -> list[DAG]:
    """Define the DAGs of these kinds (none named: of all), one of each kind for each cluster of the installation.

    A kind is the id that its DAG has where there is one cluster, such as ``kafka_reliability_audit``. Airflow registers the DAGs as those
    of the file that calls this. It reads only files that contain the words "airflow" and "dag", as the import of this function does.
    ``kafka_reliability_watch`` is one DAG for all clusters, and there is none unless ``KAFKA_AUDIT_NOTIFY`` is set. ConfigurationError
    when a kind is none, or the settings of the clusters cannot be used.
    """
    known = (*KINDS, WATCH)
    if unknown := sorted(set(kinds) - set(known)):
        raise ConfigurationError(
            f"audit_dags: {', '.join(unknown)}: no such kind of DAG; write some of {', '.join(known)}, or none for all"
        )
    made = [make(one, one.dag_id(kind)) for one in dag_clusters() for kind, make in _MAKERS.items() if not kinds or kind in kinds]
    if notifies() and (not kinds or WATCH in kinds):
        made.append(reliability_watch_dag())
    return made
