"""The task of the offsets DAG: takes one offsets snapshot (committed offsets, log starts and log ends)."""

from typing import Any

from airflow.sdk import get_current_context, task

from kafka_audit.airflow.assets import OFFSETS, offsets_asset
from kafka_audit.airflow.retries import final_errors, while_unreachable
from kafka_audit.audit.plan import snapshot_id_of
from kafka_audit.audit.request import OffsetsRequest, check_request


@task(outlets=[OFFSETS], **while_unreachable(), multiple_outputs=False)
def snapshot_offsets() -> dict[str, Any]:
    """Read the cluster into a sealed offsets snapshot and update the cluster's asset; one that is already there is verified and kept."""
    from kafka_audit.airflow.offsets_snapshot import counted_snapshot  # noqa: PLC0415 - kafka-python and pyarrow: not at DAG parse

    context = get_current_context()
    dag_run = context["dag_run"]
    with final_errors():
        request = check_request(OffsetsRequest, dag_run.dag_id, context["params"], dag_run.conf)
        snapshot_id = snapshot_id_of(dag_run.dag_id, dag_run.run_id, dag_run.run_after)
        counts = counted_snapshot(request, snapshot_id)
    said: dict[str, Any] = {"cluster": request.cluster, "snapshot_id": snapshot_id, **counts}
    context["outlet_events"][OFFSETS].add(offsets_asset(request.cluster), extra=said)
    return said
