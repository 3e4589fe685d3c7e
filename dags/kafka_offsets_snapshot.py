"""The DAG that keeps a history of lag: one light offsets snapshot of a Kafka cluster every few minutes; one for each cluster."""

from datetime import datetime, timedelta, timezone

from airflow.sdk import dag

from kafka_audit.airflow.offsets_tasks import snapshot_offsets
from kafka_audit.airflow.params import offsets_params
from kafka_audit.audit.clusters import dag_clusters


def kafka_offsets_snapshot() -> None:
    """### How far behind is each consumer group, and has it lost records?

    Reads groups, members, committed offsets and the bounds of the logs of one cluster (never writes to it) into a small immutable
    snapshot below `offsets/`. No Spark: a run takes seconds. Audits read these snapshots as their history of lag.

    **Paused until a person switches it on**: from then on the cluster is read every 5 minutes. A run that is triggered by hand waits
    as long as the DAG is paused.

    - A late run reads the cluster when it runs, and says so (`started_at` in its manifest). What was missed stays a gap: it counts as
      not assessed, never as kept. A cleared task that had succeeded finds its snapshot and reads nothing.
    - An unreachable cluster is tried again within the run; a run ends after 4 minutes at the latest.
    - Each snapshot updates the asset `kafka-audit://offsets/<cluster>`; the event says `cluster`, `snapshot_id`, `groups`,
      `partitions_behind`, `partitions_lost`, `partitions_beyond_end`, `partitions_unknown` (a commit or a bound of the log could not be
      read) and `errors`, the snapshot's own by dataset. DAGs can be scheduled on it.
    - `kafka_offsets_roll_up` makes one file of each day of them and deletes what is kept no longer. Switch it on as well.

    Needs the connection `kafka_default` (type `kafka`, librdkafka keys in Extra). Scheduled runs use the defaults of the parameters;
    `policy_dir` decides for which groups the SLAs in seconds are measured. In the environment of every Airflow component:

    - `KAFKA_AUDIT_OFFSETS_SCHEDULE`: a cron expression or preset instead of `*/5 * * * *`. Write the same interval into `tiers.yaml`
      (`history.offsets.interval_seconds`): it decides what is a gap.
    - `KAFKA_AUDIT_CLUSTERS`: the clusters as name=connection id, such as `orders=kafka_orders,payments=kafka_payments`. Each gets
      DAGs of its own, with `__` and its name at the end, instead of those without a name. A DAG reads its own cluster only.
    - `KAFKA_AUDIT_CLUSTER`: without that list, the name of the one cluster (else `kafka`), read by the connection `kafka_default`.
    - `KAFKA_AUDIT_POLICY`: the folder of the installation's policy. `KAFKA_AUDIT_FOLDERS`: folders below which a run may name another one.
    """
    snapshot_offsets()


for one in dag_clusters():
    dag(
        dag_id=one.dag_id("kafka_offsets_snapshot"),
        schedule=one.offsets_schedule,
        start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
        catchup=False,  # offsets of a time that has passed cannot be read
        is_paused_upon_creation=True,
        max_active_runs=1,
        dagrun_timeout=timedelta(minutes=4),  # a run that hangs is gone before the next one is due
        default_args={"owner": "kafka-audit", "retries": 0, "execution_timeout": timedelta(minutes=3)},
        params=offsets_params(one),
        tags=["kafka", "lag", "reliability"],
    )(kafka_offsets_snapshot)()
