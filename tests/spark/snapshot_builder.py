"""Builds small sealed snapshots with the collectors' schemas, each with the evidence of one test case."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa

from kafka_audit.collect.datasets import DATASETS
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot, new_id
from kafka_audit.store.sealed import OFFSETS, SNAPSHOT

READ_AT = datetime(2025, 3, 1, 12, tzinfo=timezone.utc)  # long ago: what is recent is recent by the evidence, not by today's clock
READ_MS = int(READ_AT.timestamp() * 1000)
HOUR_MS = 3_600_000
CLUSTER = "synthetic"

TOPIC_DEFAULTS = {
    "cleanup.policy": "delete",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "retention.ms": "604800000",
    "retention.bytes": "-1",
    "remote.storage.enable": "false",
}
BROKER_DEFAULTS = {
    "auto.create.topics.enable": "false",
    "controlled.shutdown.enable": "true",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
    "offsets.retention.minutes": "10080",
    "replica.lag.time.max.ms": "30000",
    "unclean.leader.election.enable": "false",
}


@dataclass
class Synthetic:
    """A cluster of three brokers in three racks, to which a test adds what its case is about. Columns left out are null."""

    tables: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {name: [] for name in sorted(DATASETS)})
    topics_in_scope: list[str] = field(default_factory=lambda: ["*"])
    groups_in_scope: list[str] = field(default_factory=lambda: ["*"])

    def add(self, dataset: str, /, **columns: Any) -> "Synthetic":
        unknown = set(columns) - set(DATASETS[dataset].schema.names)
        assert not unknown, f"{dataset} has no columns {unknown}"
        self.tables.setdefault(dataset, []).append(columns)
        return self

    def error(self, dataset: str, error: str, message: str = "refused", **where: Any) -> "Synthetic":
        return self.add("errors", dataset=dataset, api="SomeApi", error=error, message=message, **where)

    def brokers(
        self,
        racks: dict[int, str | None],
        configs: dict[int, dict[str, str]] | None = None,
        describe_cluster_versions: dict[int, int | None] | None = None,
    ) -> "Synthetic":
        """Brokers of Kafka 4 by id, unless another version is given; one before 3.7 has version 0."""
        self.add("cluster", cluster_id="cluster-id", controller_id=1, read_at=READ_AT, features=[])
        for number, rack in racks.items():
            broker = {"host": "h", "port": 9092, "rack": rack, "alive": True, "answered": True, "is_controller": number == 1}
            version = (describe_cluster_versions or {}).get(number, 2)
            self.add("brokers", broker_id=number, describe_cluster_version=version, **broker)
            self.add("log_dirs", broker_id=number, path="/data", total_bytes=1000, usable_bytes=900)
            self.add(
                "quorum",
                replica_id=number,
                role="voter",
                is_leader=number == 1,
                log_end_offset=10,
                read_at=READ_AT,
                last_fetch_timestamp_ms=READ_MS - 5,
                last_caught_up_timestamp_ms=READ_MS - 5,
            )
            for name, value in {**BROKER_DEFAULTS, **(configs or {}).get(number, {})}.items():
                self.add(
                    "broker_configs",
                    broker_id=number,
                    name=name,
                    value=value,
                    source="STATIC_BROKER_CONFIG",
                    is_sensitive=False,
                    synonyms=[],
                )
        return self

    def topic(
        self,
        topic: str,
        *,
        partitions: int = 1,
        replicas: list[int] | None = None,
        isr: list[int] | None = None,
        leader: int | None = None,
        config: dict[str, str] | None = None,
        internal: bool = False,
        without_config: bool = False,
        **row: Any,
    ) -> "Synthetic":
        placed = [1, 2, 3] if replicas is None else replicas
        self.add("topics", **{"topic": topic, "topic_id": f"id-{topic}", "is_internal": internal, "partition_count": partitions, **row})
        for number in range(partitions):
            self.add(
                "partitions",
                topic=topic,
                partition=number,
                leader=placed[0] if leader is None else leader,
                leader_epoch=0,
                replicas=placed,
                isr=placed if isr is None else isr,
                offline_replicas=[],
                confirmed=False,
                read_at=READ_AT,
            )
            for broker in placed:
                self.add(
                    "replica_sizes",
                    broker_id=broker,
                    path="/data",
                    topic=topic,
                    partition=number,
                    size_bytes=1000,
                    offset_lag=0,
                    is_future=False,
                )
        for name, value in {} if without_config else {**TOPIC_DEFAULTS, **(config or {})}.items():
            own = name in (config or {})
            source = "DYNAMIC_TOPIC_CONFIG" if own else "DEFAULT_CONFIG"
            self.add("topic_configs", topic=topic, name=name, value=value, source=source, is_sensitive=False, synonyms=[])
        return self

    def offsets(self, topic: str, partition: int = 0, **columns: Any) -> "Synthetic":
        return self.add("offsets", topic=topic, partition=partition, read_at=READ_AT, **columns)

    def group(
        self,
        group_id: str,
        *,
        kind: str = "classic",
        state: str = "Stable",
        assigned: list[tuple[str, int]] | None = None,
        subscribed: list[str] | None = None,
        **row: Any,
    ) -> "Synthetic":
        """A group, with one member if ``assigned`` is given; ``subscribed`` None: the member does not tell."""
        about = {"group_id": group_id, "group_type": kind, "state": state, "protocol_type": "consumer", "coordinator_id": 1}
        self.add("groups", **about | row)
        if assigned is not None:
            listed = [{"topic": topic, "partition": number} for topic, number in assigned]
            member = {"member_id": f"{group_id}-1", "client_id": "client", "assignment": listed}
            self.add("members", group_id=group_id, **member, subscribed_topics=subscribed)
        return self

    def commit(self, group_id: str, topic: str, committed: int | None, partition: int = 0, **columns: Any) -> "Synthetic":
        return self.add(
            "committed_offsets", group_id=group_id, topic=topic, partition=partition, committed=committed, read_at=READ_AT, **columns
        )

    def write(self, folder: Path, at: datetime = READ_AT, kind: str = SNAPSHOT, seed: str = "snapshot", **manifest: Any) -> Snapshot:
        """Several snapshots of different times may lie in one folder: a history. What was read at READ_AT is then read at ``at``.

        ``kind`` OFFSETS writes only the datasets of an offsets snapshot; ``manifest`` replaces fields of the manifest.
        """
        root = EvidenceRoot(path=folder)
        snapshot_id = new_id(at, seed)
        fields = {
            "cluster_id": "cluster-id",
            "started_at": at.isoformat(),
            "finished_at": (at + timedelta(seconds=1.5)).isoformat().replace("+00:00", "Z"),
            "scope": {"topics": self.topics_in_scope, "groups": self.groups_in_scope},
            **manifest,
        }
        with root.snapshot_writer(CLUSTER, snapshot_id, kind) as writer:
            for dataset, rows in self.tables.items():
                if kind == OFFSETS and not DATASETS[dataset].light:
                    continue
                schema = DATASETS[dataset].schema
                values = [{name: at if row.get(name) is READ_AT else row.get(name) for name in schema.names} for row in rows]
                writer.write(dataset, pa.Table.from_pylist(values, schema=schema))
            return Snapshot.open(writer.seal(fields))


def audit_folder(folder: Path, snapshot: Snapshot, seed: str = "audit") -> Audit:
    """The folder of an audit of that snapshot, with its run.json; another ``seed`` gives another audit."""
    audit_id = new_id(READ_AT, seed)
    audit = EvidenceRoot(path=folder).audit(CLUSTER, audit_id)
    write_json(
        audit.run_file, {"audit_id": audit_id, "cluster": CLUSTER, "snapshot_id": snapshot.snapshot_id, "started_at": READ_AT.isoformat()}
    )
    return audit
