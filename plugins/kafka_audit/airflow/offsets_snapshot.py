"""Takes one offsets snapshot for an Airflow run and counts what it shows. Loads kafka-python and pyarrow, which no DAG file may."""

import logging
from collections.abc import Iterator
from datetime import datetime, timezone
from typing import Any

from pyarrow.parquet import ParquetFile, read_metadata

from kafka_audit.airflow.hook import KafkaAuditHook
from kafka_audit.audit.installation import audit_root
from kafka_audit.audit.request import OffsetsRequest
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.lag.position import position_counts
from kafka_audit.policy import load_policy
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from kafka_audit.store.sealed import OFFSETS

log = logging.getLogger(__name__)


def counted_snapshot(request: OffsetsRequest, snapshot_id: str) -> dict[str, Any]:
    """Read the cluster into a sealed offsets snapshot, or verify the one that is already there, and count its groups and partitions.

    ``unknown``: with a commit, but could not be told. ``errors`` are the snapshot's own, by dataset: what they hide is in no other count.
    """
    taken = take_snapshot(
        kind=OFFSETS,
        settings=KafkaAuditHook(request.kafka_conn_id).get_conn(),
        root=EvidenceRoot(path=audit_root()),
        cluster=request.cluster,
        snapshot_id=snapshot_id,
        scope=Scope.from_text(topics=request.topics, groups=request.groups),
        policy=load_policy(request.policy_folder),
        now=lambda: datetime.now(timezone.utc),
        progress=log.info,
    )
    found = Snapshot.verified(taken.path)
    logs = {
        (topic, partition): (start, end)
        for topic, partition, start, end in _rows(found, "offsets", "topic", "partition", "log_start", "log_end")
    }
    counted = position_counts(_rows(found, "committed_offsets", "topic", "partition", "committed", "error"), logs)
    return {"groups": read_metadata(found.dataset("groups")).num_rows, **counted, "errors": dict(found.manifest.get("errors") or {})}


def _rows(taken: Snapshot, dataset: str, *columns: str) -> Iterator[tuple[Any, ...]]:
    # read_table would load pyarrow.dataset: a quarter of a second in every run.
    table = ParquetFile(taken.dataset(dataset)).read(columns=list(columns))
    return zip(*(table[name].to_pylist() for name in columns), strict=True)
