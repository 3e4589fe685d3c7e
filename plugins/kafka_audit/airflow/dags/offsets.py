"""The DAG that takes an offsets snapshot of a Kafka cluster every few minutes, as a history of lag."""

from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, dag

from kafka_audit.airflow.limits import task_defaults
from kafka_audit.airflow.offsets_tasks import snapshot_offsets
from kafka_audit.airflow.params import offsets_params
from kafka_audit.audit.clusters import DagCluster


def kafka_offsets_snapshot() -> None:
    """### How far behind is each consumer group, and has it lost records?

    Reads groups, members, committed offsets and log start and end offsets of one cluster (never writes to it) into a small immutable
    snapshot below `offsets/`. No Spark: a run takes seconds. Audits read these snapshots as their history of lag.

    **Paused until a person switches it on**: from then on the cluster is read every 5 minutes. A run triggered by hand waits while
    the DAG is paused.

    - A late run reads the cluster when it runs, and records that time (`started_at` in its manifest). A missed run leaves a gap, which
      counts as not assessed, never as within the SLA. Clearing a task that had succeeded reads nothing: it finds its snapshot.
    - If the cluster is unreachable, the task is retried within the run; a run ends after 4 minutes at the latest.
    - Each snapshot updates the asset `kafka-audit://offsets/<cluster>`, on which DAGs can be scheduled. The asset event contains
      `cluster`, `snapshot_id`, `groups`, `partitions_behind`, `partitions_lost`, `partitions_beyond_end`, `partitions_unknown` (a commit
      or a log offset could not be read) and `errors`, the snapshot's errors by dataset.
    - `kafka_offsets_roll_up` combines each day of them into one folder and deletes expired ones. Switch it on as well.

    Needs the connection `kafka_default` (type `kafka`, librdkafka keys in Extra). Scheduled runs use the defaults of the parameters;
    the policy in `policy_dir` says for which groups SLAs in seconds are measured. In the environment of every Airflow component:

    - `KAFKA_AUDIT_OFFSETS_SCHEDULE`: a cron expression or preset instead of `*/5 * * * *`. Write the same interval into `tiers.yaml`
      (`history.offsets.interval_seconds`): it decides what counts as a gap.
    - `KAFKA_AUDIT_CLUSTERS`: several clusters as name=connection id, such as `orders=kafka_orders,payments=kafka_payments`, or the absolute
      path of a file of clusters (`docs/clusters.md`). Each gets its own DAGs, whose ids end in `__` and its name; the DAGs without a name
      disappear. A DAG reads only its own cluster.
    - `KAFKA_AUDIT_CLUSTER`: without that list, the name of the one cluster (default `kafka`), read through the connection
      `kafka_default`.
    - `KAFKA_AUDIT_POLICY`: the installation's policy folder. `KAFKA_AUDIT_FOLDERS`: folders below which a run may choose another one.
    """
    snapshot_offsets()


def offsets_snapshot_dag(one: DagCluster, dag_id: str) -> DAG:
    """That DAG for one cluster. Its task is in no pool: it takes seconds, and a sample that waits is a gap."""
    return dag(
        dag_id=dag_id,
        schedule=one.offsets_schedule,
        start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
        catchup=False,  # past offsets cannot be read
        is_paused_upon_creation=True,
        max_active_runs=1,
        dagrun_timeout=timedelta(minutes=4),  # a run that hangs ends before the next one is due
        default_args=task_defaults(one, minutes=3),
        params=offsets_params(one),
        tags=["kafka", "lag", "reliability"],
    )(kafka_offsets_snapshot)()
