"""The DAG that combines each day's offsets snapshots into one folder and deletes expired history."""

from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import DAG, dag

from kafka_audit.airflow.limits import pooled_defaults
from kafka_audit.airflow.params import roll_up_params
from kafka_audit.airflow.roll_up_tasks import RollUp, delete_expired, plan_roll_up
from kafka_audit.audit.clusters import DagCluster


def kafka_offsets_roll_up() -> None:
    """### Keep the history of lag and of commits small

    Reads only the audit folder, never a cluster.

    | task | what it does |
    |-|-|
    | `plan_roll_up` | rejects invalid parameters; the last day to roll up is the day before the run's (UTC) |
    | `roll_up_offsets` | Spark writes one folder below `history/` for each finished day that has offsets snapshots and no folder yet |
    | `delete_expired` | deletes what `tiers.yaml` (`history`) no longer keeps: snapshots of rolled-up days, old days, batches of commits |

    Rolling up a day again gives the same files, and the next run rolls up the days that a missed run left out. Nothing is deleted if the
    roll-up failed, in a dry run, or if nobody chose a policy (neither the run's Policy folder nor `KAFKA_AUDIT_POLICY` is set).
    **Paused until a person switches it on**; it is of use only if `kafka_offsets_snapshot` or `kafka_commit_history` is on.

    Needs the connection `spark_default`. In the environment of every Airflow component:

    - `KAFKA_AUDIT_POLICY`: the installation's policy folder. Without it, scheduled runs roll up but delete nothing.
    - `KAFKA_AUDIT_FOLDERS`: folders below which a run may choose another policy folder. Not set: nowhere.
    - `KAFKA_AUDIT_CLUSTERS` (see `kafka_offsets_snapshot`) gives each cluster its own DAG.
    """
    planned: Any = plan_roll_up()
    rolled_up = RollUp(task_id="roll_up_offsets", job="roll_up_offsets", application_args=planned["arguments"])
    rolled_up >> delete_expired(planned["request"], planned["today"])


def offsets_roll_up_dag(one: DagCluster, dag_id: str) -> DAG:
    """That DAG for one cluster."""
    return dag(
        dag_id=dag_id,
        schedule=one.roll_up_schedule,
        start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
        catchup=False,  # the next run rolls up every missed day
        is_paused_upon_creation=True,
        max_active_runs=1,
        dagrun_timeout=timedelta(hours=2),
        default_args=pooled_defaults(one),
        params=roll_up_params(one),
        tags=["kafka", "lag", "history"],
    )(kafka_offsets_roll_up)()
