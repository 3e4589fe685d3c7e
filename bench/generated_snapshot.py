"""Generates snapshots of a large cluster for measuring the controls: one resource in a hundred has a fault."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from kafka_audit.collect.datasets import DATASETS
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id

TAKEN = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
TOPICS, PARTITIONS, GROUPS, READ = 2_000, 10, 5_000, 20
"""At scale 1: topics, partitions per topic, groups, and partitions that each group reads."""
CLUSTER = "generated"
_BROKERS = (1, 2, 3)
_TOPIC_CONFIG = {
    "cleanup.policy": "delete",
    "flush.messages": "9223372036854775807",
    "flush.ms": "9223372036854775807",
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.type": "CreateTime",
    "min.insync.replicas": "2",
    "remote.storage.enable": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
_BROKER_CONFIG = {
    "auto.create.topics.enable": "false",
    "controlled.shutdown.enable": "true",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.retention.minutes": "20160",
    "replica.fetch.response.max.bytes": "10485760",
    "replica.lag.time.max.ms": "30000",
    "transaction.max.timeout.ms": "900000",
    "transaction.partition.verification.enable": "true",
    "transactional.id.expiration.ms": "604800000",
    "unclean.leader.election.enable": "false",
}


def write_snapshots(root: Path, scale: float, earlier: int) -> Snapshot:
    """Write ``earlier`` snapshots an hour apart and the snapshot to judge; returns the latter. Rows grow with ``scale``."""
    for age in range(earlier, -1, -1):
        snapshot = _write(root, scale, TAKEN - timedelta(hours=age), age)
    return snapshot


def _write(root: Path, scale: float, taken: datetime, age: int) -> Snapshot:
    fields = {
        "cluster_id": "generated-cluster",
        "started_at": taken.isoformat(),
        "finished_at": (taken + timedelta(seconds=5)).isoformat(),
        "scope": {"topics": ["*"], "groups": ["*"]},
    }
    with EvidenceRoot(path=root).snapshot_writer(CLUSTER, new_id(taken, f"scale {scale}")) as writer:
        tables = {**_cluster(taken), **_topics(scale, taken, age), **_groups(scale, taken, age)}
        for name in sorted(DATASETS):
            writer.write(name, tables[name] if name in tables else _schema(name).empty_table())
        return Snapshot.open(writer.seal(fields))


def _schema(dataset: str) -> pa.Schema:
    schema: pa.Schema = DATASETS[dataset].schema
    return schema


def _table(dataset: str, rows: int, columns: Mapping[str, Any]) -> pa.Table:
    """A table with a dataset's schema; a single value is repeated in every row, a column that is left out is null."""
    schema = _schema(dataset)
    unknown = set(columns) - set(schema.names)
    if unknown:
        raise ValueError(f"{dataset} has no columns {unknown}")
    arrays = []
    for field in schema:
        value = columns.get(field.name)
        if isinstance(value, np.ndarray | list | pa.Array | pa.ChunkedArray):
            arrays.append(pa.array(value).cast(field.type) if isinstance(value, np.ndarray) else pa.array(value, field.type))
        else:
            arrays.append(pa.repeat(pa.scalar(value, field.type), rows))
    return pa.Table.from_arrays(arrays, schema=schema)


def _listed(dataset: str, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    schema = _schema(dataset)
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)


def _cluster(taken: datetime) -> dict[str, pa.Table]:
    clock = round(taken.timestamp() * 1000)
    levels = {"finalized_min": 1, "supported_min": 0}
    features = [
        {"name": name, "finalized_max": level, "supported_max": level, **levels}
        for name, level in (
            ("metadata.version", 30),
            ("transaction.version", 2),
            ("group.version", 1),
            ("eligible.leader.replicas.version", 1),
        )
    ]
    quorum = {
        "role": "voter",
        "log_end_offset": 10,
        "read_at": taken,
        "last_fetch_timestamp_ms": clock,
        "last_caught_up_timestamp_ms": clock,
    }
    rows: dict[str, list[dict[str, Any]]] = {
        "cluster": [{"cluster_id": "generated-cluster", "controller_id": 1, "read_at": taken, "features": features}],
        "brokers": [
            {"broker_id": b, "host": "h", "port": 9092, "rack": f"r{b}", "alive": True, "answered": True, "is_controller": b == 1}
            for b in _BROKERS
        ],
        "log_dirs": [{"broker_id": b, "path": "/data", "total_bytes": 10**12, "usable_bytes": 9 * 10**11} for b in _BROKERS],
        "quorum": [{"replica_id": b, "is_leader": b == 1, **quorum} for b in _BROKERS],
        "broker_configs": [
            {"broker_id": b, "name": name, "value": value, "source": "STATIC_BROKER_CONFIG", "is_sensitive": False, "synonyms": []}
            for b in _BROKERS
            for name, value in _BROKER_CONFIG.items()
        ],
    }
    return {name: _listed(name, listed) for name, listed in rows.items()}


