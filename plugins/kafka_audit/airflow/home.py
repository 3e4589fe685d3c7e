"""What an Airflow process of this project reads from its environment: the audit folder, the project and retries."""

import os
from pathlib import Path

from kafka_audit.errors import ConfigurationError

ROOT_VARIABLE = "KAFKA_AUDIT_ROOT"
HOME_VARIABLE = "KAFKA_AUDIT_HOME"
RETRIES_VARIABLE = "KAFKA_AUDIT_SNAPSHOT_RETRIES"


def audit_root() -> Path:
    """The folder of all evidence and audits: ``KAFKA_AUDIT_ROOT``, else ``audit-root`` beside ``AIRFLOW_HOME``.

    Every Airflow component that runs or shows audits must see the same folder.
    """
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        return Path(named).resolve()
    return Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser().resolve().parent / "audit-root"


def snapshot_retries() -> int:
    """How often an unreachable cluster is tried again: ``KAFKA_AUDIT_SNAPSHOT_RETRIES``, else 2."""
    return int(os.environ.get(RETRIES_VARIABLE, "2"))


def project_home() -> Path:
    """The checkout that holds ``dags/`` and ``plugins/``: ``KAFKA_AUDIT_HOME``, else the one this package was installed from.

    ConfigurationError (exit 2) when it has no DAG of ours.
    """
    named = os.environ.get(HOME_VARIABLE)
    home = Path(named).resolve() if named else Path(__file__).resolve().parents[3]
    if not (home / "dags" / "kafka_reliability_audit.py").is_file():
        raise ConfigurationError(
            f"{home} holds no dags/kafka_reliability_audit.py: set {HOME_VARIABLE} to a checkout of this project, "
            "or install it with pip install -e"
        )
    return home
