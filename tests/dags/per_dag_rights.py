"""An auth manager that grants rights per DAG, as companies use; Airflow's simple auth manager grants rights on all DAGs or none."""

from typing import Any

from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.auth.managers.simple.simple_auth_manager import SimpleAuthManager
from granted_runs import GRANTED


class PerDagRights(SimpleAuthManager):
    """A viewer sees the runs of the DAGs that GRANTED names; the details of a DAG without its runs are everyone's."""

    def is_authorized_dag(self, *, method: Any, user: Any, access_entity: Any = None, details: Any = None) -> bool:
        if not super().is_authorized_dag(method=method, user=user, access_entity=access_entity, details=details):
            return False
        return access_entity is not DagAccessEntity.RUN or (details is not None and details.id in GRANTED[user.username])
