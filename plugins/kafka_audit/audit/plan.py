"""The plan of one audit run: what was asked, and the ids and folders that every later task uses."""

from datetime import datetime
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from kafka_audit.audit.request import AuditRequest
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot, new_id


class AuditPlan(AuditRequest):
    """A checked request with its ids; small enough to be the XCom that ties the tasks together."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    root: str
    audit_id: str
    snapshot_id: str
    dag_id: str
    run_id: str

    @property
    def evidence_root(self) -> EvidenceRoot:
        return EvidenceRoot(path=Path(self.root))

    @property
    def audit(self) -> Audit:
        return self.evidence_root.audit(self.cluster, self.audit_id)

    @property
    def snapshot(self) -> Snapshot | None:
        """The sealed snapshot; None while there is none."""
        return self.evidence_root.find_snapshot(self.cluster, self.snapshot_id)

    @property
    def snapshot_dir(self) -> Path:
        return self.evidence_root.snapshot_dir(self.cluster, self.snapshot_id)

    def request(self) -> dict[str, Any]:
        """The request alone, as JSON values, for ``run.json``."""
        return self.model_dump(mode="json", include=set(AuditRequest.model_fields))


def audit_id_of(dag_id: str, run_id: str, run_after: datetime) -> str:
    """The id of the audit that a DAG run makes."""
    return new_id(run_after, f"audit:{dag_id}/{run_id}")


def snapshot_id_of(dag_id: str, run_id: str, run_after: datetime) -> str:
    """The id of the snapshot, or offsets snapshot, that a DAG run takes."""
    return new_id(run_after, f"snapshot:{dag_id}/{run_id}")


def make_plan(request: AuditRequest, *, root: Path, dag_id: str, run_id: str, run_after: datetime) -> AuditPlan:
    """Give a run its ids. The same run always gets the same ids, so that a cleared task finds its own folders again.

    ``run_after`` is the run's own time: unlike its start date, Airflow does not change it when tasks are cleared.
    """
    return AuditPlan(
        **request.model_dump(),
        root=str(root),
        audit_id=audit_id_of(dag_id, run_id, run_after),
        snapshot_id=snapshot_id_of(dag_id, run_id, run_after),
        dag_id=dag_id,
        run_id=run_id,
    )
