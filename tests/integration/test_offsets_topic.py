"""The commit history of real brokers, held against Kafka's own formatters; kills, gaps and aborted transactions."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from kafka import KafkaAdminClient, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic

from kafka_audit.sandbox import brokers, lifecycle
from kafka_audit.sandbox.jars import broker_classpath, java

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

TOPIC = "__consumer_offsets"
OURS = {"by-admin", "classic", "kip848", "transactional"}


class Cluster:
    """A sandbox with groups of every protocol, all of them stopped."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self.admin.create_topics([NewTopic("orders", 300, 1)])
        self.commit("by-admin", range(3), 7, 'note é"')
        self.consume("classic", {"partition.assignment.strategy": "range"})
        self.consume("kip848", {"group.protocol": "consumer"})
        self.transactions()
        self.admin.delete_group_offsets("by-admin", [TopicPartition("orders", 2)])

    def commit(self, group: str, partitions: range, offset: int, metadata: str = "") -> None:
        offsets = {TopicPartition("orders", p): OffsetAndMetadata(offset, metadata, -1) for p in partitions}
        for _ in range(100):  # the first use of a group on a new cluster finds no coordinator yet
            try:
                answer = self.admin.alter_group_offsets(group, offsets)
            except Exception:  # noqa: BLE001
                time.sleep(0.2)
                continue
            if all(getattr(error, "errno", 0) == 0 for error in answer.values() if error is not None):
                return
        raise AssertionError(f"{group}: offsets could not be committed")

    def consume(self, group: str, more: dict[str, str]) -> None:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False, **more})
        consumer.subscribe(["orders"])
        deadline = time.monotonic() + 60
        while not consumer.assignment():
            consumer.poll(0.2)
            assert time.monotonic() < deadline, f"{group} was assigned nothing"
        consumer.commit(offsets=[Position("orders", 0, 11), Position("orders", 1, 12)], asynchronous=False)
        consumer.close()

    def transactions(self) -> None:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "transactional"})
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": "txn"})
        producer.init_transactions(60)
        for offset, end in ((100, producer.commit_transaction), (200, producer.abort_transaction), (300, producer.commit_transaction)):
            producer.begin_transaction()
            producer.send_offsets_to_transaction([Position("orders", 0, offset)], consumer.consumer_group_metadata(), 60)
            end(60)
        consumer.close()

    def ends(self) -> dict[int, int]:
        return self.offsets("end_offsets")

    def starts(self) -> dict[int, int]:
        return self.offsets("beginning_offsets")

    def offsets(self, which: str) -> dict[int, int]:
        consumer = KafkaConsumer(bootstrap_servers=self.bootstrap, exclude_internal_topics=False)
        try:
            partitions = [TopicPartition(TOPIC, p) for p in sorted(consumer.partitions_for_topic(TOPIC) or ())]
            return {each.partition: offset for each, offset in getattr(consumer, which)(partitions).items()}
        finally:
            consumer.close()

    def configure(self, config: dict[str, str]) -> None:
        self.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, TOPIC, config)])

    def formatted(self, formatter: str) -> list[dict[str, Any]]:
        command = [java(), "-Xmx256m", "-cp", broker_classpath(print), "org.apache.kafka.tools.consumer.ConsoleConsumer"]
        command += ["--bootstrap-server", self.bootstrap, "--topic", TOPIC, "--from-beginning", "--timeout-ms", "8000"]
        command += ["--isolation-level", "read_committed", "--formatter", f"org.apache.kafka.tools.consumer.{formatter}"]
        text = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False).stdout.strip()
        decoder, found, at = json.JSONDecoder(), [], 0
        while text[at : at + 1] == "{":  # it writes no newlines, and at the end what its logger says of the timeout
            one, at = decoder.raw_decode(text, at)
            found.append(one)
        return [one for one in found if one["key"]["data"]["group"] in OURS]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("log.retention.check.interval.ms", "log.initial.task.delay.ms"):  # 5 minutes and 30 seconds otherwise
            patch.setitem(brokers._SMALL, name, "500")
        sandbox = lifecycle.start("none", directory=tmp_path_factory.mktemp("sandbox"))
    with sandbox:
        made = Cluster(sandbox.bootstrap)
        yield made
        made.admin.close()


def job(cluster: Cluster, history: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "spark_jobs.read_commits", "--history", str(history), "--bootstrap", cluster.bootstrap, *more]


