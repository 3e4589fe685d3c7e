"""Alerts for audits that do not start or do not finish in time, by Airflow's deadlines.

Airflow 3.3.2 counts a deadline from when a run was queued. It deletes deadlines of a run that succeeded, but not those of one that
failed or that has started: each function here looks at the run before it tells anyone. Both run in the triggerer, which has room while
all workers are busy.
"""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from airflow.sdk.definitions.callback import AsyncCallback
from airflow.sdk.definitions.deadline import DeadlineAlert, DeadlineReference

from kafka_audit.airflow import notify
from kafka_audit.audit.clusters import cluster_of_dag
from kafka_audit.audit.installation import finish_minutes, start_minutes
from kafka_audit.audit.notification import notifies

_OVER = frozenset({"success", "failed"})

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class MissedDeadline:
    """A run that is late: it was queued at ``queued_at`` (ISO 8601) and has not ``started`` or ``finished`` (``what``) in ``minutes``."""

    dag_id: str
    run_id: str
    state: str
    queued_at: str
    what: str
    minutes: int

    def __str__(self) -> str:
        return (
            f"The run {self.run_id} of {self.dag_id} has not {self.what} within {self.minutes} minutes: "
            f"it was queued at {self.queued_at} and is {self.state}"
        )


def audit_deadlines(*, reviewed: bool) -> list[DeadlineAlert]:
    """The deadlines of an audit DAG, from ``KAFKA_AUDIT_START_WITHIN`` and ``KAFKA_AUDIT_FINISH_WITHIN``; none if both are 0.

    ``reviewed``: failed audits wait for a person. Then a run may go on for days after its audit has ended, so there is no deadline for the
    end of runs.

    A run of a DAG with deadlines cannot end as passed in ``dag.test()`` or ``airflow dags test`` of Airflow 3.3.2, which looks for them in
    the database and has not stored them there: set both to 0 for such a run, as the command ``kafka-audit audit`` does.
    """
    wanted = (
        (start_minutes(), tell_if_not_started, "audit started in time"),
        (0 if reviewed else finish_minutes(), tell_if_not_finished, "audit finished in time"),
    )
    return [
        DeadlineAlert(
            reference=DeadlineReference.DAGRUN_QUEUED_AT,
            interval=timedelta(minutes=minutes),
            callback=AsyncCallback(callback, kwargs={"minutes": minutes}),
            name=name,
        )
        for minutes, callback, name in wanted
        if minutes
    ]


async def tell_if_not_started(*, context: Mapping[str, Any], minutes: int) -> None:
    """Airflow calls this when a run was queued ``minutes`` ago: tell of it unless it has started."""
    if not context["dag_run"].get("start_date"):
        await asyncio.to_thread(deadline_missed, _missed(context, "started", minutes))


async def tell_if_not_finished(*, context: Mapping[str, Any], minutes: int) -> None:
    """Airflow calls this when a run was queued ``minutes`` ago: tell of it unless it is over, whatever its verdict."""
    if context["dag_run"].get("state") not in _OVER:
        await asyncio.to_thread(deadline_missed, _missed(context, "finished", minutes))


def deadline_missed(missed: MissedDeadline) -> None:
    """Tell people that a run is late: one line at ERROR in the triggerer's log, and a message where ``KAFKA_AUDIT_NOTIFY`` is set.

    It runs in a thread of its own and may wait for a network.
    """
    log.error("%s", missed)
    if notifies():
        notify.deadline_missed(missed.dag_id, missed.run_id, cluster_of_dag(missed.dag_id).name)


def _missed(context: Mapping[str, Any], what: str, minutes: int) -> MissedDeadline:
    run = context["dag_run"]
    return MissedDeadline(
        dag_id=str(run.get("dag_id")),
        run_id=str(run.get("dag_run_id") or run.get("run_id")),
        state=str(run.get("state")),
        queued_at=str(run.get("queued_at")),
        what=what,
        minutes=minutes,
    )
