"""The pages over clusters: all of them, one, its audits, the waivers and the matrix of controls by clusters."""

# No "from __future__ import annotations": FastAPI resolves the types of parameters when it builds the routes.
from datetime import datetime, timezone
from typing import Annotated

from airflow.api_fastapi.common.db.common import SessionDep
from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kafka_audit.airflow.web import facts
from kafka_audit.airflow.web.access import AllKnown, Known, MayTrigger, Rights, root
from kafka_audit.airflow.web.answers import page
from kafka_audit.airflow.web.audit_now import audit_now
from kafka_audit.airflow.web.past_audits import past_audits
from kafka_audit.airflow.web.run_states import run_states

router = APIRouter()

Asked = Annotated[str, Query(max_length=200)]


@router.get("/")
def clusters(request: Request, known: AllKnown, session: SessionDep, order: Asked = "") -> Response:
    """All clusters, the worst first or by name: what the menu entry opens."""
    states = run_states(session, (one.unsealed for one in known if one.unsealed))
    return page(request, "clusters.html.j2", **facts.of_clusters(known, states, order))


@router.get("/clusters/{cluster}/")
def cluster(request: Request, known: Known, may_trigger: MayTrigger, session: SessionDep) -> Response:
    """One cluster."""
    states = run_states(session, (one for one in (known.sealed, known.unsealed) if one))
    start = audit_now(known, states) if may_trigger(known.dag_id) else None
    return page(request, "cluster.html.j2", **facts.of_cluster(known, states, start))


@router.get("/clusters/{cluster}/audits/")
def audits_of_a_cluster(request: Request, known: Known, may_read: Rights, session: SessionDep, before: Asked = "") -> Response:
    """The audits of one cluster, newest first; ``before``: only those with a smaller id."""
    shown = past_audits(root(), known.name, may_read, before)
    states = run_states(session, (one.found for one in shown.audits))
    return page(request, "cluster_audits.html.j2", **facts.of_audits(known, shown, states, before))


@router.get("/waivers/")
def waivers(request: Request, known: AllKnown, q: Asked = "") -> Response:
    """The waivers of all clusters, by what is to be done about them."""
    return page(request, "waivers.html.j2", **facts.of_waivers(known, datetime.now(timezone.utc), q))


@router.get("/matrix/")
def controls_by_clusters(request: Request, known: AllKnown, severity: Asked = "", standing: Asked = "") -> Response:
    """How each control stands in the newest audit of each cluster."""
    return page(request, "matrix.html.j2", **facts.of_matrix(known, severity, standing))
