"""A short story on brokers of other releases of Kafka: a snapshot has no gap that its release does not explain, and commits are decoded.

``make test-versions`` runs it on all releases that the sandbox can start; the suite, on one besides the default.
"""

import os
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from commit_history_job import run, table
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from lag_clients import commit, wait_for

from kafka_audit.cli.lag import take_reading
from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.scope import Scope
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.jars.fetch import RELEASE, RELEASES
from kafka_audit.lag.rows import lag_rows
from kafka_audit.policy import load_policy
from kafka_audit.sandbox import lifecycle
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.store.sealed import SNAPSHOT

pytestmark = pytest.mark.kafka

CHOSEN = os.environ.get("KAFKA_AUDIT_TEST_RELEASES", "4.4").split()
NOT_BEFORE_4 = {"DescribeShareGroupOffsets", "ShareGroupDescribe", "StreamsGroupDescribe"}
"""APIs that brokers of 3.9 do not offer."""


def now() -> datetime:
    return datetime.now(timezone.utc)


@pytest.fixture(scope="module", params=CHOSEN)
def release(request: pytest.FixtureRequest) -> str:
    assert request.param in RELEASES
    return str(request.param)


@pytest.fixture(scope="module")
def sandbox(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    """Three brokers; a group of each protocol of consumers has read half of twenty records, a transaction has committed, one is open."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(RELEASE, release)
        started = lifecycle.start("none", directory=tmp_path_factory.mktemp("sandbox"))
    with started:
        admin = AdminClient({"bootstrap.servers": started.bootstrap})
        admin.create_topics([NewTopic("orders", 2, 3, config={"min.insync.replicas": "2"})])["orders"].result(60)
        producer = Producer({"bootstrap.servers": started.bootstrap, "acks": "all", "enable.idempotence": True})
        for _ in range(20):
            producer.produce("orders", b"x", partition=0)
        assert producer.flush(60) == 0
        read(started.bootstrap, "classic", "classic")
        if release != "3.9":  # there the protocol is a preview
            read(started.bootstrap, "modern", "consumer")
        transaction = Producer({"bootstrap.servers": started.bootstrap, "transactional.id": "till"})
        transaction.init_transactions(60)
        transaction.begin_transaction()
        transaction.produce("orders", b"y", partition=1)
        transaction.commit_transaction(60)
        transaction.begin_transaction()
        transaction.produce("orders", b"z", partition=1)
        transaction.flush(60)
        yield started


def read(bootstrap: str, group: str, protocol: str) -> None:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group, "group.protocol": protocol, "enable.auto.commit": False})
    consumer.subscribe(["orders"])

    def assigned() -> bool:
        consumer.poll(0.2)
        return len(consumer.assignment()) == 2

    wait_for(f"{group} has both partitions", assigned)
    commit(consumer, TopicPartition("orders", 0, 10))
    consumer.close()


@pytest.fixture(scope="module")
def snapshot(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Any]]]:
    taken = take_snapshot(
        settings=ConnectionSettings.from_mapping({"bootstrap.servers": sandbox.bootstrap}),
        root=EvidenceRoot(path=tmp_path_factory.mktemp("root")),
        cluster="real",
        snapshot_id=new_id(now(), "versions"),
        now=now,
        second_look_seconds=0,
        kind=SNAPSHOT,
    )
    return {file.stem: pq.read_table(file).to_pylist() for file in taken.path.glob("*.parquet")}


def test_a_snapshot_reads_all_that_the_release_offers(release: str, snapshot: dict[str, list[dict[str, Any]]]) -> None:
    assert snapshot["errors"] == []
    unsupported = {row["api"] for row in snapshot["capabilities"] if not row["supported"]}
    assert unsupported == (NOT_BEFORE_4 if release == "3.9" else set())
    assert {row["broker_id"] for row in snapshot["brokers"] if row["alive"] and row["answered"]} == {1, 2, 3}
    (orders,) = [row for row in snapshot["topic_configs"] if (row["topic"], row["name"]) == ("orders", "min.insync.replicas")]
    assert orders["value"] == "2"
    assert {row["role"] for row in snapshot["quorum"]} == {"voter"}
    isr = [row["isr"] for row in snapshot["partitions"] if row["topic"] == "orders"]
    assert [sorted(one) for one in isr] == [[1, 2, 3]] * 2


def test_groups_commits_and_transactions_are_told_as_they_are(release: str, snapshot: dict[str, list[dict[str, Any]]]) -> None:
    groups = {"classic": "classic"} if release == "3.9" else {"classic": "classic", "modern": "consumer"}
    assert {row["group_id"]: row["group_type"] for row in snapshot["groups"]} == groups
    commits = {(row["group_id"], row["topic"], row["partition"]): row["committed"] for row in snapshot["committed_offsets"]}
    assert commits == {(group, "orders", 0): 10 for group in groups}
    assert [(row["transactional_id"], row["state"]) for row in snapshot["transactions"]] == [("till", "Ongoing")]
    ends = {row["partition"]: (row["log_end"], row["last_stable"]) for row in snapshot["offsets"] if row["topic"] == "orders"}
    assert ends == {0: (20, 20), 1: (3, 2)}


def test_the_lag_of_a_group_is_the_same_on_every_release(sandbox: Sandbox) -> None:
    reading = take_reading(ConnectionSettings.from_mapping({"bootstrap.servers": sandbox.bootstrap}), Scope.from_text(), load_policy(), now)
    (row,) = [row for row in lag_rows(reading, lambda group, topic: None) if row.group_id == "classic"]
    assert (row.topic, row.partition, row.committed, row.lag) == ("orders", 0, 10, 10)


@pytest.mark.spark
def test_every_record_of_the_coordinators_is_decoded(job_process: None, sandbox: Sandbox, tmp_path: Path) -> None:
    summary = run(sandbox.bootstrap, tmp_path)
    assert summary["totals"]["lost"] == 0
    assert summary["totals"]["rows"] > 0
    assert table(tmp_path, "undecoded") == []
    assert {(row["group_id"], row["topic"], row["partition"], row["committed"]) for row in table(tmp_path, "offset_commits")} >= {
        ("classic", "orders", 0, 10)
    }
