"""The environment of an Airflow that exists only to run one audit: its own home, its own SQLite database, no services."""

import json
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kafka_audit.audit.clusters import CLUSTER_VARIABLE, CLUSTERS_VARIABLE
from kafka_audit.audit.installation import (
    CONTROLS_VARIABLE,
    FINISH_VARIABLE,
    POLICY_VARIABLE,
    POOL_VARIABLE,
    RETRIES_VARIABLE,
    ROOT_VARIABLE,
    SHARDS_VARIABLE,
    START_VARIABLE,
)
from kafka_audit.audit.notification import NOTIFY_VARIABLE
from kafka_audit.audit.review_settings import ON_FAIL_VARIABLE
from kafka_audit.errors import ConfigurationError
from kafka_audit.shipped import shipped_folder
from kafka_audit.store.mirrors import root_name

_MOST_CORES = 4
_PATIENCE_SECONDS = 120
_PATIENCE = {
    # A machine that is busy answers late. With Airflow's own limits (5 seconds for an answer of the API server, 30 for reading a DAG file)
    # a task fails there before it begins, without a word of why in its log.
    "AIRFLOW__WORKERS__EXECUTION_API_TIMEOUT": str(_PATIENCE_SECONDS),
    "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "12",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "10",
    "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": str(_PATIENCE_SECONDS),
    "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": str(2 * _PATIENCE_SECONDS),
}
_NOT_INSTALLED = Path(__file__).parent / "not_installed"
"""Modules that fail to import, in place of packages whose import takes seconds and that no process here uses."""


def airflow_home(root: Path) -> Path:
    """The Airflow home that belongs to an audit folder: ``.airflow`` beside it."""
    return root.parent / ".airflow"


def audit_environment(*, root: Path, connection: Mapping[str, Any] | None) -> dict[str, str]:
    """The environment variables of the run.

    ``connection``: librdkafka-style keys, which become the connection ``kafka_default``; None defines none.
    Airflow settings and connections of the caller's own environment are left out, so that nobody's real database is touched;
    a connection ``spark_default`` of the caller's is kept, to run the jobs on a Spark cluster.
    """
    home = airflow_home(root)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("AIRFLOW__", "AIRFLOW_CONN_", "AIRFLOW_VAR_"))}
    spark = os.environ.get("AIRFLOW_CONN_SPARK_DEFAULT")
    if not spark:
        spark = json.dumps({"conn_type": "spark", "host": f"local[{min(os.cpu_count() or 1, _MOST_CORES)}]"})
        environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": environment.get("SPARK_LOCAL_IP", "127.0.0.1")}
    environment |= {
        "AIRFLOW_HOME": str(home),
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"sqlite:///{home / 'airflow.db'}?timeout={_PATIENCE_SECONDS}",
        "AIRFLOW__CORE__DAGS_FOLDER": str(shipped_folder("dags")),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        **_PATIENCE,
        "AIRFLOW__LOGGING__BASE_LOG_FOLDER": str(home / "logs"),
        # Signs only the calls of this one process to itself.
        "AIRFLOW__API_AUTH__JWT_SECRET": secrets.token_hex(64),
        "AIRFLOW_CONN_SPARK_DEFAULT": spark,
        "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath))),
        "PYTHONPATH": os.pathsep.join(filter(None, (str(_NOT_INSTALLED), os.environ.get("PYTHONPATH")))),
        "PYTHONUNBUFFERED": "1",
        ROOT_VARIABLE: root_name(root),
        # A person waits for the answer: an unreachable cluster is told at once, not after minutes of retries.
        RETRIES_VARIABLE: os.environ.get(RETRIES_VARIABLE) or "0",
        # The tasks of this run follow one another: splitting a snapshot over several would only cost.
        SHARDS_VARIABLE: "1",
        # Nothing here looks at deadlines, and a run in one process cannot have them (deadlines.py).
        START_VARIABLE: "0",
        FINISH_VARIABLE: "0",
    }
    if connection is not None:
        environment["AIRFLOW_CONN_KAFKA_DEFAULT"] = json.dumps({"conn_type": "kafka", "extra": dict(connection)})
    return environment


def chosen(*, cluster: str, policy: Path | None, controls: Sequence[Path]) -> dict[str, str]:
    """The environment variables that make one person's choice of cluster, policy and controls that of an Airflow of their own.

    In an installation that people share, the environment fixes them for everyone who may start a run. None and an empty list are the
    shipped policy and no further controls. Nobody is notified: whoever runs it sees the result. ConfigurationError when a folder is none.
    """
    for option, folder in [*([("--policy", policy)] if policy else []), *(("--controls", folder) for folder in controls)]:
        if not folder.is_dir():
            raise ConfigurationError(f"{option}: there is no folder {folder}")
    return {
        ON_FAIL_VARIABLE: "",  # this run ends with its command: a person who is asked could answer nowhere
        CLUSTERS_VARIABLE: "",
        POOL_VARIABLE: "",
        CLUSTER_VARIABLE: cluster,
        NOTIFY_VARIABLE: "",
        POLICY_VARIABLE: str(policy.resolve()) if policy else "",
        CONTROLS_VARIABLE: os.pathsep.join(str(folder.resolve()) for folder in controls),
    }
