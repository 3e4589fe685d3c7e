"""A Spark job of this project as an Airflow task: spark-submit with the project's own settings; also as one step of an audit."""

import json
import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.providers.apache.spark.hooks.spark_submit import SparkSubmitHook
from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
from airflow.sdk import Connection
from airflow.sdk.exceptions import AirflowException, AirflowNotFoundException

from kafka_audit.airflow.guard import guarded
from kafka_audit.airflow.retries import final_errors
from kafka_audit.airflow.step import audit_step, checked_plan
from kafka_audit.audit.request import AuditPlan
from kafka_audit.errors import AuditError, CollectionError, ConfigurationError, IntegrityError, NothingToReadError, StoppedError
from kafka_audit.shipped import with_shipped
from kafka_audit.submit import (
    DEFAULT_CONF,
    DRIVER_JAVA_OPTIONS,
    JAVA_OPTIONS,
    LOOPBACK_CONF,
    is_local,
    is_secret,
    job_path,
    with_class_data,
)

if TYPE_CHECKING:
    from airflow.sdk.definitions.context import Context

_ERRORS: dict[int, type[AuditError]] = {
    error.exit_code: error for error in (CollectionError, ConfigurationError, IntegrityError, NothingToReadError)
}

# The last line of a job that fails on purpose (spark_jobs/judge/part.py).
_ERROR_LINE = re.compile(r"kafka-audit: (.+)")

_YARN_FOLDERS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")


