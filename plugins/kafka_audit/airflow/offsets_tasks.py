"""The task of the offsets DAG: takes one offsets snapshot (committed offsets, log starts and log ends)."""

import logging
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from airflow.sdk import task
from airflow.sdk.exceptions import AirflowFailException

from kafka_audit.airflow.assets import OFFSETS, offsets_asset
from kafka_audit.airflow.retries import final_errors, while_unreachable
from kafka_audit.audit.installation import audit_root
from kafka_audit.audit.plan import snapshot_id_of
from kafka_audit.audit.request import OffsetsRequest, check_request
from kafka_audit.lag.position import position_counts

if TYPE_CHECKING:
    from airflow.sdk.execution_time.context import OutletEventAccessors
    from airflow.sdk.types import DagRunProtocol

    from kafka_audit.store.layout import Snapshot

log = logging.getLogger(__name__)


@task(outlets=[OFFSETS], **while_unreachable(), multiple_outputs=False)
def snapshot_offsets(
    params: dict[str, Any] | None = None,
    dag_run: "DagRunProtocol | None" = None,
    outlet_events: "OutletEventAccessors | None" = None,
) -> dict[str, Any]:
    """Read the cluster into a sealed offsets snapshot and update the cluster's asset; one that is already there is verified and kept."""
    if params is None or dag_run is None or outlet_events is None:
        raise AirflowFailException("this task runs only as part of a DAG run")
    from kafka_audit.airflow.hook import KafkaAuditHook  # noqa: PLC0415  (heavy)
    from kafka_audit.collect.scope import Scope  # noqa: PLC0415  (heavy)
    from kafka_audit.collect.snapshot import take_snapshot  # noqa: PLC0415  (heavy)
    from kafka_audit.policy import load_policy  # noqa: PLC0415  (heavy)
    from kafka_audit.store.layout import OFFSETS as OFFSETS_SNAPSHOT  # noqa: PLC0415  (pyarrow: not at DAG parse)
    from kafka_audit.store.layout import EvidenceRoot, Snapshot  # noqa: PLC0415  (pyarrow: not at DAG parse)

    with final_errors():
        request = check_request(OffsetsRequest, dag_run.dag_id, params, dag_run.conf)
        snapshot_id = snapshot_id_of(dag_run.dag_id, dag_run.run_id, dag_run.run_after)
        taken = take_snapshot(
            kind=OFFSETS_SNAPSHOT,
            settings=KafkaAuditHook(request.kafka_conn_id).get_settings(),
            root=EvidenceRoot(path=audit_root()),
            cluster=request.cluster,
            snapshot_id=snapshot_id,
            scope=Scope.from_text(topics=request.topics, groups=request.groups),
            policy=load_policy(request.policy_folder),
            now=lambda: datetime.now(timezone.utc),
            progress=log.info,
        )
        counts = _counts(Snapshot.verified(taken.path))
    said: dict[str, Any] = {"cluster": request.cluster, "snapshot_id": snapshot_id, **counts}
    outlet_events[OFFSETS].add(offsets_asset(request.cluster), extra=said)
    return said


def _counts(taken: "Snapshot") -> dict[str, Any]:
    """How many groups there are, and in how many of their partitions one is behind, has lost records or stands beyond the log end.

    ``unknown``: with a commit, but could not be told. ``errors`` are the snapshot's own, by dataset: what they hide is in no other count.
    """
    from pyarrow.parquet import read_metadata  # noqa: PLC0415  (not at DAG parse)

    logs = {
        (topic, partition): (start, end)
        for topic, partition, start, end in _rows(taken, "offsets", "topic", "partition", "log_start", "log_end")
    }
    counted = position_counts(_rows(taken, "committed_offsets", "topic", "partition", "committed", "error"), logs)
    return {"groups": read_metadata(taken.dataset("groups")).num_rows, **counted, "errors": dict(taken.manifest.get("errors") or {})}


def _rows(taken: "Snapshot", dataset: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    from pyarrow.parquet import ParquetFile  # noqa: PLC0415  (not at DAG parse)

    # read_table would load pyarrow.dataset: a quarter of a second in every run.
    table = ParquetFile(taken.dataset(dataset)).read(columns=list(columns))
    return zip(*(table[name].to_pylist() for name in columns), strict=True)
