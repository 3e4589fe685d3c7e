"""The DAG that stores and decodes the records of `__consumer_offsets`."""

from datetime import datetime, timedelta, timezone

from airflow.sdk import DAG, dag

from kafka_audit.airflow.commit_history import ReadCommits
from kafka_audit.airflow.limits import pooled_defaults
from kafka_audit.airflow.params import commit_history_params
from kafka_audit.airflow.retries import while_unreachable
from kafka_audit.audit.clusters import DagCluster


def kafka_commit_history() -> None:
    """### Who committed what, and when?

    Reads the new records of `__consumer_offsets` with Spark, stores them unchanged, decodes them, and describes how each group commits
    and rebalances. Audits of the same cluster name use this history if it exists (controls CON-05, CON-06, CON-09, CON-10, CON-12,
    CON-13 and GRP-02), and `kafka-audit history GROUP` shows one group's timeline.

    **Paused until a person switches it on**: the topic reveals the hosts of every group's clients. The connection's principal needs
    **Read and Describe on the topic `__consumer_offsets`**. Without them the task fails at once, says so and is not retried; audits
    continue without the history. On a cluster that has no `__consumer_offsets` yet, the task is skipped.

    - It joins no group and writes nothing to the cluster. If it may, it also reads `__transaction_state`: commits inside an open
      transaction are held back, and `last_run.json` names that transaction.
    - A run reads everything since the previous one, so missed runs need no backfill, and the run after a killed one continues where that
      stopped. Within a run, the task is retried only if the cluster is unreachable or the job broke down.
    - Brokers compact this topic: a record that was not read may be gone minutes later. Each run reports how complete its reading is
      (`last_run.json` in `history/<cluster>/commits`, below `work/` in an object store).
    - `kafka_offsets_roll_up` deletes batches of records that are older than `tiers.yaml` allows. Switch it on as well.

    Needs the connections `kafka_default` (type `kafka`, librdkafka keys in Extra; SASL by PLAIN or SCRAM, or TLS certificates) and
    `spark_default`. In the environment of every Airflow component:

    - `KAFKA_AUDIT_COMMITS_SCHEDULE`: a cron expression or preset instead of `*/15 * * * *`. An audit uses the history only if it was
      updated at most two hours before the audit's snapshot.
    - `KAFKA_AUDIT_CLUSTERS`: several clusters as name=connection id, such as `orders=kafka_orders,payments=kafka_payments`, or the absolute
      path of a file of clusters (`docs/clusters.md`). Each gets its own DAGs, whose ids end in `__` and its name; the DAGs without a name
      disappear. A DAG reads only its own cluster.
    - `KAFKA_AUDIT_CLUSTER`: without that list, the name of the one cluster (default `kafka`), read through the connection
      `kafka_default`.
    """
    ReadCommits(task_id="read_commits", **while_unreachable())


def commit_history_dag(one: DagCluster, dag_id: str) -> DAG:
    """That DAG for one cluster."""
    return dag(
        dag_id=dag_id,
        schedule=one.commits_schedule,
        start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
        catchup=False,  # one run reads everything since the previous one
        is_paused_upon_creation=True,
        max_active_runs=1,  # one run at a time may write into a history
        dagrun_timeout=timedelta(hours=2),
        default_args=pooled_defaults(one),
        params=commit_history_params(one),
        tags=["kafka", "lag", "history"],
    )(kafka_commit_history)()
