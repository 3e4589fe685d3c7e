"""Who may see what: a cluster is shown to those who may read runs of its audit DAG, and is answered as unknown (404) to all others."""

# No "from __future__ import annotations": FastAPI resolves the types of dependencies when it builds the routes.
import logging
from datetime import datetime, timezone
from functools import cache
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException

from kafka_audit.airflow.web.newest import Cluster, own_dags, read_cluster, read_clusters
from kafka_audit.audit.clusters import DagCluster, dag_clusters
from kafka_audit.audit.installation import audit_root, stale_after
from kafka_audit.audit.listing import FoundAudit, MayRead, find_audit, has_readable_audit, may_read_newest, readable_clusters
from kafka_audit.errors import ConfigurationError
from kafka_audit.store.layout import EvidenceRoot

log = logging.getLogger(__name__)

User = Annotated[BaseUser, Depends(get_user)]


def root() -> EvidenceRoot:
    """The audit folder of this installation."""
    return EvidenceRoot(path=audit_root())


def rights(user: User) -> MayRead:
    """Whether the person who asks may read runs of a DAG; remembered for this request."""

    @cache
    def may_read(dag_id: str) -> bool:
        dag = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
        return get_auth_manager().is_authorized_dag(method="GET", access_entity=DagAccessEntity.RUN, details=dag, user=user)

    return may_read


Rights = Annotated[MayRead, Depends(rights)]


def asked_audit(cluster: str, audit_id: str, may_read: Rights) -> FoundAudit:
    """The audit that an address names; 404 when there is none, or the person may not read it."""
    found = find_audit(root(), cluster, audit_id, may_read)
    if found is None:
        raise HTTPException(status_code=404, detail="there is no such audit")
    return found


AskedAudit = Annotated[FoundAudit, Depends(asked_audit)]


def configured_clusters() -> list[DagCluster]:
    """The clusters that have DAGs by the settings of this process; none if these cannot be used, which the DAGs' import errors say."""
    try:
        return dag_clusters()
    except ConfigurationError as problem:
        log.warning("only clusters with audits are listed: %s", problem)
        return []


def clusters(may_read: Rights) -> list[str]:
    """The clusters that the person may read, by name: by their DAG, or because there is an audit of them that the person may read.

    The right to read the DAG of an installation that lists no clusters is a right to its audits, not to the names of all clusters.
    """
    own = own_dags(configured_clusters(), may_read)
    return [one for one in readable_clusters(root(), may_read) if one in own or has_readable_audit(root(), one, may_read)]


Clusters = Annotated[list[str], Depends(clusters)]


def measured_clusters(may_read: Rights, readable: Clusters) -> list[str]:
    """The clusters that the person may read, without those whose newest audit, of which metrics are made, the person may not read."""
    return [one for one in readable if may_read_newest(root(), one, may_read)]


MeasuredClusters = Annotated[list[str], Depends(measured_clusters)]


def asked_cluster(cluster: str, readable: Clusters) -> str:
    """The cluster that an address names; 404 when there is none, or the person may not read it."""
    if cluster not in readable:
        raise HTTPException(status_code=404, detail="there is no such cluster")
    return cluster


AskedCluster = Annotated[str, Depends(asked_cluster)]


def may_trigger(user: User) -> MayRead:
    """Whether the person who asks may start runs of a DAG."""

    def may(dag_id: str) -> bool:
        dag = DagDetails(id=dag_id, team_name=DagModel.get_team_name(dag_id))
        return get_auth_manager().is_authorized_dag(method="POST", access_entity=DagAccessEntity.RUN, details=dag, user=user)

    return may


MayTrigger = Annotated[MayRead, Depends(may_trigger)]


def all_known(may_read: Rights) -> list[Cluster]:
    """What is known of each cluster that the person may read, by name."""
    return read_clusters(root(), may_read, configured_clusters(), datetime.now(timezone.utc))


AllKnown = Annotated[list[Cluster], Depends(all_known)]


def known(cluster: str, may_read: Rights) -> Cluster:
    """What is known of the cluster that an address names; 404 when there is none, or the person may read nothing of it."""
    own = own_dags(configured_clusters(), may_read).get(cluster)
    found = None
    if own or cluster in readable_clusters(root(), may_read):
        found = read_cluster(root(), cluster, may_read, dag_id=own, now=datetime.now(timezone.utc), limit=stale_after())
    if found is None:
        raise HTTPException(status_code=404, detail="there is no such cluster")
    return found


Known = Annotated[Cluster, Depends(known)]
