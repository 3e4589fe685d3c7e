"""Who may see what: a cluster is shown to those who may read runs of its audit DAG, and is answered as unknown (404) to all others."""

# No "from __future__ import annotations": FastAPI resolves the types of dependencies when it builds the routes.
from functools import cache
from typing import Annotated

from airflow.api_fastapi.app import get_auth_manager
from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity, DagDetails
from airflow.api_fastapi.core_api.security import get_user
from airflow.models.dag import DagModel
from fastapi import Depends, HTTPException

from kafka_audit.audit.installation import audit_root
from kafka_audit.audit.listing import FoundAudit, MayRead, find_audit, readable_clusters
from kafka_audit.store.layout import EvidenceRoot

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


def clusters(may_read: Rights) -> list[str]:
    """The clusters that the person may read, by name."""
    return readable_clusters(root(), may_read)


Clusters = Annotated[list[str], Depends(clusters)]


def asked_cluster(cluster: str, readable: Clusters) -> str:
    """The cluster that an address names; 404 when there is none, or the person may not read it."""
    if cluster not in readable:
        raise HTTPException(status_code=404, detail="there is no such cluster")
    return cluster


AskedCluster = Annotated[str, Depends(asked_cluster)]
