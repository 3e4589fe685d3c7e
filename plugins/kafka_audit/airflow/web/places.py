"""The routes of the pages of groups, controls and topics of a cluster."""

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import Response

from kafka_audit.airflow.web.access import AskedCluster, Clusters, Rights, root
from kafka_audit.airflow.web.answers import page, way_up
from kafka_audit.airflow.web.asked import Answer, Asked
from kafka_audit.airflow.web.group_pages import group_page, groups_page
from kafka_audit.airflow.web.place_pages import control_page, topic_page

router = APIRouter(prefix="/clusters/{cluster}")

LONGEST = 40_000
"""The longest name in an address: a group id may have 32,767 bytes."""
MOST_ROWS = 100_000_000

Name = Annotated[str, Query(max_length=LONGEST)]
Start = Annotated[int, Query(alias="from", ge=0, le=MOST_ROWS)]


@router.get("/groups/")
def groups(
    *,
    request: Request,
    cluster: AskedCluster,
    may_read: Rights,
    q: Name = "",
    status: Name = "",
    sort: Name = "place",
    order: Name = "",
    audit: Name = "",
    start: Start = 0,
) -> Response:
    """All groups of a cluster."""
    asked = Asked(root=root(), cluster=cluster, may_read=may_read, up=way_up(request), audit=audit, start=start)
    return _rendered(request, groups_page(asked, text=q, status=status, sort=sort, order=order))


@router.get("/groups/one")
def group(request: Request, cluster: AskedCluster, may_read: Rights, id: Name) -> Response:
    """One group; ids are free text, so they are no part of a path."""
    return _rendered(request, group_page(Asked(root=root(), cluster=cluster, may_read=may_read, up=way_up(request)), id))


@router.get("/controls/{control_id}")
def control(
    *, request: Request, cluster: AskedCluster, may_read: Rights, control_id: str, readable: Clusters, audit: Name = "", start: Start = 0
) -> Response:
    """One control."""
    others = tuple(one for one in readable if one != cluster)
    asked = Asked(root=root(), cluster=cluster, may_read=may_read, up=way_up(request), audit=audit, start=start, others=others)
    return _rendered(request, control_page(asked, control_id))


@router.get("/topics/one")
def topic(request: Request, cluster: AskedCluster, may_read: Rights, name: Name) -> Response:
    """One topic."""
    return _rendered(request, topic_page(Asked(root=root(), cluster=cluster, may_read=may_read, up=way_up(request)), name))


def _rendered(request: Request, answer: Answer) -> Response:
    return page(request, answer.template, status_code=answer.status_code, **answer.facts)
