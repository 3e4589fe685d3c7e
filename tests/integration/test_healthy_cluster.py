"""The healthy cluster contains what its seed says, and a snapshot of it is whole."""

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone
from typing import Any

import pyarrow.parquet as pq
import pytest
from kafka.admin import ConfigResourceType
from seen_cluster import Cluster

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.snapshot import SnapshotResult, take_snapshot
from kafka_audit.sandbox.definition import load
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.store.sealed import Sealed

pytestmark = pytest.mark.kafka


@pytest.fixture
def healthy(healthy_cluster: Sandbox) -> Iterator[Cluster]:
    with closing(Cluster(healthy_cluster)) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def snapshot(healthy_cluster: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> SnapshotResult:
    return take_snapshot(
        settings=ConnectionSettings.from_mapping({"bootstrap.servers": healthy_cluster.bootstrap}),
        root=EvidenceRoot(path=tmp_path_factory.mktemp("healthy")),
        cluster="real",
        snapshot_id=new_id(datetime.now(timezone.utc), "healthy"),
        now=lambda: datetime.now(timezone.utc),
        second_look_seconds=1,
    )


def rows(snapshot: SnapshotResult, dataset: str) -> list[dict[str, Any]]:
    return pq.read_table(snapshot.path / f"{dataset}.parquet").to_pylist()


def test_healthy_cluster_has_nothing_wrong(healthy: Cluster) -> None:
    assert {b["rack"] for b in healthy.admin.describe_cluster()["brokers"]} == {"rack-a", "rack-b", "rack-c"}
    assert len(healthy.admin.describe_metadata_quorum()["topics"][0]["partitions"][0]["current_voters"]) == 3
    assert all(d["error_code"] == 0 for entry in healthy.admin.describe_log_dirs() for d in entry["log_dirs"])
    assert all(len(p["isr_nodes"]) == 3 for p in healthy.partitions().values())
    for topic in healthy.admin.list_topics():
        assert healthy.config(ConfigResourceType.TOPIC, topic)["min.insync.replicas"] == "2", topic
    for broker in "123":
        config = healthy.config(ConfigResourceType.BROKER, broker)
        assert (config["default.replication.factor"], config["min.insync.replicas"]) == ("3", "2")
        assert config["auto.create.topics.enable"] == "false"
    assert {state for _, state in healthy.groups().values()} == {"Stable"}
    bounds = healthy.bounds()
    for group in load("healthy").groups:
        wanted = {name: end for name, (_, end) in bounds.items() if name.rsplit("-", 1)[0] in group.topics}
        assert healthy.commits()[group.id] == wanted, group.id
    assert all(healthy.producers(name.rsplit("-", 1)[0], int(name.rsplit("-", 1)[1])) for name in bounds)


def test_a_healthy_cluster_is_read_whole_and_the_snapshot_verifies(snapshot: SnapshotResult) -> None:
    assert rows(snapshot, "errors") == []
    assert all(row["alive"] and row["answered"] for row in rows(snapshot, "brokers"))
    assert sum(row["is_controller"] for row in rows(snapshot, "brokers")) == 1
    assert {row["describe_cluster_version"] for row in rows(snapshot, "brokers")} == {2}  # since 4.0; 1 since 3.7
    assert Sealed.verified(snapshot.path).manifest["cluster_id"]


def test_start_stable_and_end_offsets_are_in_order_and_commits_lie_between_them(snapshot: SnapshotResult) -> None:
    offsets = {(row["topic"], row["partition"]): row for row in rows(snapshot, "offsets")}

    assert all(row["log_start"] <= row["last_stable"] <= row["log_end"] for row in offsets.values())
    for row in rows(snapshot, "committed_offsets"):
        if row["committed"] is not None:
            assert row["committed"] <= offsets[row["topic"], row["partition"]]["log_end"]


def test_every_partition_of_metadata_has_offsets_and_sizes_on_all_its_replicas(snapshot: SnapshotResult) -> None:
    partitions = {(row["topic"], row["partition"]): set(row["replicas"]) for row in rows(snapshot, "partitions")}
    sizes: dict[tuple[str, int], set[int]] = {}
    for row in rows(snapshot, "replica_sizes"):
        sizes.setdefault((row["topic"], row["partition"]), set()).add(row["broker_id"])

    assert set(partitions) == {(row["topic"], row["partition"]) for row in rows(snapshot, "offsets")}
    assert sizes == partitions
