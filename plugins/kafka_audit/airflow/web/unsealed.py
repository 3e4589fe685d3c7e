"""What is said of an audit that is not sealed."""

from collections.abc import Mapping

from kafka_audit.audit.listing import FoundAudit

_RUNNING = frozenset({"queued", "running"})
RunStates = Mapping[tuple[str, str], str]
"""The states of runs by DAG and run, as Airflow has them; runs that it does not know are absent."""


def of_unsealed(audit: FoundAudit, states: RunStates) -> str:
    """Whether the audit runs still or was cut short, as a sentence."""
    state = states.get((audit.dag_id, audit.run_id))
    if state is None:
        return f"Audit {audit.audit_id} is not sealed: it runs still, or was cut short. Airflow has no run of it."
    if state in _RUNNING:
        return f"Audit {audit.audit_id} is running."
    return f"Audit {audit.audit_id} was cut short: its run ended ({state}) before the audit was sealed."
