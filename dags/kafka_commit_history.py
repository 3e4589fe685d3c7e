"""The DAG that keeps the history of a cluster's offsets topic."""

from datetime import datetime, timedelta, timezone

from airflow.sdk import dag

from kafka_audit.airflow.commit_history import ReadCommits, commit_history_params, commit_history_schedule


@dag(
    dag_id="kafka_commit_history",
    schedule=commit_history_schedule(),
    start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
    catchup=False,  # one run reads everything since the last one
    is_paused_upon_creation=True,
    max_active_runs=1,  # runs of one history wait for each other
    dagrun_timeout=timedelta(hours=2),
    default_args={
        "owner": "kafka-audit",
        "retries": 2,  # a run that was killed goes on where it was
        "retry_delay": timedelta(minutes=1),
        "execution_timeout": timedelta(minutes=45),
    },
    params=commit_history_params(),
    tags=["kafka", "audit", "history"],
)
def kafka_commit_history() -> None:
    """### Who committed what, and when?

    Reads what is new in `__consumer_offsets` with Spark, keeps the records as they came, decodes them, and describes how each
    group commits and rebalances. The audit's controls CON-05, CON-06, CON-10, CON-12, CON-13 and GRP-02 use it where it is there,
    and `kafka-audit history GROUP` shows one group's timeline.

    Brokers compact this topic: what was not read may be gone minutes later. Each run says how complete its reading is
    (`last_run.json` in the history folder). A run reads everything since the last one, so missed runs need no catching up.

    It joins no group and writes nothing to the cluster. It needs **Read and Describe on the topic `__consumer_offsets`**, which shows every
    group's client hosts: that is why this DAG is paused until a person switches it on. Without that permission the task fails and says
    so; audits go on without the history.

    Set `KAFKA_AUDIT_COMMITS_SCHEDULE` for another schedule.
    """
    ReadCommits(
        task_id="read_commits",
        cluster="{{ params.cluster }}",
        kafka_conn_id="{{ params.kafka_conn_id }}",
        behaviour_hours="{{ params.behaviour_hours }}",
    )


kafka_commit_history()