def run(cluster: Cluster, history: Path, *more: str) -> dict[str, Any]:
    done = subprocess.run(job(cluster, history, *more), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((history / "last_run.json").read_text())


def table(history: Path, name: str) -> list[dict[str, Any]]:
    return [row for part in sorted(history.glob(f"*/*/{name}.parquet/*.parquet")) for row in pq.read_table(part).to_pylist()]


def fingerprint(rows: list[dict[str, Any]]) -> Counter[str]:
    return Counter(json.dumps(row, default=str, sort_keys=True) for row in rows)


def milliseconds(row: dict[str, Any], name: str) -> int:
    return round(row[name].timestamp() * 1000)


@pytest.fixture(scope="module")
def history(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("history")
    before = cluster.ends()
    summary = run(cluster, folder)
    assert cluster.ends() == before, "reading must write nothing into the topic"
    assert summary["totals"]["expected"] == sum(before.values())
    assert (summary["totals"]["skipped"], summary["totals"]["lost"], summary["held_back"]) == (4, 0, 0)  # 3 markers and 1 aborted commit
    return folder


def test_offset_commits_equal_kafkas_own_formatter(cluster: Cluster, history: Path) -> None:
    theirs: Counter[tuple[Any, ...]] = Counter()
    for one in cluster.formatted("OffsetsMessageFormatter"):
        key, value = one["key"]["data"], one["value"]
        data = value["data"] if value else {}
        fields = (data.get(name) for name in ("offset", "leaderEpoch", "metadata", "commitTimestamp", "topicId"))
        theirs[(key["group"], key["topic"], key["partition"], value["version"] if value else None, *fields)] += 1
    ours: Counter[tuple[Any, ...]] = Counter()
    for row in table(history, "offset_commits"):
        committed_at = None if row["tombstone"] else milliseconds(row, "commit_time")
        place = row["group_id"], row["topic"], row["partition"], row["version"]
        ours[(*place, row["committed"], row["leader_epoch"], row["metadata"], committed_at, row["topic_id"])] += 1
    assert ours == theirs
    assert {row["committed"] for row in table(history, "offset_commits") if row["group_id"] == "transactional"} == {100, 300}


def test_group_metadata_equals_kafkas_own_formatter(cluster: Cluster, history: Path) -> None:
    theirs = Counter()
    for one in cluster.formatted("GroupMetadataMessageFormatter"):
        if one["key"]["type"] == 2:
            data = one["value"]["data"] if one["value"] else None
            members = [(m["memberId"], m["clientId"], m["sessionTimeout"], m["rebalanceTimeout"]) for m in data["members"]] if data else []
            state = data and (data["generation"], data["protocol"], data["currentStateTimestamp"])
            theirs[(one["key"]["data"]["group"], state, *members)] += 1
    ours = Counter()
    for row in table(history, "group_records"):
        if row["record_type"] == 2:
            data = row["group_metadata"]
            members = (
                [(m["member_id"], m["client_id"], m["session_timeout_ms"], m["rebalance_timeout_ms"]) for m in data["members"]]
                if data
                else []
            )
            ours[(row["group_id"], data and (data["generation"], data["protocol"], data["state_ms"]), *members)] += 1
    assert ours == theirs
    assert {"consumer_group_metadata", "consumer_group_member_metadata"} <= {row["record_name"] for row in table(history, "group_records")}
    assert table(history, "undecoded") == []


def test_a_killed_job_that_runs_again_gives_the_same_tables(cluster: Cluster, tmp_path: Path) -> None:
    for offset in range(20):
        cluster.commit("by-admin", range(300), offset)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(job(cluster, killed, "--most-offsets", "1000"), stdout=log, stderr=log, start_new_session=True)
        try:
            deadline = time.monotonic() + 300
            while not list(killed.glob("raw/[!.]*/manifest.json")):
                assert process.poll() is None and time.monotonic() < deadline, "it ended before it could be killed"
                time.sleep(0.02)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    assert not list(killed.glob("decoded/*"))
    run(cluster, killed, "--most-offsets", "1000")
    run(cluster, whole)
    assert len(list(killed.glob("raw/*"))) > 5 and not list(killed.glob("[rd]*/.*"))
    for name in ("records", "offset_commits", "group_records"):
        assert fingerprint(table(killed, name)) == fingerprint(table(whole, name))
    assert len(table(killed, "offset_commits")) >= 6000


def test_records_deleted_between_two_runs_are_a_gap_and_the_rest_is_read(cluster: Cluster, history: Path) -> None:
    run(cluster, history)
    read = cluster.ends()
    cluster.commit("by-admin", range(40), 1)
    ((partition, end),) = ((p, end) for p, end in cluster.ends().items() if end != read[p])
    cluster.configure({"cleanup.policy": "delete", "retention.ms": "1"})
    deadline = time.monotonic() + 60
    while cluster.starts()[partition] < end:
        assert time.monotonic() < deadline, "the broker deleted nothing"
        time.sleep(0.2)
    cluster.configure({"cleanup.policy": "compact"})
    cluster.commit("by-admin", range(10), 2)
    summary = run(cluster, history)
    assert summary["totals"] == {"expected": 50, "lost": 40, "skipped": 0, "rows": 10}
    assert summary["coverage"] == 0.2
    newest = max(history.glob("raw/*/completeness.parquet"), key=lambda path: path.parent.name)
    assert [(row["partition"], row["start"], row["lost"]) for row in pq.read_table(newest).to_pylist()] == [
        (partition, read[partition], 40)
    ]