class SparkJob(SparkSubmitOperator):
    """Runs ``spark_jobs/<job>.py`` with ``application_args``, through the connection ``spark_default``.

    ``conf`` in the connection's extra holds further settings of Spark (docs/spark.md), which win over the project's own. They stand on the
    command line of spark-submit, so none may be secret.

    The job's exit code is its contract (errors.py): it comes back as the error of that exit code.
    """

    def __init__(self, *, job: str, conn_id: str = "spark_default", **kwargs: Any) -> None:  # noqa: ANN401  (the operator's own)
        super().__init__(
            application=str(job_path(job)),
            conf={**DEFAULT_CONF, JAVA_OPTIONS: DRIVER_JAVA_OPTIONS},
            name=f"kafka_audit_{job}",
            conn_id=conn_id,
            **kwargs,
        )
        self.job = job
        self.spark_conn_id = conn_id
        self._connection_conf: dict[str, str] = {}
        self._last_error = self._last_line = ""
        self._told_to_stop = False

    def execute(self, context: "Context") -> None:
        """Submit the job and wait for it; AuditError of the job's exit code when it fails, StoppedError when this task is told to stop."""
        with final_errors():
            find_spark_submit()
            self._connection_conf = self._read_connection()
            self._submit(context)

    def on_kill(self) -> None:
        """End the job: Airflow calls this when the task gets SIGTERM, as in a pod that is evicted or a worker that is shut down."""
        self._told_to_stop = True
        if self._hook is not None:  # without one no job was submitted
            super().on_kill()

    def _read_connection(self) -> dict[str, str]:
        """The settings of Spark in the connection; ConfigurationError when it is missing or cannot be used."""
        try:
            extra = Connection.get(self.spark_conn_id).extra_dejson
        except AirflowNotFoundException as problem:
            # Without this the provider would silently submit to YARN.
            raise ConfigurationError(
                f"there is no Airflow connection {self.spark_conn_id!r}: define it, for example with the environment variable "
                f'AIRFLOW_CONN_{self.spark_conn_id.upper()}=\'{{"conn_type":"spark","host":"local[2]"}}\''
            ) from problem
        if extra.get("deploy-mode") == "cluster":
            raise ConfigurationError(
                f"the Spark connection {self.spark_conn_id!r} has the deploy mode cluster, and only a driver on this machine sees the "
                f"evidence and the credentials of Kafka: use the deploy mode client for {self.job}"
            )
        conf = extra.get("conf") or {}
        if not isinstance(conf, dict) or any(not name.startswith("spark.") or isinstance(each, dict | list) for name, each in conf.items()):
            raise ConfigurationError(
                f"the Spark connection {self.spark_conn_id!r}: conf in its extra must hold settings of Spark by name, for example "
                '{"conf": {"spark.executor.memory": "4g"}}'
            )
        if secrets := sorted(name for name in conf if is_secret(name)):
            raise ConfigurationError(
                f"the Spark connection {self.spark_conn_id!r}: conf in its extra holds {', '.join(secrets)}: the command line of "
                "spark-submit would show it to every user of this machine; "
                "put it into spark-defaults.conf of the Airflow worker (or the environment)"
            )
        return {name: each if isinstance(each, str) else json.dumps(each) for name, each in conf.items()}

    def _submit(self, context: "Context") -> None:
        try:
            super().execute(context)
        except AirflowException as problem:
            if self._told_to_stop:
                raise StoppedError(f"{self.job}: the task was told to stop (SIGTERM), so its Spark job was ended") from problem
            found = re.search(r"Error code is: (-?\d+)", str(problem))
            code = int(found.group(1)) if found else 1
            said = self._last_error or f"{self.job} ended with exit code {code}; the last line of its output: {self._last_line or 'none'}"
            raise _ERRORS.get(code, CollectionError)(said) from problem

    def _get_hook(self) -> SparkSubmitHook:
        hook = super()._get_hook()
        hook._conf = {**hook._conf, **self._connection_conf}
        master = str(hook._connection["master"])
        local = is_local(master)
        if master == "yarn" and not any(os.environ.get(name) for name in _YARN_FOLDERS):
            # spark-submit would end with a stack trace, which says nothing about the variable.
            raise ConfigurationError(
                f"the Spark connection {self.spark_conn_id!r} has the master yarn, and neither {' nor '.join(_YARN_FOLDERS)} is set "
                "where this task runs: set one to the folder with the cluster's yarn-site.xml and core-site.xml"
            )
        if local:
            hook._conf |= {**LOOPBACK_CONF, JAVA_OPTIONS: with_class_data(hook._conf[JAVA_OPTIONS])}
        else:  # otherwise spark.pyspark.python, which is for the executors' machines, would be the driver's Python, too
            hook._conf.setdefault("spark.pyspark.driver.python", sys.executable)
        binary, submit = hook._get_spark_binary_path, hook.submit
        # A task that is killed leaves no job behind, nor does one whose supervisor is: Airflow takes it for failed then, and repeats it.
        hook._get_spark_binary_path = lambda: guarded(binary(), needs=[os.getppid()])  # type: ignore[method-assign]
        hook.submit = partial(submit, env=job_environment(local=local))  # type: ignore[method-assign]
        read = hook._process_spark_submit_log
        self._last_error = self._last_line = ""
        # The provider offers no way to look at the driver's output, which goes to the task log only.
        hook._process_spark_submit_log = lambda itr: read(self._watched(itr))  # type: ignore[method-assign]
        return hook

    def _watched(self, lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            if found := _ERROR_LINE.match(line):
                self._last_error = found.group(1).strip()
            self._last_line = line.strip() or self._last_line
            yield line


class AuditJob(SparkJob):
    """Runs the job on the snapshot and the audit folder of ``plan``."""

    template_fields: Sequence[str] = (*SparkJob.template_fields, "plan")

    def __init__(self, *, plan: Any, **kwargs: Any) -> None:  # noqa: ANN401  (an XComArg until it is rendered)
        super().__init__(**kwargs)
        self.plan = plan

    def execute(self, context: "Context") -> None:
        """Submit the job unless its result is evidence already; a failure is noted where the gate finds it."""
        plan = checked_plan(self.plan, context)
        with audit_step(plan, self.job) as due:
            if due:
                self.application_args = _arguments(plan)
                super().execute(context)


def _arguments(plan: AuditPlan) -> list[str]:
    arguments = ["--snapshot", str(plan.snapshot_dir), "--audit", str(plan.audit.path)]
    if plan.policy_dir:
        arguments += ["--policy", plan.policy_dir]
    for folder in plan.controls_folders:
        arguments += ["--controls", str(folder)]
    return arguments


def job_environment(*, local: bool) -> dict[str, str]:
    """This process's environment without Airflow's own part (connections, database, keys), and with the jobs' package on the path.

    With a local master the job's Python workers run this Python, unless the installation says otherwise. Other machines may not have it at
    this path: their executors run python3, or what PYSPARK_PYTHON or ``spark.pyspark.python`` names.
    """
    kept = {name: value for name, value in os.environ.items() if not name.lstrip("_").startswith("AIRFLOW_") or name == "AIRFLOW_HOME"}
    return with_shipped({**({"PYSPARK_PYTHON": sys.executable} if local else {}), **kept})


def find_spark_submit() -> None:
    """Put spark-submit of this interpreter on the PATH, unless one is there; ConfigurationError when there is none."""
    if shutil.which("spark-submit") is None:
        os.environ["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    if shutil.which("spark-submit") is None:
        raise ConfigurationError("spark-submit is not on the PATH: install pyspark where Airflow runs, or add Spark's bin folder")
