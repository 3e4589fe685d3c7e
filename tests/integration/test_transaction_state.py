"""``__transaction_state`` of real brokers, compared with Kafka's own formatter; open transactions; an audit without permission."""

import json
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from commit_history_job import OFFSETS, TRANSACTIONS, ended, formatted, milliseconds, offsets, run, table
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka import KafkaAdminClient
from kafka.admin import ACL, ACLOperation, ACLPermissionType, ResourcePattern, ResourceType
from lag_clients import commit

from kafka_audit.errors import NothingToReadError
from kafka_audit.sandbox.auditor import PRINCIPAL
from kafka_audit.sandbox.lifecycle import Sandbox

pytestmark = [pytest.mark.kafka, pytest.mark.spark, pytest.mark.usefixtures("job_process")]


class Transactions:
    """Producers that write a record and commit an offset of a group of their own, and end it in every way; one stays open."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic("orders", 2, 1)])["orders"].result(60)
        for name, timeout_ms, end in (("committed", 60_000, True), ("aborted", 50_000, False), ("abandoned", 10_000, None)):
            producer = self.begin(name, timeout_ms)
            if end is not None:
                (producer.commit_transaction if end else producer.abort_transaction)(60)
        self.open = self.begin("open", 600_000)
        self.wait_for_tombstones({"committed", "aborted", "abandoned"})

    def begin(self, name: str, timeout_ms: int) -> Producer:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": f"group-of-{name}"})
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": f"{name} é", "transaction.timeout.ms": timeout_ms})
        producer.init_transactions(60)
        producer.begin_transaction()
        producer.produce("orders", b"x", partition=1)
        producer.send_offsets_to_transaction([TopicPartition("orders", 0, 7)], consumer.consumer_group_metadata(), 60)
        producer.flush(60)
        consumer.close()
        return producer

    def wait_for_tombstones(self, expired: set[str]) -> None:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "none", "enable.auto.commit": False})
        partitions = consumer.list_topics(TRANSACTIONS, timeout=600).topics[TRANSACTIONS].partitions
        consumer.assign([TopicPartition(TRANSACTIONS, partition, 0) for partition in partitions])
        left, deadline = set(expired), time.monotonic() + 300
        while left:
            assert time.monotonic() < deadline, left
            for message in consumer.consume(100, 0.5):
                if message.error() is None and message.value() is None:
                    left.discard(message.key()[4:].decode().removesuffix(" é"))
        consumer.close()


Told = tuple[Path, list[dict[str, Any]], Transactions, dict[int, int]]


@pytest.fixture(scope="module")
def too_early(coordinators: Sandbox, job_process: None, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, str]:
    """Exit code and words of a run on a cluster that no consumer has used."""
    return ended(coordinators.bootstrap, tmp_path_factory.mktemp("history"))


@pytest.fixture(scope="module")
def told(coordinators: Sandbox, too_early: tuple[int, str], tmp_path_factory: pytest.TempPathFactory) -> Told:
    """A history, what its runs before the first transaction and after it said, the transactions, one of which is still open, and how many
    offsets it holds back by partition (later on, Kafka's console consumers add records of their own groups)."""
    folder = tmp_path_factory.mktemp("history")
    consumer = Consumer({"bootstrap.servers": coordinators.bootstrap, "group.id": "plain"})
    admin = AdminClient({"bootstrap.servers": coordinators.bootstrap})
    admin.create_topics([NewTopic("first", 1, 1)])["first"].result(60)
    commit(consumer, TopicPartition("first", 0, 1))
    consumer.close()
    runs = [run(coordinators.bootstrap, folder)]
    transactions = Transactions(coordinators.bootstrap)
    ends = [offsets(coordinators.bootstrap, "end_offsets", topic=topic) for topic in (OFFSETS, TRANSACTIONS)]
    runs.append(run(coordinators.bootstrap, folder))
    assert ends == [offsets(coordinators.bootstrap, "end_offsets", topic=topic) for topic in (OFFSETS, TRANSACTIONS)]
    stable = offsets(coordinators.bootstrap, "end_offsets", isolation="read_committed")
    return folder, runs, transactions, {p: end - stable[p] for p, end in ends[0].items() if end > stable[p]}


def theirs(bootstrap: str) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for one in formatted(bootstrap, TRANSACTIONS, "TransactionLogMessageFormatter"):
        value, data = one["value"] or {}, (one["value"] or {}).get("data", {})
        plain = (data.get(name) for name in ("producerId", "producerEpoch", "transactionTimeoutMs", "transactionStatus"))
        tagged = (data.get(name) for name in ("previousProducerId", "nextProducerId", "nextProducerEpoch", "clientTransactionVersion"))
        times = (data.get(f"transaction{name}TimestampMs") for name in ("LastUpdate", "Start"))
        parts = data.get("transactionPartitions")
        partitions = None if parts is None else tuple((part["topic"], tuple(part["partitionIds"])) for part in parts)
        known = (None if time == -1 else time for time in times)
        found[(one["key"]["data"]["transactionalId"], value.get("version"), *plain, *tagged, partitions, *known)] += 1
    return found


def ours(history: Path) -> Counter[tuple[Any, ...]]:
    found: Counter[tuple[Any, ...]] = Counter()
    for row in table(history / "transactions", "transactions"):
        plain = (row[name] for name in ("transactional_id", "version", "producer_id", "producer_epoch", "timeout_ms", "state_number"))
        tagged = (row[name] for name in ("previous_producer_id", "next_producer_id", "next_producer_epoch", "client_version"))
        parts = row["partitions"]
        partitions = None if parts is None else tuple((part["topic"], tuple(part["partitions"])) for part in parts)
        found[(*plain, *tagged, partitions, *(milliseconds(row, name) for name in ("last_update", "start")))] += 1
    return found


def test_a_cluster_that_no_consumer_has_used_has_nothing_to_read_yet(too_early: tuple[int, str]) -> None:
    code, said = too_early
    assert code == NothingToReadError.exit_code
    assert "there is no __consumer_offsets yet: the brokers create it at its first use" in said


def test_without_the_topic_the_run_goes_on_and_says_so(told: Told) -> None:
    first = told[1][0]
    assert first["totals"]["rows"] > 0
    assert first["held_back_by"] is None
    assert list(first["transactions"]) == ["not_read"]
    assert "there is no __transaction_state yet" in first["transactions"]["not_read"]


def test_transactions_equal_kafkas_own_formatter(coordinators: Sandbox, told: Told) -> None:
    history, (_, second), *_ = told
    assert ours(history) == theirs(coordinators.bootstrap)
    rows = table(history / "transactions", "transactions")
    states = {
        row["transactional_id"]: {each["state"] for each in rows if each["transactional_id"] == row["transactional_id"]} for row in rows
    }
    assert states["committed é"] >= {"Empty", "Ongoing", "PrepareCommit", "CompleteCommit"}
    assert states["aborted é"] >= {"Empty", "Ongoing", "PrepareAbort", "CompleteAbort"}
    assert states["abandoned é"] >= {"Ongoing", "CompleteAbort"}
    assert "CompleteCommit" not in states["open é"]
    assert {row["transactional_id"] for row in rows if row["tombstone"]} == {"committed é", "aborted é", "abandoned é"}
    assert table(history / "transactions", "undecoded") == []
    assert second["transactions"]["totals"] == {"expected": len(rows), "rows": len(rows), "lost": 0, "skipped": 0}
    assert second["transactions"]["coverage"] == 1


def test_an_open_transaction_is_named_as_what_holds_back_the_offsets_topic(told: Told) -> None:
    history, (_, second), *_ = told
    behind = told[3]
    assert second["held_back"] == sum(behind.values()) > 0
    (began,) = {
        row["start"]
        for row in table(history / "transactions", "transactions")
        if row["state"] == "Ongoing" and row["timeout_ms"] == 600_000
    }
    assert [(each["transactional_id"], each["state"], each["partitions"]) for each in second["held_back_by"]] == [
        ("open é", "Ongoing", [*behind])
    ]
    assert datetime.fromisoformat(second["held_back_by"][0]["since"].replace("Z", "+00:00")) == began.astimezone(timezone.utc)
    described = json.loads(sorted(history.glob("behaviour/*/manifest.json"))[1].read_text())
    assert {one["partition"] for one in described["readings"] if one["read_to"] != described["end"]} == {*behind}


def test_a_later_run_reads_only_what_is_new(coordinators: Sandbox, told: Told) -> None:
    history, (_, second), transactions, _ = told
    transactions.open.commit_transaction(60)
    transactions.wait_for_tombstones({"open"})
    third = run(coordinators.bootstrap, history)
    assert (third["held_back"], third["held_back_by"]) == (0, [])
    assert set(third["transactions"]["batches"]).isdisjoint(second["transactions"]["batches"])
    assert ours(history) == theirs(coordinators.bootstrap)
    committed = [row["group_id"] for row in table(history, "offset_commits")]
    assert {"group-of-open", "group-of-committed"} <= set(committed)
    assert not {"group-of-aborted", "group-of-abandoned"} & set(committed)


def test_without_permission_nothing_is_read_and_the_reason_is_given(coordinators: Sandbox, told: Told, tmp_path: Path) -> None:
    client = tmp_path / "client.json"
    client.write_text(json.dumps(dict(coordinators.audit_connection)))
    audit = coordinators.audit_connection["bootstrap.servers"]
    admin = KafkaAdminClient(bootstrap_servers=coordinators.bootstrap)

    def deny(topic: str) -> None:
        what = ResourcePattern(ResourceType.TOPIC, topic)
        deny = ACL(f"User:{PRINCIPAL}", "*", ACLOperation.READ, ACLPermissionType.DENY, what)
        assert not [error for _, error in admin.create_acls([deny])["failed"] if error.errno]

    deny(TRANSACTIONS)
    summary = run(audit, tmp_path / "history", "--client", str(client))
    assert summary["totals"]["rows"] > 0
    assert summary["held_back_by"] is None
    assert summary["transactions"] == {
        "not_read": f"{TRANSACTIONS} may not be read: grant Read and Describe on it to the audit's account, or do without its history (no Read)"
    }
    assert not table(tmp_path / "history" / "transactions", "transactions")
    deny(OFFSETS)
    code, said = ended(audit, tmp_path / "nothing", "--client", str(client))
    admin.close()
    assert code == 1
    assert f"{OFFSETS} may not be read: grant Read and Describe" in said
    assert not list((tmp_path / "nothing").glob("raw/*"))
