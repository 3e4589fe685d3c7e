"""The DAG that makes one file of each day of offsets snapshots and deletes what is kept no longer; one for each cluster."""

from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import dag

from kafka_audit.airflow.params import roll_up_params
from kafka_audit.airflow.roll_up_tasks import RollUp, delete_expired, plan_roll_up
from kafka_audit.audit.clusters import dag_clusters


def kafka_offsets_roll_up() -> None:
    """### Keep the history of lag and of commits small

    Reads the audit folder only, never a cluster.

    | task | what it does |
    |-|-|
    | `plan_roll_up` | refuses parameters that cannot be used; the last day to roll up is the one before the run's (UTC) |
    | `roll_up_offsets` | writes one folder for each finished day that has offsets snapshots and none yet, below `history/`, by Spark |
    | `delete_expired` | deletes what `tiers.yaml` (`history`) keeps no longer: snapshots of rolled-up days, old days, batches of commits |

    A day is the same however often it is rolled up, and a missed run is made up for by the next one. Nothing is deleted when the
    roll-up failed, in a dry run, or where nobody named a policy: neither the run's Policy folder nor `KAFKA_AUDIT_POLICY`.
    **Paused until a person switches it on**; it is of use only where `kafka_offsets_snapshot` or `kafka_commit_history` is on.

    Needs the connection `spark_default`. In the environment of every Airflow component:

    - `KAFKA_AUDIT_POLICY`: the folder of the installation's policy. Without it, scheduled runs roll up and delete nothing.
    - `KAFKA_AUDIT_FOLDERS`: folders below which a run may name another one. Not set: none.
    - `KAFKA_AUDIT_CLUSTERS` (see `kafka_offsets_snapshot`) gives each cluster a DAG of its own.
    """
    planned: Any = plan_roll_up()
    rolled_up = RollUp(task_id="roll_up_offsets", job="roll_up_offsets", application_args=planned["arguments"])
    rolled_up >> delete_expired(planned["request"], planned["today"])


for one in dag_clusters():
    dag(
        dag_id=one.dag_id("kafka_offsets_roll_up"),
        schedule="30 0 * * *",  # half an hour after the day's end: late snapshots are there
        start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
        catchup=False,  # the next run rolls up every day that was missed
        is_paused_upon_creation=True,
        max_active_runs=1,
        dagrun_timeout=timedelta(hours=2),
        default_args={"owner": "kafka-audit", "retries": 0, "execution_timeout": timedelta(minutes=45)},
        params=roll_up_params(one),
        tags=["kafka", "lag", "history"],
    )(kafka_offsets_roll_up)()
