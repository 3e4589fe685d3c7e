"""Real consumers on auto-commit and by hand: what is inferred from the times of their commits is right, or left open."""

import json
import random
import struct
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow.parquet as pq
import pytest
from commit_history_job import job
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from kafka_audit.jars.fetch import broker_classpath, java
from kafka_audit.sandbox import lifecycle
from spark_jobs.offsets_topic.cadence import TOLERANCE

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

PARTITIONS = 3
WANTED = {
    "java-1s": 20,
    "java-5s": 10,
    "java-kip848-5s": 10,
    "java-30s": 2,
    "librdkafka-5s": 10,
    "hand-5s": 10,
    "per-batch": 20,
    "per-record": 20,
}
"""Commits on one partition that are waited for. Those at 30 s are too few for a conclusion, on purpose: enough of them take four minutes,
and tests/spark/test_offsets_behaviour.py concludes from as many."""


def commit(consumer: Consumer) -> None:
    """Commit where it stands; while the group rebalances, or before its first record, the next one does it."""
    with suppress(KafkaException):
        consumer.commit(asynchronous=False)


class Clients:
    """Consumers of one topic that is written all the time."""

    def __init__(self, bootstrap: str, stack: ExitStack) -> None:
        self.bootstrap, self.stack = bootstrap, stack
        self.stop = threading.Event()
        self.times: dict[str, dict[bytes, list[int]]] = defaultdict(lambda: defaultdict(list))
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic("ticks", PARTITIONS, 1)])["ticks"].result(60)
        stack.callback(self.stop.set)
        self.run(self.produce)
        for group, milliseconds, more in (
            *(("java-1s", 1000, ()), ("java-5s", 5000, ()), ("java-30s", 30000, ())),
            ("java-kip848-5s", 5000, ("group.protocol=consumer",)),
        ):
            self.console(group, "enable.auto.commit=true", f"auto.commit.interval.ms={milliseconds}", *more)
        self.run(self.consume, "librdkafka-5s", lambda _: None, {"enable.auto.commit": True, "auto.commit.interval.ms": 5000})
        self.run(self.consume, "hand-5s", self.timer(5.0), {})
        self.run(self.batches)
        self.run(self.consume, "per-record", commit, {})

    def run(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        thread.start()
        self.stack.callback(thread.join, 30)
        self.stack.callback(self.stop.set)

    def produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap})
        number = 0
        while not self.stop.wait(0.02):
            producer.produce("ticks", b"x", partition=number % PARTITIONS)
            producer.poll(0)
            number += 1
        producer.flush(10)

    def console(self, group: str, *properties: str) -> None:
        command = [java(), "-Xmx128m", "-cp", broker_classpath(print), "org.apache.kafka.tools.consumer.ConsoleConsumer"]
        command += ["--bootstrap-server", self.bootstrap, "--topic", "ticks", "--group", group]
        for one in properties:
            command += ["--command-property", one]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)

    def open(self, group: str, more: dict[str, Any]) -> Consumer:
        consumer = Consumer(
            {"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False, "auto.offset.reset": "latest", **more}
        )
        consumer.subscribe(["ticks"])
        return consumer

    def consume(self, group: str, after: Callable[[Consumer], object], more: dict[str, Any]) -> None:
        consumer = self.open(group, more)
        while not self.stop.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                after(consumer)
        consumer.close()

    def timer(self, seconds: float) -> Callable[[Consumer], None]:
        due = [time.monotonic() + seconds]

        def when_due(consumer: Consumer) -> None:
            if time.monotonic() >= due[0]:
                due[0] = time.monotonic() + seconds
                commit(consumer)

        return when_due

    def batches(self) -> None:
        consumer, pick = self.open("per-batch", {}), random.Random(1)
        while not self.stop.is_set():
            if consumer.consume(100, 0.2):
                self.stop.wait(pick.uniform(0.1, 2.5))  # the work on the batch
                commit(consumer)
        consumer.close()

    def wait_for_commits(self) -> None:
        """Until every group has committed as often as WANTED, by the offsets topic itself."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "none", "enable.auto.commit": False})
        seen: Counter[str] = Counter()
        deadline = time.monotonic() + 300
        while not (partitions := consumer.list_topics("__consumer_offsets", timeout=30).topics["__consumer_offsets"].partitions):
            assert time.monotonic() < deadline, "the brokers have not made the offsets topic yet"
            time.sleep(0.2)
        consumer.assign([TopicPartition("__consumer_offsets", partition, 0) for partition in partitions])
        while any(seen[group] < PARTITIONS * count for group, count in WANTED.items()):
            assert time.monotonic() < deadline, seen
            for message in consumer.consume(1000, 0.5):
                if message.error() is None and message.key()[:2] == b"\x00\x01":
                    length = struct.unpack_from(">h", message.key(), 2)[0]
                    group = message.key()[4 : 4 + length].decode()
                    seen[group] += 1
                    self.times[group][message.key()].append(message.timestamp()[1])
        consumer.close()


@dataclass(frozen=True)
class Groups:
    """The behaviour table by group, and when the broker wrote each group's commits, in milliseconds, by partition."""

    rows: dict[str, dict[str, Any]]
    times: dict[str, list[list[int]]]

    def __getitem__(self, group: str) -> dict[str, Any]:
        return self.rows[group]

    def kept_time(self, group: str, interval: int) -> bool:
        """Whether on each partition nine of ten commits came one interval after the last, within half of what the inference allows.

        Then the inference has no excuse. A busy machine does not keep time, and one partition that does not is enough for "unknown".
        """
        allowed = max(TOLERANCE.least_ms, interval * TOLERANCE.share) / 2
        for times in self.times[group]:
            off = [abs(later - earlier - interval) for earlier, later in pairwise(times)]
            if sum(one <= allowed for one in off) < 0.9 * len(off):
                return False
        return True


@pytest.fixture(scope="module")
def groups(tmp_path_factory: pytest.TempPathFactory) -> Groups:
    folder = tmp_path_factory.mktemp("history")
    with lifecycle.start("none", directory=tmp_path_factory.mktemp("sandbox")) as sandbox:
        with ExitStack() as stack:
            clients = Clients(sandbox.bootstrap, stack)
            clients.wait_for_commits()
        done = subprocess.run(job(sandbox.bootstrap, folder), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (manifest,) = folder.glob("behaviour/*/manifest.json")
    assert json.loads(manifest.read_text())["offsets_retention_ms"] == 14 * 86_400_000  # as the sandbox sets it
    rows = {row["group_id"]: row for row in pq.read_table(manifest.parent / "groups.parquet").to_pylist()}
    return Groups(rows=rows, times={group: list(times.values()) for group, times in clients.times.items()})


@pytest.mark.parametrize(
    ("group", "interval"),
    [("java-1s", 1000), ("java-5s", 5000), ("java-kip848-5s", 5000), ("librdkafka-5s", 5000), ("hand-5s", 5000)],
)
def test_commits_on_a_timer_are_consistent_with_auto_commit(groups: Groups, group: str, interval: int) -> None:
    row = groups[group]
    if row["auto_commit"] == "unknown":
        assert not groups.kept_time(group, interval), row["auto_commit_reason"]
        assert row["auto_commit_interval_ms"] is None
        return
    assert (row["auto_commit"], row["auto_commit_interval_ms"]) == ("consistent", interval), row["auto_commit_reason"]
    assert "timer written by hand" in row["auto_commit_reason"]


def test_few_commits_are_no_conclusion(groups: Groups) -> None:
    row, intervals = groups["java-30s"], sum(len(times) - 1 for times in groups.times["java-30s"])
    if intervals >= 8:  # the others were so slow that these came to be enough
        assert row["auto_commit_interval_ms"] in (30_000, None), row["auto_commit_reason"]
        return
    assert (row["auto_commit"], row["auto_commit_interval_ms"]) == ("unknown", None)
    assert "too few commits" in row["auto_commit_reason"]


@pytest.mark.parametrize("group", ["per-batch", "per-record"])
def test_commits_that_follow_the_work_are_not_taken_for_auto_commit(groups: Groups, group: str) -> None:
    assert groups[group]["auto_commit"] in ("unlikely", "unknown"), groups[group]["auto_commit_reason"]


def test_members_and_timeouts_are_those_the_clients_joined_with(groups: Groups) -> None:
    assert (groups["java-5s"]["group_type"], groups["java-5s"]["assignor"]) == ("classic", "range")
    assert groups["java-kip848-5s"]["group_type"] == "consumer"
    assert (groups["per-record"]["session_timeout_ms"], groups["per-record"]["rebalance_timeout_ms"]) == (45_000, 300_000)
    assert groups["per-record"]["generations"] >= 1
