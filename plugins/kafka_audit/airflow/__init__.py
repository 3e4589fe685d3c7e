"""Adapters between an audit and Airflow: tasks, operators, the hook, web pages, an Airflow for one audit.

Besides this room only ``dags/`` and ``kafka_audit_plugin.py`` import Airflow. What an audit does without Airflow belongs in ``audit``.
DAGs of other teams import :func:`require_audit` and :func:`audit_asset` from here.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_audit.airflow.assets import audit_asset
    from kafka_audit.airflow.verdict_gate import require_audit

__all__ = ["audit_asset", "require_audit"]

_OFFERED = {"audit_asset": "assets", "require_audit": "verdict_gate"}


def __getattr__(name: str) -> Any:  # noqa: ANN401  (what is imported)
    """Import what another team's DAG asks for when it does: the command line imports modules of this package without Airflow.

    No module here may have one of these names: Python would put the module in the place of the function.
    """
    if name not in _OFFERED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_OFFERED[name]}"), name)
