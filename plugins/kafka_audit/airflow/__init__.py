"""Adapters between an audit and Airflow: tasks, operators, the hook, web pages, an Airflow for one audit.

Besides this room only ``dags/`` and ``kafka_audit_plugin.py`` import Airflow. What an audit does without Airflow belongs in ``audit``.
DAGs of other teams import :func:`require_audit` and :func:`audit_asset` from here.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kafka_audit.airflow.assets import audit_asset
    from kafka_audit.airflow.verdict_gate import require_audit

__all__ = ["audit_asset", "require_audit"]


def __getattr__(name: str) -> Any:  # noqa: ANN401  (what is imported)
    """Import what another team's DAG asks for, at that moment: modules of this package that need no Airflow must not load it."""
    if name == "require_audit":
        from kafka_audit.airflow.verdict_gate import require_audit  # noqa: PLC0415 - see above

        return require_audit
    if name == "audit_asset":
        from kafka_audit.airflow.assets import audit_asset  # noqa: PLC0415 - see above

        return audit_asset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
