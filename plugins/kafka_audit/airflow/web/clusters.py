"""The pages over clusters: all of them, one, its audits, the waivers and the matrix of controls by clusters."""

# No "from __future__ import annotations": FastAPI resolves the types of parameters when it builds the routes.
from datetime import datetime, timedelta, timezone
from typing import Annotated, Any

from airflow.api_fastapi.common.db.common import SessionDep
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kafka_audit.airflow.links import trigger_link
from kafka_audit.airflow.web.access import AllKnown, Known, MayTrigger, Rights, root
from kafka_audit.airflow.web.answers import page
from kafka_audit.airflow.web.availability_chart import availability_chart
from kafka_audit.airflow.web.matrix import matrix
from kafka_audit.airflow.web.newest import stale_after
from kafka_audit.airflow.web.past_audits import past_audits
from kafka_audit.airflow.web.run_states import run_states
from kafka_audit.airflow.web.unsealed import of_unsealed
from kafka_audit.airflow.web.waiver_lists import expiring_of, waiver_lists
from kafka_audit.report.fleet.states import STATES
from kafka_audit.report.tally import SEVERITIES
from kafka_audit.report.trend_charts import coverage_chart, failures_chart

router = APIRouter()

Asked = Annotated[str, Query(max_length=200)]


@router.get("/")
def clusters(request: Request, known: AllKnown, session: SessionDep, order: Asked = "") -> Response:
    """All clusters, the worst first or by name: what the menu entry opens."""
    states = run_states(session, (one.unsealed for one in known if one.unsealed))
    listed = sorted(known, key=lambda one: (0, False, one.name) if order == "name" else one.order)
    begun = {one.name: of_unsealed(one.unsealed, states) for one in listed if one.unsealed}
    return page(request, "clusters.html.j2", clusters=listed, begun=begun, order=order, limit=stale_after(), severities=SEVERITIES)


@router.get("/clusters/{cluster}/")
def cluster(request: Request, known: Known, may_trigger: MayTrigger, session: SessionDep) -> Response:
    """One cluster."""
    trend = known.overview.trend if known.overview else ()
    states = run_states(session, [known.unsealed] if known.unsealed else [])
    like_run = known.sealed.run_id if known.sealed and known.sealed.dag_id == known.dag_id else None
    return page(
        request,
        "cluster.html.j2",
        cluster=known,
        begun=of_unsealed(known.unsealed, states) if known.unsealed else "",
        audit_now=trigger_link(known.dag_id, like_run) if may_trigger(known.dag_id) else None,
        charts=[chart for chart in (failures_chart(trend), coverage_chart(trend), availability_chart(trend)) if chart] if trend else [],
        expiring=expiring_of(known),
        foreseen=lambda ms: _foreseen(known.audited_at, ms),
        severities=SEVERITIES,
        states={state.id: state for state in STATES},
    )


def _foreseen(at: datetime | None, milliseconds: int) -> datetime | None:
    """When a loss is foreseen, from the time of the evidence; None beyond the calendar."""
    try:
        return at + timedelta(milliseconds=milliseconds) if at else None
    except OverflowError:
        return None


@router.get("/clusters/{cluster}/audits/")
def audits_of_a_cluster(request: Request, known: Known, may_read: Rights, session: SessionDep, before: Asked = "") -> Response:
    """The audits of one cluster, newest first; ``before``: only those with a smaller id."""
    shown = past_audits(root(), known.name, may_read, before)
    states = run_states(session, (one.found for one in shown.audits if one.overview is None and not one.problem))
    begun = {one.found.audit_id: of_unsealed(one.found, states) for one in shown.audits if one.overview is None and not one.problem}
    return page(request, "cluster_audits.html.j2", cluster=known, shown=shown, before=before, begun=begun, severities=SEVERITIES)


@router.get("/waivers/")
def waivers(request: Request, known: AllKnown, q: Asked = "") -> Response:
    """The waivers of all clusters, by what is to be done about them."""
    lists = waiver_lists(known, datetime.now(timezone.utc), q)
    cut = [one for one in known if one.overview and one.overview.waiver_count > len(one.overview.waivers)]
    return page(request, "waivers.html.j2", lists=lists, asked=q, clusters=known, cut=cut)


@router.get("/matrix/")
def controls_by_clusters(request: Request, known: AllKnown, severity: Asked = "", standing: Asked = "") -> Response:
    """How each control stands in the newest audit of each cluster."""
    severity = severity if severity in SEVERITIES else ""
    standing = standing if standing in {state.id for state in STATES} else ""
    rows = matrix(known, severity=severity, standing=standing)
    asked: dict[str, Any] = {"severity": severity, "standing": standing}
    return page(request, "matrix.html.j2", clusters=known, rows=rows, severities=SEVERITIES, states=STATES, **asked)
