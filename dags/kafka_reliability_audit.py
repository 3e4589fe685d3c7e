"""The DAG that audits one Kafka cluster from snapshot to gated report; one for each cluster."""

from datetime import datetime, timedelta, timezone
from typing import Any

from airflow.sdk import dag

from kafka_audit.airflow.assets import audit_schedule
from kafka_audit.airflow.audit_job import AuditJob
from kafka_audit.airflow.gate import AuditGate
from kafka_audit.airflow.params import audit_params
from kafka_audit.airflow.tasks import evidence_gate, findings_gate, plan, report, snapshot
from kafka_audit.audit.clusters import dag_clusters
from kafka_audit.audit.request import DAG_ID


def kafka_reliability_audit() -> None:
    """### Can this Kafka cluster lose data, and would anyone notice?

    Reads one cluster (never writes to it), judges it by the control catalogue and ends with a report.

    | task | what it does |
    |-|-|
    | `plan` | refuses parameters that cannot be used, gives the run its ids |
    | `snapshot` | reads the cluster into immutable, hashed Parquet files; retried only while the cluster is unreachable |
    | `evidence_gate` | is the evidence complete, fresh and typed enough to judge? If not, the audit is **void** |
    | `verify_settings`, `verify_lag` | every control on every resource, by Spark |
    | `findings_gate` | do the findings pass the policy, and was enough assessed? |
    | `report` | HTML, JSON and JUnit, whatever the gates said; then the audit is sealed |
    | `gate` | **the only task that turns the run red**: its log lists the reasons |

    A red `gate` means that the audit worked and the cluster did not pass, or that something could not be assessed: the reasons
    say which. Open the tab **Audit report** of the run. Every task can be cleared and run again: a snapshot is taken once and
    kept, and the later tasks compute the same result from it. For new evidence, trigger a new run.

    Needs the connections `kafka_default` (type `kafka`, librdkafka keys in Extra) and `spark_default`. Scheduled runs use the defaults
    of the parameters. In the environment of every Airflow component:

    - `KAFKA_AUDIT_SCHEDULE`: a cron expression or preset such as `@daily`; or `asset`: after each offsets snapshot of the cluster; or
      the uri of any asset. Not set: audits are run by hand.
    - `KAFKA_AUDIT_CLUSTERS`: the clusters as name=connection id, such as `orders=kafka_orders,payments=kafka_payments`. Each gets
      DAGs of its own, with `__` and its name at the end, instead of those without a name. A DAG reads its own cluster only.
    - `KAFKA_AUDIT_CLUSTER`: without that list, the name of the one cluster (else `kafka`), read by the connection `kafka_default`.
    - `KAFKA_AUDIT_POLICY`, `KAFKA_AUDIT_CONTROLS`: the installation's own policy folder and folders of controls (several with `:` between
      them), for every run whose parameters name none. `KAFKA_AUDIT_FOLDERS`: folders below which a run may name others. Not set: none.

    Take care with `asset`: an offsets snapshot is taken every 5 minutes, and each starts an audit (those taken during an audit start
    one together). Use it when `KAFKA_AUDIT_OFFSETS_SCHEDULE` is hourly or rarer. For samples of lag every 5 minutes and one audit
    a day, `@daily` is right: an audit reads the offsets snapshots before it in any case.
    """
    planned: Any = plan()
    read = snapshot(planned)
    fit = evidence_gate(planned)
    settings = AuditJob(task_id="verify_settings", job="verify_settings", plan=planned)
    lag = AuditJob(task_id="verify_lag", job="verify_lag", plan=planned)
    judged = findings_gate(planned)
    reported = report(planned)
    read >> fit >> [settings, lag] >> judged >> reported >> AuditGate(task_id="gate", plan=planned)


for one in dag_clusters():
    dag(
        dag_id=one.dag_id(DAG_ID),
        # None unless the installation sets KAFKA_AUDIT_SCHEDULE (such as "@daily"): no cluster is read before a person decides so.
        schedule=audit_schedule(one.name),
        start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
        catchup=False,  # a missed day cannot be audited afterwards: a snapshot shows only now
        is_paused_upon_creation=False,
        max_active_runs=1,  # each audit is chained to the one before it
        # The two Spark jobs one after the other: together they were slower on two cores (53 s against 46 s) and hold twice the memory.
        max_active_tasks=1,
        dagrun_timeout=timedelta(hours=2),
        default_args={"owner": "kafka-audit", "retries": 0, "execution_timeout": timedelta(minutes=45)},
        params=audit_params(one),
        tags=["kafka", "audit", "reliability"],
    )(kafka_reliability_audit)()
