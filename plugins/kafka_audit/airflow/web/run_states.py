"""Asks Airflow which runs of audits it has, and their states."""

from collections.abc import Iterable

from airflow.models.dagrun import DagRun
from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from kafka_audit.airflow.web.unsealed import RunStates
from kafka_audit.audit.listing import FoundAudit


def run_states(session: Session, audits: Iterable[FoundAudit]) -> RunStates:
    """The state of each of the runs that Airflow knows, by DAG and run, in one query."""
    asked = [(one.dag_id, one.run_id) for one in audits]
    if not asked:
        return {}
    rows = session.execute(select(DagRun.dag_id, DagRun.run_id, DagRun.state).where(tuple_(DagRun.dag_id, DagRun.run_id).in_(asked)))
    return {(dag_id, run_id): str(getattr(state, "value", state)) for dag_id, run_id, state in rows}
