"""One of the audit's Spark jobs as an Airflow task: spark-submit with the project's own settings."""

import os
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from kafka_audit.airflow.plan import AuditPlan
from kafka_audit.airflow.step import audit_step
from kafka_audit.errors import AuditError, CollectionError, ConfigurationError, IntegrityError

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

_ERRORS: dict[int, type[AuditError]] = {error.exit_code: error for error in (CollectionError, ConfigurationError, IntegrityError)}


class SparkJob(SparkSubmitOperator):
    """Runs ``spark_jobs/<job>.py`` on the snapshot and the audit folder of ``plan``, through the connection ``spark_default``.

    The job's exit code is its contract (errors.py): it comes back as the error of that exit code.
    """

    template_fields: Sequence[str] = (*SparkSubmitOperator.template_fields, "plan")

    def __init__(self, *, job: str, plan: Any, conn_id: str = "spark_default", **kwargs: Any) -> None:
        from spark_jobs.submit import DEFAULT_CONF, job_path  # noqa: PLC0415  (free of pyspark; here so that the import is next to its use)

        super().__init__(application=str(job_path(job)), conf=dict(DEFAULT_CONF), name=f"kafka_audit_{job}", conn_id=conn_id, **kwargs)
        self.job = job
        self.plan = plan
        self.spark_conn_id = conn_id

    def execute(self, context: "Context") -> None:
        """Submit the job and wait for it; AuditError of the job's exit code when it fails."""
        plan = AuditPlan(**self.plan)
        with audit_step(plan, self.job) as due:
            if due:
                self.application_args = self._arguments(plan)
                _prepare_environment()
                self._check_connection()
                self._submit(context)
