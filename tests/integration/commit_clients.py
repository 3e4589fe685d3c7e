"""Real consumers whose commits are recorded: on auto-commit, on a timer by hand, and after the work.

``python tests/integration/commit_clients.py FILE`` (``make record``) runs them against a sandbox of its own and records the offsets topic
that they wrote. tests/spark/test_recorded_commit_behaviour.py judges what was recorded, so no verdict depends on how busy a machine is.
"""

import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from commit_history_job import job
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_tools import started_java

from kafka_audit.sandbox import lifecycle

PARTITIONS = 3
RECORDED = {
    "java-1s": 20,
    "java-5s": 10,
    "java-kip848-5s": 10,
    "java-30s": 2,
    "librdkafka-5s": 10,
    "hand-5s": 10,
    "per-batch": 20,
    "per-record": 20,
}
"""Commits on each partition that the recording waits for. Those every 30 s are too few for a conclusion, on purpose."""


def commit(consumer: Consumer) -> None:
    """Commit where it stands; while the group rebalances, or before its first record, the next one does it."""
    with suppress(KafkaException):
        consumer.commit(asynchronous=False)


class Clients:
    """Consumers of one topic that is written all the time."""

    def __init__(self, bootstrap: str, stack: ExitStack, groups: Iterable[str] = RECORDED) -> None:
        """``groups``: those of RECORDED that are started."""
        self.bootstrap, self.stack = bootstrap, stack
        self.stop = threading.Event()
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic("ticks", PARTITIONS, 1)])["ticks"].result(60)
        stack.callback(self.stop.set)
        self.run(self.produce)
        java = {
            "java-1s": ("auto.commit.interval.ms=1000",),
            "java-5s": ("auto.commit.interval.ms=5000",),
            "java-30s": ("auto.commit.interval.ms=30000",),
            "java-kip848-5s": ("auto.commit.interval.ms=5000", "group.protocol=consumer"),
        }
        python: dict[str, tuple[Any, ...]] = {
            "librdkafka-5s": (self.consume, lambda _: None, {"enable.auto.commit": True, "auto.commit.interval.ms": 5000}),
            "hand-5s": (self.consume, self.timer(5.0), {}),
            "per-batch": (self.batches,),
            "per-record": (self.consume, commit, {}),
        }
        for group in groups:
            if group in java:
                self.console(group, "enable.auto.commit=true", *java[group])
            else:
                work, *arguments = python[group]
                self.run(work, group, *arguments)

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
        command = [*started_java(), "org.apache.kafka.tools.consumer.ConsoleConsumer"]
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

    def batches(self, group: str) -> None:
        consumer, pick = self.open(group, {}), random.Random(1)
        while not self.stop.is_set():
            if consumer.consume(100, 0.2):
                self.stop.wait(pick.uniform(0.1, 2.5))  # the work on the batch
                commit(consumer)
        consumer.close()

    def wait_for_commits(self, wanted: Mapping[str, int]) -> None:
        """Return when the offsets topic holds so many commits of each group on each partition, on average."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "none", "enable.auto.commit": False})
        seen: Counter[str] = Counter()
        deadline = time.monotonic() + 600
        while not (partitions := consumer.list_topics("__consumer_offsets", timeout=600).topics["__consumer_offsets"].partitions):
            assert time.monotonic() < deadline, "the brokers have not made the offsets topic yet"
            time.sleep(0.2)
        consumer.assign([TopicPartition("__consumer_offsets", partition, 0) for partition in partitions])
        while any(seen[group] < PARTITIONS * count for group, count in wanted.items()):
            assert time.monotonic() < deadline, seen
            for message in consumer.consume(1000, 0.5):
                if message.error() is None and message.key()[:2] == b"\x00\x01":
                    length = struct.unpack_from(">h", message.key(), 2)[0]
                    group = message.key()[4 : 4 + length].decode()
                    seen[group] += 1
        consumer.close()


def read_commits(bootstrap: str, history: Path) -> Path:
    """Run the job that reads the offsets topic into ``history``; returns the folder of its behaviour tables."""
    done = subprocess.run(job(bootstrap, history), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    (manifest,) = history.glob("behaviour/*/manifest.json")
    return manifest.parent


def record(history: Path, target: Path) -> None:
    """Write the raw records that ``read_commits`` kept into one file: partition, offset, timestamp, key and value, as the brokers have them."""
    parts = [pq.read_table(part) for part in sorted(history.glob("raw/[!.]*/records.parquet/*.parquet"))]
    rows = pa.concat_tables(parts).sort_by([("partition", "ascending"), ("offset", "ascending")])
    pq.write_table(rows, target, compression="zstd")


def main(target: Path) -> None:
    with tempfile.TemporaryDirectory() as name, lifecycle.start("none", directory=Path(name) / "sandbox") as sandbox:
        with ExitStack() as stack:
            Clients(sandbox.bootstrap, stack).wait_for_commits(RECORDED)
        read_commits(sandbox.bootstrap, Path(name) / "history")
        record(Path(name) / "history", target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
