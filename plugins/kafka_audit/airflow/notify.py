"""Tells what is new of a cluster by this installation's settings, for tasks and for deadlines."""

from datetime import datetime, timezone

from kafka_audit.audit.installation import audit_root
from kafka_audit.audit.notification import notifies, notify_settings
from kafka_audit.audit.outcome import why_unsealed
from kafka_audit.errors import IntegrityError
from kafka_audit.safe_text import visible
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sealed import AUDIT

_LOOKED_AT = 20
"""How many of the newest audits are looked through for that of a run."""


def tell_now(cluster: str, *, failed: str = "") -> dict[str, list[str]]:
    """Tell what is new of a cluster, as :func:`kafka_audit.airflow.telling.tell` does."""
    from kafka_audit.airflow.telling import tell  # noqa: PLC0415 - pyarrow, Apprise and the providers: not at DAG parse

    return tell(EvidenceRoot(path=audit_root()), cluster, notify_settings(), now=datetime.now(timezone.utc), failed=failed)


def deadline_missed(dag_id: str, run_id: str, cluster: str) -> None:
    """Tell that a run did not start or finish in time (kafka_audit.airflow.deadlines).

    Nothing is told if nobody is to be told (``KAFKA_AUDIT_NOTIFY``), or if the run's audit is sealed by now. Errors as of :func:`tell_now`.
    """
    if not notifies():
        return
    root = EvidenceRoot(path=audit_root())
    made = next((one for one in root.ids(cluster, AUDIT)[:_LOOKED_AT] if _is_of(root, cluster, one, dag_id, run_id)), None)
    if made is not None and not why_unsealed(root.audit(cluster, made)):
        return
    tell_now(cluster, failed=f"audit {made or 'without a folder'} of run {visible(run_id)[:100]} has missed its deadline")


def _is_of(root: EvidenceRoot, cluster: str, audit_id: str, dag_id: str, run_id: str) -> bool:
    try:
        run = root.audit(cluster, audit_id).run()
    except IntegrityError:  # whose it is cannot be told
        return False
    return (run.get("dag_id"), run.get("run_id")) == (dag_id, run_id)
