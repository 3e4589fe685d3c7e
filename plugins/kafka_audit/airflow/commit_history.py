"""The task that reads the offsets topic: a Spark job with the Kafka connector and the connection's credentials."""

import json
from typing import TYPE_CHECKING, Any

from airflow.sdk.exceptions import AirflowSkipException

from kafka_audit.airflow.hook import KafkaAuditHook
from kafka_audit.airflow.retries import final_errors
from kafka_audit.airflow.secret_pipe import readable_once
from kafka_audit.airflow.spark_job import SparkJob
from kafka_audit.audit.installation import audit_root
from kafka_audit.audit.request import CommitHistoryRequest, check_request
from kafka_audit.cluster.java_client import java_client
from kafka_audit.errors import NothingToReadError
from kafka_audit.jars.fetch import spark_connector_jars
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.submit import DEFAULT_CONF, READ_COMMITS_CONF

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context


class ReadCommits(SparkJob):
    """Brings a cluster's commit history up to date, as the run's Params say (CommitHistoryRequest)."""

    def __init__(self, **kwargs: Any) -> None:  # noqa: ANN401  (the operator's own)

        super().__init__(job="read_commits", **kwargs)
        self.conf = {**DEFAULT_CONF, **READ_COMMITS_CONF}

    def execute(self, context: "Context") -> None:
        """Check the request, submit the job and wait for it; the credentials reach it by a pipe that only this user may read."""
        run = context["dag_run"]
        with final_errors():
            request = check_request(CommitHistoryRequest, run.dag_id, context["params"], run.conf)
            keys = java_client(KafkaAuditHook(request.kafka_conn_id).get_conn())
            history = EvidenceRoot(path=audit_root()).commit_history(request.cluster)
            self.jars = ",".join(map(str, spark_connector_jars(self.log.info)))
            with readable_once("client.json", json.dumps(keys)) as client:
                self.application_args = [
                    *("--history", str(history), "--bootstrap", keys["bootstrap.servers"], "--client", str(client)),
                    *("--behaviour-hours", str(request.behaviour_hours)),
                ]
                try:
                    super().execute(context)
                except NothingToReadError as problem:
                    raise AirflowSkipException(str(problem)) from problem