def _topics(scale: float, taken: datetime, age: int) -> dict[str, pa.Table]:
    topics = [f"topic-{number:06d}" for number in range(round(TOPICS * scale))]
    count = len(topics) * PARTITIONS
    number = np.arange(count)
    name, partition = np.repeat(topics, PARTITIONS), (number % PARTITIONS).astype("int32")
    leader = (number % 3 + 1).astype("int32")
    placed = pa.array(np.array([[1, 2, 3], [2, 3, 1], [3, 1, 2]])[number % 3].tolist(), pa.list_(pa.int32()))
    short = pa.array([[1, 2] if one % 100 == 0 else [1, 2, 3] for one in number.tolist()], pa.list_(pa.int32()))
    end = 10_000 - 100 * age + number % 997
    clock = round(taken.timestamp() * 1000)
    none = pa.array([[]] * count, pa.list_(pa.int32()))
    return {
        "topic_configs": _topic_configs(topics),
        "topics": _table(
            "topics",
            len(topics),
            {"topic": topics, "topic_id": [f"id-{one}" for one in topics], "is_internal": False, "partition_count": PARTITIONS},
        ),
        "partitions": _table(
            "partitions",
            count,
            {
                **{"topic": name, "partition": partition, "leader": leader, "leader_epoch": 3, "replicas": placed, "isr": short},
                **{"eligible_leader_replicas": none, "offline_replicas": none, "confirmed": True, "read_at": taken},
            },
        ),
        "offsets": _table(
            "offsets",
            count,
            {
                **{
                    "topic": name,
                    "partition": partition,
                    "log_start": number % 50,
                    "log_end": end,
                    "last_stable": end,
                    "max_timestamp_ms": clock - 1000,
                },
                **{
                    "max_timestamp_offset": end - 1,
                    "headroom_timestamp_ms": clock - 151_200_000,
                    "headroom_offset": end - 5_000,
                    "read_at": taken,
                },
            },
        ),
        "replica_sizes": _table(
            "replica_sizes",
            count * 3,
            {
                **{
                    "broker_id": np.tile(np.array(_BROKERS, "int32"), count),
                    "path": "/data",
                    "topic": np.repeat(name, 3),
                    "partition": np.repeat(partition, 3),
                },
                **{"size_bytes": np.repeat(end * 100, 3), "offset_lag": 0, "is_future": False},
            },
        ),
        "producers": _table(
            "producers",
            count,
            {
                **{"topic": name, "partition": partition, "producer_id": number, "producer_epoch": 0, "last_sequence": 10},
                **{"last_timestamp_ms": clock - 1000, "coordinator_epoch": 0, "current_txn_start_offset": -1},
            },
        ),
        "last_batches": _table(
            "last_batches",
            count,
            {
                **{
                    "topic": name,
                    "partition": partition,
                    "base_offset": end - 10,
                    "last_offset": end - 1,
                    "producer_id": np.where(number % 100 == 0, -1, number),
                },
                **{
                    "producer_epoch": 0,
                    "base_sequence": 10,
                    "is_transactional": False,
                    "is_control": False,
                    "max_timestamp_ms": clock - 1000,
                    "read_at": taken,
                },
            },
        ),
    }


def _topic_configs(topics: Sequence[str]) -> pa.Table:
    def value(topic: int, key: str) -> str:
        return "1" if key == "min.insync.replicas" and topic % 100 == 0 else _TOPIC_CONFIG[key]

    rows = len(topics) * len(_TOPIC_CONFIG)
    columns = {
        "topic": np.repeat(topics, len(_TOPIC_CONFIG)),
        "name": np.tile(list(_TOPIC_CONFIG), len(topics)),
        "value": [value(topic, key) for topic in range(len(topics)) for key in _TOPIC_CONFIG],
        "synonyms": pa.array([[]] * rows, _schema("topic_configs").field("synonyms").type),
    }
    return _table("topic_configs", rows, {**columns, "source": "DEFAULT_CONFIG", "is_sensitive": False})


def _groups(scale: float, taken: datetime, age: int) -> dict[str, pa.Table]:
    groups = [f"group-{number:06d}" for number in range(round(GROUPS * scale))]
    topics, rows = round(TOPICS * scale), len(groups) * READ
    number = np.arange(rows)
    group, place = np.repeat(groups, READ), number % (topics * PARTITIONS)
    topic_number, partition = place // PARTITIONS, (place % PARTITIONS).astype("int32")
    topic = np.char.add("topic-", np.char.zfill(topic_number.astype(str), 6))
    end = 10_000 - 100 * age + place % 997
    committed = np.where(number % 100 == 0, 1_000, end)  # every hundredth group does not move
    assignment = [
        [{"topic": topic[row], "partition": int(partition[row])} for row in range(index * READ, (index + 1) * READ)]
        for index in range(len(groups))
    ]
    return {
        "groups": _table(
            "groups",
            len(groups),
            {
                "group_id": groups,
                "group_type": "classic",
                "state": "Stable",
                "protocol_type": "consumer",
                "coordinator_id": 1,
                "assignor": "range",
            },
        ),
        "members": _table(
            "members",
            len(groups),
            {
                **{"group_id": groups, "member_id": [f"{one}-1" for one in groups], "client_id": "client", "assignment": assignment},
                "subscribed_topics": [sorted({place["topic"] for place in one}) for one in assignment],
            },
        ),
        "committed_offsets": _table(
            "committed_offsets", rows, {"group_id": group, "topic": topic, "partition": partition, "committed": committed, "read_at": taken}
        ),
    }
