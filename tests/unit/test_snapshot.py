"""A snapshot is complete or absent, can be repeated, and records what it covers."""

import errno
import subprocess
import sys
from pathlib import Path

import pytest
from kafka.protocol.admin.topics import ListPartitionReassignmentsResponse
from snapshot_taking import SNAPSHOT, START, commits, fake_cluster, rows, snapshot_taker  # noqa: F401  (fixtures)

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect import datasets
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.errors import CollectionError, ConfigurationError
from kafka_audit.store.layout import EvidenceRoot
from kafka_audit.store.sealed import Sealed

DATASETS = {
    *("cluster", "brokers", "broker_configs", "topics", "partitions", "reassignments", "topic_configs", "quorum", "log_dirs"),
    *("replica_sizes", "groups", "members", "committed_offsets", "offsets", "producers", "transactions", "errors", "capabilities"),
    *("acls", "client_quotas", "group_configs", "last_batches", "sla_offsets", "first_unread", "tiered_offsets", "controller_configs"),
}


def test_an_empty_cluster_gives_a_whole_snapshot_with_every_dataset(take):
    result = take()

    assert {path.stem for path in result.path.glob("*.parquet")} == DATASETS == set(datasets.DATASETS)
    assert [row["alive"] for row in rows(result, "brokers")] == [True] * 3
    assert rows(result, "groups") == rows(result, "topics") == rows(result, "errors") == []
    assert Sealed.verified(result.path).manifest["cluster_id"] == "fake-cluster"


def test_the_manifest_says_what_was_read_with_what_and_what_failed(take):
    manifest = take(scope=Scope.from_text(topics="orders*", groups="a,b")).manifest

    assert manifest["scope"] == {"topics": ["orders*"], "groups": ["a", "b"]}
    assert manifest["versions"]["kafka_python"] == "3.0.12"
    assert manifest["started_at"] < manifest["finished_at"]
    assert manifest["errors"] == {}
    assert manifest["capabilities"]["Metadata"] == "allowed"
    assert manifest["capabilities"]["FindCoordinator"] == "unknown"


def test_a_cluster_without_groups_is_never_asked_for_a_coordinator_because_that_creates_a_topic(fake, take):
    take()

    assert not fake.asked("FindCoordinator")


def test_the_same_id_gives_the_same_snapshot_without_asking_the_cluster_again(fake, take):
    first = take()
    asked = len(fake.received)
    second = take()

    assert second.reused
    assert second.path == first.path
    assert len(fake.received) == asked


def test_patterns_limit_topics_and_groups_but_never_internal_topics(fake, take):
    for name in ("orders", "payments", "__consumer_offsets"):
        fake.add_topic(name, [1])
    commits(fake, a={("orders", 0): 1, ("payments", 0): 1}, b={("orders", 0): 1})
    result = take(scope=Scope.from_text(topics="ord*", groups="a"))

    assert [row["topic"] for row in rows(result, "topics")] == ["__consumer_offsets", "orders"]
    assert {(row["group_id"], row["topic"]) for row in rows(result, "committed_offsets")} == {("a", "orders")}
    assert {row["topic"] for row in rows(result, "offsets")} == {"__consumer_offsets", "orders"}


def test_reassignments_of_hidden_topics_are_kept_and_those_outside_of_the_scope_are_not(fake, take):
    answer = ListPartitionReassignmentsResponse
    moved = answer.OngoingTopicReassignment
    running = moved.OngoingPartitionReassignment(partition_index=0, replicas=[1, 2], adding_replicas=[2], removing_replicas=[])
    topics = [moved(name=name, partitions=[running]) for name in ("orders", "ordered-secretly", "payments")]
    for name in ("orders", "payments"):
        fake.add_topic(name, [1])
    fake.answers["ListPartitionReassignments"] = lambda *_: answer(throttle_time_ms=0, error_code=0, error_message=None, topics=topics)
    result = take(scope=Scope.from_text(topics="ord*"))

    assert {row["topic"] for row in rows(result, "reassignments")} == {"orders", "ordered-secretly"}


def test_an_empty_scope_is_refused():
    with pytest.raises(ConfigurationError, match="no pattern for groups"):
        Scope.from_text(groups=" , ")


def test_a_disk_that_fills_leaves_no_folder_and_names_the_reason(take, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("pyarrow.parquet.write_table", full)
    with pytest.raises(CollectionError, match="disk is full"):
        take()

    assert not list((tmp_path / "evidence" / "fake").iterdir())


def test_an_interrupted_collection_leaves_no_folder(fake, take, tmp_path):
    def interrupt(message):
        if message.startswith("topics"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        take(progress=interrupt)

    assert not list((tmp_path / "evidence" / "fake").iterdir())


def test_two_snapshots_of_the_same_state_have_the_same_bytes(fake, take, tmp_path):
    fake.add_topic("t", [1, 2, 3])
    commits(fake, g={("t", 0): 5})
    first = take()
    bytes_of = {path.name: path.read_bytes() for path in first.path.glob("*.parquet")}
    again = take_snapshot(
        settings=ConnectionSettings.from_mapping({"bootstrap.servers": fake.bootstrap}),
        root=EvidenceRoot(path=tmp_path / "other"),
        cluster="fake",
        snapshot_id=SNAPSHOT,
        now=lambda: START,
    )
    same = {name for name, data in bytes_of.items() if (again.path / name).read_bytes() == data}

    assert {"topics.parquet", "topic_configs.parquet", "groups.parquet", "members.parquet", "producers.parquet"} <= same


@pytest.mark.parametrize("option", [[], ["--offsets-only"]])
def test_the_command_loads_neither_numpy_nor_pandas_nor_what_only_other_commands_need(fake, tmp_path, option):
    fake.add_topic("t", [1, 2])
    commits(fake, g={("t", 0): 5})
    command = ["-m", "kafka_audit.cli", "snapshot", *option, "--bootstrap", fake.bootstrap, "--root", str(tmp_path)]
    done = subprocess.run([sys.executable, "-X", "importtime", *command], capture_output=True, text=True, check=True)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}

    assert (Path(done.stdout.strip()) / "manifest.json").is_file()
    assert "pyarrow.parquet" in loaded
    assert not loaded & {"numpy", "pandas", "airflow", "pyspark", "great_expectations", "javaproperties", "rich", "pyarrow.dataset"}
    assert not loaded & {"kafka.admin", "kafka.consumer", "kafka.producer", "kafka.codec"}
