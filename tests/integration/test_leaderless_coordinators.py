"""Partitions of the coordinators' topics without a leader: what they keep is missing, and every reading says so."""

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaConnectionError, KafkaError, NoError
from lag_clients import wait_for
from lag_cluster import LagCluster, lag_cluster

from kafka_audit.cli.lag import take_reading
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.lag.lag_table import notes
from kafka_audit.policy import load_policy
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.store.sealed import OFFSETS as OFFSETS_SNAPSHOT
from kafka_audit.store.sealed import SNAPSHOT

pytestmark = pytest.mark.kafka

GROUPS = [f"group-{number}" for number in range(8)]
OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
ONE_REPLICA = {
    "offsets.topic.num.partitions": "4",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.num.partitions": "4",
    "transaction.state.log.replication.factor": "1",
}


def now() -> datetime:
    return datetime.now(timezone.utc)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LagCluster]:
    """Eight groups and eight transactional ids; then a broker that alone keeps some of them is killed."""
    with lag_cluster(tmp_path_factory.mktemp("cluster"), ONE_REPLICA) as running:
        with closing(KafkaAdminClient(bootstrap_servers=running.bootstrap)) as admin:
            admin.create_topics([NewTopic("orders", 1, 3)])
            wait_for("all groups have committed", lambda: all(committed(admin, group) for group in GROUPS))
            for group in GROUPS:
                producer = Producer({"bootstrap.servers": running.bootstrap, "transactional.id": group})
                producer.init_transactions(60)
            assert {one["group_id"] for one in admin.list_groups()} >= set(GROUPS)
            running.kill(1)
            wait_for("partitions have no leader", lambda: both_lack_leaders(admin))
        yield running


def committed(admin: KafkaAdminClient, group: str) -> bool:
    try:
        answer = admin.alter_group_offsets(group, {TopicPartition("orders", 0): OffsetAndMetadata(0, "", -1)})
    except KafkaError as problem:  # the coordinator of a new cluster is being made
        assert problem.retriable, problem
        return False
    return all(error in {None, NoError} for error in answer.values())


def leaderless(admin: KafkaAdminClient) -> set[tuple[str, int]]:
    topics = admin.describe_topics([OFFSETS, TRANSACTIONS])
    return {(topic["name"], one["partition_index"]) for topic in topics for one in topic["partitions"] if one["leader_id"] == -1}


def both_lack_leaders(admin: KafkaAdminClient) -> bool:
    try:
        return {topic for topic, _ in leaderless(admin)} == {OFFSETS, TRANSACTIONS}
    except KafkaConnectionError:  # the request went to the broker that was killed
        return False


@pytest.mark.parametrize("kind", [SNAPSHOT, OFFSETS_SNAPSHOT])
def test_a_snapshot_names_each_partition_whose_groups_and_transactions_are_missing(cluster: LagCluster, kind: str, tmp_path: Path) -> None:
    settings = ConnectionSettings.from_mapping({"bootstrap.servers": cluster.bootstrap})
    with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap)) as admin:
        silent = leaderless(admin)
    taken = take_snapshot(
        settings=settings,
        root=EvidenceRoot(path=tmp_path),
        cluster="real",
        snapshot_id=new_id(now(), "leaderless"),
        now=now,
        second_look_seconds=0,
        kind=kind,
    )
    listed = set(pq.read_table(taken.path / "groups.parquet")["group_id"].to_pylist())
    assert set() < listed < set(GROUPS), "a broker lists what it keeps, without an error"
    errors = pq.read_table(taken.path / "errors.parquet").to_pylist()
    told = {(row["dataset"], row["topic"], row["partition"]) for row in errors if row["error"] == "COORDINATOR_NOT_AVAILABLE"}
    of_groups = {(dataset, *key) for dataset in ("groups", "members", "committed_offsets") for key in silent if key[0] == OFFSETS}
    of_transactions = set() if kind == OFFSETS_SNAPSHOT else {("transactions", *key) for key in silent if key[0] == TRANSACTIONS}
    assert told == of_groups | of_transactions


def test_the_lag_command_says_that_groups_are_missing_from_its_table(cluster: LagCluster) -> None:
    settings = ConnectionSettings.from_mapping({"bootstrap.servers": cluster.bootstrap})
    reading = take_reading(settings, Scope.from_text(), load_policy(), now)
    said = [note for note in notes(reading, []) if note.startswith("groups are missing from this table: __consumer_offsets-")]
    assert said
    assert "has no leader: the groups that it keeps are not listed" in said[0]
