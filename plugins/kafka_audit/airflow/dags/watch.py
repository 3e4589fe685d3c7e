"""The DAG that tells people between audits: of stale clusters, audits that did not finish, and recoveries; one for all clusters."""

from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, dag

from kafka_audit.airflow.tell_tasks import watch
from kafka_audit.audit.clusters import dag_clusters
from kafka_audit.audit.notification import watch_schedule


def kafka_reliability_watch() -> None:
    """### Is somebody told when audits stop?

    Reads only the audit folder, never a cluster, and sends what is new and was not told. It exists only if `KAFKA_AUDIT_NOTIFY` is set.
    The task `watch` has one instance for each cluster. It tells once that

    - the newest audit or the newest evidence of a cluster is older than `KAFKA_AUDIT_STALE_HOURS`
    - an audit did not finish within `KAFKA_AUDIT_FINISH_WITHIN` minutes
    - the newest audit is void or cannot be read, or any other news that the audit's own task `tell` could not deliver
    - any of these has ended

    The task fails, after three more tries, if a connection did not accept a message; the next run tries again. In the environment of every
    Airflow component:

    - `KAFKA_AUDIT_NOTIFY`: ids of Airflow connections, separated by commas. Type `smtp`: the Extra names `from_email` and `to`. Type
      `apprise`: the Extra names a service as `{"config": {"path": "<service url>"}}`.
    - `KAFKA_AUDIT_NOTIFY_SEVERITY`: new failures below it are not told (default `high`)
    - `KAFKA_AUDIT_STALE_HOURS`: default 26, for one audit a day
    - `KAFKA_AUDIT_FINISH_WITHIN`: minutes, default 90; 0: never
    - `KAFKA_AUDIT_WATCH_SCHEDULE`: a cron expression or preset instead of `*/15 * * * *`
    - `KAFKA_AUDIT_CLUSTERS`, `KAFKA_AUDIT_CLUSTER`: the clusters, as for the other DAGs
    """
    watch.expand(cluster=[one.name for one in dag_clusters()])


def reliability_watch_dag() -> DAG:
    """That DAG."""
    return dag(
        dag_id="kafka_reliability_watch",
        schedule=watch_schedule(),
        start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
        catchup=False,  # it looks at the present
        is_paused_upon_creation=False,
        max_active_runs=1,
        dagrun_timeout=timedelta(hours=1),
        default_args={"owner": "kafka-audit", "retries": 0, "execution_timeout": timedelta(minutes=10)},
        tags=["kafka", "audit", "reliability"],
    )(kafka_reliability_watch)()
