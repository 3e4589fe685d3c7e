"""The DAG that audits one Kafka cluster, from snapshot to report and gate."""

from datetime import datetime, timezone
from typing import Any

from airflow.sdk import DAG, dag

from kafka_audit.airflow.deadlines import audit_deadlines
from kafka_audit.airflow.gate import AuditGate
from kafka_audit.airflow.limits import run_limits
from kafka_audit.airflow.offsets_tasks import audit_schedule
from kafka_audit.airflow.params import audit_params
from kafka_audit.airflow.publish import PublishVerdict
from kafka_audit.airflow.review import add_review
from kafka_audit.airflow.snapshot_tasks import read_cluster
from kafka_audit.airflow.spark_job import AuditJob
from kafka_audit.airflow.tasks import evidence_gate, findings_gate, plan, report
from kafka_audit.airflow.tell_tasks import tell
from kafka_audit.audit.clusters import DagCluster
from kafka_audit.audit.notification import notifies
from kafka_audit.audit.published import PUBLISH_TASK
from kafka_audit.audit.review_settings import review_settings


def kafka_reliability_audit() -> None:
    """### Can this Kafka cluster lose data, and would anyone notice?

    Reads one cluster (never writes to it), checks it against the control catalogue and writes a report.

    | task | what it does |
    |-|-|
    | `plan` | rejects invalid parameters and gives the run its ids |
    | `snapshot` | reads the cluster into immutable, hashed Parquet files; retried only while the cluster is unreachable |
    | `evidence_gate` | is the evidence complete, recent and of the right types? If not, the audit is **void** |
    | `verify` | judges every resource by every control, with Spark: first settings, then lag |
    | `findings_gate` | do the findings pass the policy, and were enough controls assessed? |
    | `report` | writes the report in the formats that were asked for, whatever the gates decided; then seals the audit |
    | `publish` | puts the verdict on the asset `kafka-audit://audits/<cluster>`, where `require_audit` of other teams' DAGs reads it |
    | `gate` | **the only task that fails because of the verdict**: its log lists the reasons |
    | `tell` | tells people what is new, if `KAFKA_AUDIT_NOTIFY` is set; fails if somebody could not be told |

    A red `gate` means that the audit worked, and that the cluster did not pass or something could not be assessed; the reasons say
    which. Open the run's tab **Audit report**. Every task can be cleared and run again: a snapshot is taken once and kept, and the
    later tasks compute the same result from it. To collect new evidence, trigger a new run.

    Needs the connections `kafka_default` (type `kafka`, librdkafka keys in Extra) and `spark_default`. Scheduled runs use the
    parameters' defaults. In the environment of every Airflow component:

    - `KAFKA_AUDIT_SCHEDULE`: a cron expression or preset such as `@daily`; or `asset`: after each offsets snapshot of the cluster; or
      the URI of any asset. Not set: audits run only when triggered by hand.
    - `KAFKA_AUDIT_CLUSTERS`: several clusters as name=connection id, such as `orders=kafka_orders,payments=kafka_payments`, or the absolute
      path of a file of clusters (`docs/clusters.md`). Each gets its own DAGs, whose ids end in `__` and its name; the DAGs without a name
      disappear. A DAG reads only its own cluster.
    - `KAFKA_AUDIT_CLUSTER`: without that list, the name of the one cluster (default `kafka`), read through the connection
      `kafka_default`.
    - `KAFKA_AUDIT_ON_FAIL=review`: after an audit that FAILED the task `review` waits until somebody approves or rejects the risk
      (*Required Actions*), and `record_review` seals the answer beside the audits. `gate` fails all the same, at once; the run itself
      ends, red, when the review does. See `docs/review.md`.
    - `KAFKA_AUDIT_POLICY`, `KAFKA_AUDIT_CONTROLS`: the installation's policy folder and its folders of controls (separated by `:`), for
      every run whose parameters name none. `KAFKA_AUDIT_FOLDERS`: folders below which a run may choose others. Not set: nowhere.
    - `KAFKA_AUDIT_NOTIFY`: Airflow connections (types `smtp` and `apprise`, separated by commas) through which people are told what is new.
      `KAFKA_AUDIT_NOTIFY_SEVERITY`: of which new failures at least (default `high`). The DAG `kafka_reliability_watch` has the others.
    - `KAFKA_AUDIT_SHARDS`: over how many tasks a large cluster is shared out (1 to 64, default 1). Above 1 the tasks `read_groups` and
      `read_topics` run that many times side by side, and `snapshot` joins what they read. See `docs/scale.md`.
    - `KAFKA_AUDIT_START_WITHIN`, `KAFKA_AUDIT_FINISH_WITHIN`: minutes after which people are told of a run that has not started
      (30) or finished (90), in the triggerer's log and through `KAFKA_AUDIT_NOTIFY`; 0: never.

    Take care with `asset`: an offsets snapshot is taken every 5 minutes, and each starts an audit (those taken during an audit start
    a single one together). Use it only if `KAFKA_AUDIT_OFFSETS_SCHEDULE` is hourly or less often. For samples of lag every 5 minutes
    and one audit a day, use `@daily`: every audit reads the offsets snapshots taken before it.
    """
    planned: Any = plan()
    read = read_cluster(planned)
    fit = evidence_gate(planned)
    verified = AuditJob(task_id="verify", job="verify", plan=planned)
    judged = findings_gate(planned)
    reported = report(planned)
    published = PublishVerdict(task_id=PUBLISH_TASK, plan=planned)
    read >> fit >> verified >> judged >> reported >> published >> AuditGate(task_id="gate", plan=planned)
    if review := review_settings():
        reported >> add_review(planned, review)
    if notifies():
        reported >> tell(planned)


def reliability_audit_dag(one: DagCluster, dag_id: str) -> DAG:
    """That DAG for one cluster."""
    review = review_settings()
    return dag(
        dag_id=dag_id,
        # None unless the installation sets KAFKA_AUDIT_SCHEDULE (such as "@daily"): nothing reads a cluster until a person decides to.
        schedule=audit_schedule(one),
        start_date=datetime(2026, 1, 1, tzinfo=timezone.utc),
        catchup=False,  # a missed day cannot be audited afterwards: a snapshot shows only the present
        is_paused_upon_creation=False,
        **run_limits(one, review),  # without reviews one run at a time, of at most two hours
        deadline=audit_deadlines(reviewed=review is not None),
        params=audit_params(one),
        tags=["kafka", "audit", "reliability"],
    )(kafka_reliability_audit)()
