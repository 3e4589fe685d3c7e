"""Adapters between an audit and Airflow: tasks, operators, the hook, web pages, an Airflow for one audit.

Only this room imports Airflow. What an audit does without Airflow belongs in ``audit``. DAG files import from here :func:`audit_dags`,
and those of other teams :func:`require_audit` and :func:`audit_asset`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_audit.airflow.assets import audit_asset
    from kafka_audit.airflow.dags.factory import audit_dags
    from kafka_audit.airflow.verdict_gate import require_audit

__all__ = ["audit_asset", "audit_dags", "require_audit"]

_OFFERED = {"audit_asset": "assets", "audit_dags": "dags.factory", "require_audit": "verdict_gate"}


def __getattr__(name: str) -> Any:  # noqa: ANN401  (what is imported)
    """Import what a DAG file asks for when it does: the command line imports modules of this package without Airflow.

    No module here may have one of these names: Python would put the module in the place of the function.
    """
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_OFFERED[name]}"), name)
