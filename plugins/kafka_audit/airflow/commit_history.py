"""The Spark job that reads the offsets topic, as an Airflow task: its settings, the connector and the credentials."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Param
from airflow.sdk.exceptions import AirflowFailException

from kafka_audit.airflow.home import audit_root
from kafka_audit.airflow.spark_job import SparkJob, prepare_environment
from kafka_audit.airflow.step import worth_retrying
from kafka_audit.errors import AuditError

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

_CLUSTER_PATTERN = "^[a-z0-9][a-z0-9._-]{0,62}$"


class ReadCommits(SparkJob):
    """Brings the commit history of ``cluster`` up to date, through the connections ``kafka_conn_id`` and ``spark_default``."""

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "cluster", "kafka_conn_id", "behaviour_hours")

    def __init__(self, *, cluster: str, kafka_conn_id: str, behaviour_hours: str, **kwargs: Any) -> None:  # noqa: ANN401  (the operator's)
        from spark_jobs.submit import DEFAULT_CONF, READ_COMMITS_CONF  # noqa: PLC0415  (pyspark-free)

        super().__init__(job="read_commits", **kwargs)
        self.conf = {**DEFAULT_CONF, **READ_COMMITS_CONF}
        self.cluster = cluster
        self.kafka_conn_id = kafka_conn_id
        self.behaviour_hours = behaviour_hours

    def execute(self, context: "Context") -> None:
        """Submit the job and wait for it; AuditError of the job's exit code when it fails."""
        from kafka_audit.airflow.hook import KafkaAuditHook  # noqa: PLC0415  (heavy)
        from kafka_audit.cluster.java_client import java_client  # noqa: PLC0415  (heavy)
        from kafka_audit.durable_files import write_json  # noqa: PLC0415  (not at DAG parse)
        from kafka_audit.evidence import EvidenceRoot  # noqa: PLC0415  (pyarrow: not at DAG parse)
        from kafka_audit.sandbox.jars import spark_connector_jars  # noqa: PLC0415  (not at DAG parse)

        try:
            keys = java_client(KafkaAuditHook(self.kafka_conn_id).get_settings())
            history = EvidenceRoot(path=audit_root()).commit_history(self.cluster)
            self.jars = ",".join(map(str, spark_connector_jars(self.log.info)))
            prepare_environment()
            self._check_connection()
            with tempfile.TemporaryDirectory(prefix="kafka-audit-") as folder:  # a folder that only this user may read
                client = Path(folder) / "client.json"
                write_json(client, keys)
                self.application_args = ["--history", str(history), "--bootstrap", keys["bootstrap.servers"], "--client", str(client)]
                self.application_args += ["--behaviour-hours", str(self.behaviour_hours)]
                self._submit(context)
        except AuditError as problem:
            if not worth_retrying(problem):
                raise AirflowFailException(str(problem)) from problem
            raise


def commit_history_schedule() -> str | None:
    """When the history is read: ``KAFKA_AUDIT_COMMITS_SCHEDULE``, else every 15 minutes."""
    return os.environ.get("KAFKA_AUDIT_COMMITS_SCHEDULE") or "*/15 * * * *"


def commit_history_params() -> dict[str, Param]:
    """The DAG's Params."""
    return {
        "cluster": Param(
            "kafka",
            type="string",
            pattern=_CLUSTER_PATTERN,
            title="Cluster",
            section="Cluster",
            description_md="Your name for the cluster: the same as that of its audits, which read this history.",
        ),
        "kafka_conn_id": Param(
            "kafka_default",
            type="string",
            minLength=1,
            title="Kafka connection",
            section="Cluster",
            description_md="Airflow connection of type `kafka`. Its principal needs Read and Describe on `__consumer_offsets`.",
        ),
        "behaviour_hours": Param(
            24,
            type="number",
            exclusiveMinimum=0,
            maximum=24 * 31,
            title="Hours described",
            section="Behaviour",
            description_md="Length of the window, up to now, over which the groups' behaviour is described. The history itself keeps all.",
        ),
    }
