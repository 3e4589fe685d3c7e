"""The task of the offsets DAG: takes one offsets snapshot (committed offsets, log starts and log ends) and updates the cluster's asset.

Audits can be scheduled on that asset, or on any other.
"""

from typing import Any

from airflow.sdk import Asset, AssetAlias, get_current_context, task

from kafka_audit.airflow.assets import asset, offsets_asset
from kafka_audit.airflow.retries import final_errors, while_unreachable
from kafka_audit.audit.clusters import DagCluster
from kafka_audit.audit.request import OffsetsRequest, check_request, snapshot_id_of

OFFSETS = AssetAlias("kafka_offsets")
"""The outlet of every offsets snapshot: which cluster's asset it updates is known only when the run's Params are."""


def audit_schedule(one: DagCluster) -> str | list[Asset] | None:
    """When audits of a cluster run by themselves, as Airflow takes it; None when nothing says so.

    ``asset``: after each offsets snapshot of this cluster. A text with ``://``: on updates of the asset of that uri.
    Anything else: a cron expression or preset.
    """
    said = one.audit_schedule
    if said == "asset":
        return [offsets_asset(one.name)]
    return [asset(said)] if said and "://" in said else said


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
