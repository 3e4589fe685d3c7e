"""What the snapshot of an audit shows of one topic: its settings and partitions. The snapshot may be gone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kafka_audit.collect.datasets import DATASETS
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.index.read import IndexedAudit, checked_rows
from kafka_audit.index.shown import without_root
from kafka_audit.store.layout import EvidenceRoot, Snapshot
from kafka_audit.store.manifest import read_manifest

PARTITIONS_SHOWN = 200

_TOPIC = ["topic", "topic_id", "is_internal", "partition_count", "error"]
_SETTING = ["topic", "name", "value", "source", "is_sensitive"]
_PARTITION = ["topic", "partition", "leader", "replicas", "isr", "offline_replicas", "error"]


@dataclass(frozen=True, kw_only=True)
class TopicEvidence:
    """``about``: the topic's row in the snapshot, or None. ``why``: why nothing can be read of the snapshot, as the end of a sentence.

    ``settings``: {name, value, source, is_sensitive}; those of the topic itself come first. ``partitions``: at most PARTITIONS_SHOWN,
    those without a leader or with replicas out of sync first.
    """

    about: Mapping[str, Any] | None = None
    settings: Sequence[Mapping[str, Any]] = ()
    partitions: Sequence[Mapping[str, Any]] = ()
    partition_count: int = 0
    not_in_sync: int = 0
    why: str = ""


def topic_evidence(root: EvidenceRoot, index: IndexedAudit, topic: str) -> TopicEvidence:
    """Read one topic from the snapshot that the audit judged; each file is checked against the snapshot's manifest."""
    overview = index.overview
    try:
        snapshot = root.find_snapshot(overview.cluster, overview.snapshot_id)
        if snapshot is None:
            return TopicEvidence(why="is not kept any more: it was deleted or moved away")
        _is_the_judged(index, snapshot)
        rows = {name: _rows(snapshot, name, topic, columns) for name, columns in (("topics", _TOPIC), ("topic_configs", _SETTING))}
        partitions = _rows(snapshot, "partitions", topic, _PARTITION)
    except (ConfigurationError, IntegrityError) as problem:
        return TopicEvidence(why=f"cannot be used: {without_root(root, problem)}")
    settings = sorted(rows["topic_configs"].to_pylist(), key=lambda one: (one["source"] != "DYNAMIC_TOPIC_CONFIG", str(one["name"])))
    troubled = _in_trouble(partitions)
    ordered = partitions.append_column("troubled", troubled).sort_by([("troubled", "descending"), ("partition", "ascending")])
    return TopicEvidence(
        about=next(iter(rows["topics"].to_pylist()), None),
        settings=settings,
        partitions=ordered.slice(0, PARTITIONS_SHOWN).to_pylist(),
        partition_count=partitions.num_rows,
        not_in_sync=pc.sum(troubled).as_py() or 0,
    )


def _is_the_judged(index: IndexedAudit, snapshot: Snapshot) -> None:
    about = read_manifest(index.audit.path).get("snapshot")
    if not isinstance(about, dict) or about.get("manifest_sha256") != snapshot.manifest_sha256:
        raise IntegrityError("its manifest is not the one that the audit judged")


def _rows(snapshot: Snapshot, name: str, topic: str, columns: list[str]) -> pa.Table:
    files = {file: str(one["sha256"]) for file, one in snapshot.manifest["files"].items() if isinstance(one, dict) and "sha256" in one}
    rows = checked_rows(snapshot.path, files, f"{name}.parquet", ("topic", topic), columns)
    try:
        return rows.select(columns).cast(pa.schema([DATASETS[name].schema.field(column) for column in columns]))
    except (pa.ArrowException, ValueError) as problem:
        raise IntegrityError(f"{name}.parquet: has columns of other types than this release writes ({problem!s:.200})") from problem


def _in_trouble(partitions: pa.Table) -> pa.Array:
    """Whether a partition has no leader, or fewer replicas in sync than replicas; also where that is not known."""
    lagging = pc.less(pc.list_value_length(partitions["isr"]), pc.list_value_length(partitions["replicas"]))
    leaderless = pc.less(partitions["leader"], 0)
    return pc.cast(pc.fill_null(pc.or_kleene(lagging, leaderless), True), pa.int8())
