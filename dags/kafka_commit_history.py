"""The DAG that keeps the history of a cluster's offsets topic; one for each cluster."""

from datetime import datetime, timedelta, timezone

from airflow.sdk import dag

from kafka_audit.airflow.commit_history import ReadCommits
from kafka_audit.airflow.params import commit_history_params
from kafka_audit.airflow.retries import while_unreachable
from kafka_audit.audit.clusters import dag_clusters


def kafka_commit_history() -> None:
    """### Who committed what, and when?

    Reads what is new in `__consumer_offsets` with Spark, keeps the records as they came, decodes them, and describes how each
    group commits and rebalances. Audits of the same cluster name use it where it is there (controls CON-05, CON-06, CON-09, CON-10,
    CON-12, CON-13 and GRP-02), and `kafka-audit history GROUP` shows one group's timeline.

    **Paused until a person switches it on**: the topic shows every group's client hosts. The connection's principal needs **Read and
    Describe on the topic `__consumer_offsets`**. Without them the task fails at once, says so and is not tried again; audits go on
    without the history.

    - It joins no group and writes nothing to the cluster. Where it may, it reads `__transaction_state` too: a commit inside a transaction
      that stays open is held back, and `last_run.json` names that transaction.
    - A run reads everything since the last one, so missed runs need no catching up, and a run that was killed goes on where it was. Only
      an unreachable cluster and a job that broke down are tried again within the run.
    - Brokers compact this topic: what was not read may be gone minutes later. Each run says how complete its reading is
      (`last_run.json` in `history/<cluster>/commits`).
    - `kafka_offsets_roll_up` deletes batches of records that are older than `tiers.yaml` says. Switch it on as well.

    Needs the connections `kafka_default` (type `kafka`, librdkafka keys in Extra; SASL by PLAIN or SCRAM, or TLS certificates) and
    `spark_default`. In the environment of every Airflow component:

    - `KAFKA_AUDIT_COMMITS_SCHEDULE`: a cron expression or preset instead of `*/15 * * * *`. An audit uses a history that was brought up
      to date at most two hours before its snapshot.
    - `KAFKA_AUDIT_CLUSTERS`: the clusters as name=connection id, such as `orders=kafka_orders,payments=kafka_payments`. Each gets
      DAGs of its own, with `__` and its name at the end, instead of those without a name. A DAG reads its own cluster only.
    - `KAFKA_AUDIT_CLUSTER`: without that list, the name of the one cluster (else `kafka`), read by the connection `kafka_default`.
    """
    ReadCommits(task_id="read_commits", **while_unreachable())


for one in dag_clusters():
    dag(
        dag_id=one.dag_id("kafka_commit_history"),
        schedule=one.commits_schedule,
        start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
        catchup=False,  # one run reads everything since the last one
        is_paused_upon_creation=True,
        max_active_runs=1,  # one run at a time may write into a history
        dagrun_timeout=timedelta(hours=2),
        default_args={"owner": "kafka-audit", "retries": 0, "execution_timeout": timedelta(minutes=45)},
        params=commit_history_params(one),
        tags=["kafka", "lag", "history"],
    )(kafka_commit_history)()
