"""What an Airflow process of this project reads from its environment: the audit folder, the project and retries."""

import os
from pathlib import Path

from kafka_audit.errors import ConfigurationError

ROOT_VARIABLE = "KAFKA_AUDIT_ROOT"
HOME_VARIABLE = "KAFKA_AUDIT_HOME"
POLICY_VARIABLE = "KAFKA_AUDIT_POLICY"
RETRIES_VARIABLE = "KAFKA_AUDIT_SNAPSHOT_RETRIES"


def audit_root() -> Path:
    """The folder of all evidence and audits: ``KAFKA_AUDIT_ROOT``, else ``audit-root`` beside ``AIRFLOW_HOME``.

    Every Airflow component that runs or shows audits must see the same folder.
    """
    named = os.environ.get(ROOT_VARIABLE)
    if named:
        return Path(named).resolve()
    return Path(os.environ.get("AIRFLOW_HOME", "~/airflow")).expanduser().resolve().parent / "audit-root"


def policy_folder() -> Path | None:
    """The installation's policy: the folder that ``KAFKA_AUDIT_POLICY`` names; None when it is not set.

    ConfigurationError (exit 2) when it is no absolute path of a folder.
    """
    named = os.environ.get(POLICY_VARIABLE)
    if not named:
        return None
    if not Path(named).is_absolute() or not Path(named).is_dir():
        raise ConfigurationError(f"{POLICY_VARIABLE}={named}: write the absolute path of a folder with tiers.yaml and slas.yaml")
    return Path(named)


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
