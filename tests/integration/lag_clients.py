"""Real clients of the lag scenarios: a writer, members of groups, and a consumer that counts."""

import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from commit_history_job import offsets
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from kafka import KafkaAdminClient
from kafka.errors import KafkaConnectionError

from kafka_audit.sandbox.members import FOR_NOW

Answer = TypeVar("Answer")
_TIMEOUT_S = 300
# Writes argv[3] records into a transaction, says so, and waits for the kill that leaves it open.
_HANGING = """
import sys
from confluent_kafka import Producer
producer = Producer({"bootstrap.servers": sys.argv[1], "transactional.id": "hangs", "transaction.timeout.ms": 800000, "log_level": 0})
producer.init_transactions(60)
producer.begin_transaction()
for number in range(int(sys.argv[3])):
    producer.produce(sys.argv[2], b"never committed", partition=0, timestamp=int(sys.argv[4]))
assert producer.flush(60) == 0
print("written", flush=True)
sys.stdin.read()
"""


def wait_for(what: str, done: Callable[[], bool]) -> None:
    """Return when the condition holds; the test fails with ``what`` after a minute."""
    deadline = time.monotonic() + _TIMEOUT_S
    while not done():
        assert time.monotonic() < deadline, f"waited {_TIMEOUT_S} s until {what}"
        time.sleep(0.05)


def commit(consumer: Consumer, *positions: TopicPartition) -> None:
    """Commit these offsets; again while the coordinator moves or does not know of a new topic yet."""

    def committed() -> bool:
        try:
            answers = consumer.commit(offsets=list(positions), asynchronous=False)
        except KafkaException as error:
            assert error.args[0].name() in FOR_NOW, error
            return False
        return all(answer.error is None for answer in answers)

    wait_for(f"{list(positions)} is committed", committed)


def administer(bootstrap: str, act: Callable[[KafkaAdminClient], Answer]) -> Answer:
    """Do something as an administrator. A KRaft broker names any broker as controller, also one just killed: then ask again.

    kafka-python draws a bootstrap server at random and waits until it may try that one again, by default up to 30 s, its whole time to
    connect; with two of three brokers dead it may draw only these.
    """
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        try:
            with closing(KafkaAdminClient(bootstrap_servers=bootstrap, reconnect_backoff_max_ms=200)) as admin:
                return act(admin)
        except KafkaConnectionError:
            assert time.monotonic() < deadline, "no broker takes the request"


def write(bootstrap: str, counts: dict[str, int], timestamp_ms: int, *, abort: bool = False, **settings: object) -> None:
    """Append that many records to partition 0 of each topic; when this returns, every one is acknowledged and a transaction has its marker.

    With ``transactional.id`` they are one transaction, which is committed, or aborted.
    """
    refused: list[str] = []
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0, "linger.ms": 5, **settings})
    transactional = "transactional.id" in settings
    if transactional:
        producer.init_transactions(_TIMEOUT_S)
        producer.begin_transaction()
    for topic, count in counts.items():
        for number in range(count):
            value = f"{topic} {number}".encode()
            producer.produce(topic, value, partition=0, timestamp=timestamp_ms, on_delivery=lambda e, _: e and refused.append(str(e)))
    assert producer.flush(_TIMEOUT_S) == 0  # what was not sent yet would not become aborted records
    if transactional:
        (producer.abort_transaction if abort else producer.commit_transaction)(_TIMEOUT_S)
    assert not refused, refused
    if transactional:  # a commit is acknowledged before brokers write its markers
        wait_for("the markers are written", lambda: all(_no_open_transaction(bootstrap, topic) for topic in counts))


def _no_open_transaction(bootstrap: str, topic: str) -> bool:
    stable = offsets(bootstrap, "end_offsets", topic=topic, isolation="read_committed")
    return stable == offsets(bootstrap, "end_offsets", topic=topic)


def leave_a_transaction_open(bootstrap: str, topic: str, count: int, timestamp_ms: int) -> None:
    """Write records in a transaction from a process of its own and kill that before it commits."""
    command = [sys.executable, "-c", _HANGING, bootstrap, topic, str(count), str(timestamp_ms)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "written\n"
        finally:
            process.kill()


class Member:
    """One member of a group that reads partition 0 of its topics; it commits only what it is told to."""

    def __init__(self, bootstrap: str, group: str, *topics: str, protocol: str = "classic") -> None:
        self._group = group
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "client.id": f"{group}-client",
                "group.protocol": protocol,
                "enable.auto.commit": False,
                "enable.auto.offset.store": False,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "max.poll.interval.ms": 3_600_000,
                "fetch.wait.max.ms": 50,
                "log_level": 0,
            }
        )
        self.subscribe(*topics)

    def subscribe(self, *topics: str) -> None:
        """Read these topics and no others; returns when the group has given their partitions to this member."""
        self._consumer.subscribe(list(topics))
        self._read: dict[str, int] = {}
        wait_for(f"{self._group} has {topics}", lambda: self._assigned(topics))

    def _assigned(self, topics: tuple[str, ...]) -> bool:
        self._keep(self._consumer.consume(1, 0.05))
        return {one.topic for one in self._consumer.assignment()} == set(topics)

    def _keep(self, messages: list) -> None:
        for message in messages:
            assert message.error() is None, message.error()
            self._read[message.topic()] = message.offset() + 1

    def read_to(self, topic: str, offset: int, *, commit: bool = True) -> None:
        """Read the topic until every record before the offset was taken, and commit exactly that offset."""

        def reached() -> bool:
            if self._read.get(topic, 0) < offset:
                self._keep(self._consumer.consume(100, 0.05))
            return self._read.get(topic, 0) >= offset

        wait_for(f"{self._group} has read {topic} to {offset}", reached)
        if commit:
            self.commit(topic, offset)

    def commit(self, topic: str, offset: int) -> None:
        """Commit the offset."""
        commit(self._consumer, TopicPartition(topic, 0, offset))

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()


def records(bootstrap: str, topic: str, *, isolation: str = "read_uncommitted") -> list[tuple[int, int]]:
    """Offset and timestamp in milliseconds of every record that a consumer gets, from where the log begins to the end it may read."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "counts-and-commits-nothing",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "isolation.level": isolation,
        "enable.partition.eof": True,
        "fetch.wait.max.ms": 50,
        "log_level": 0,
    }
    found = []
    with closing(Consumer(settings)) as consumer:
        consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
        deadline = time.monotonic() + _TIMEOUT_S
        while True:
            assert time.monotonic() < deadline, f"{topic} was not read to its end"
            for message in consumer.consume(1000, 0.1):
                if message.error() is None:
                    found.append((message.offset(), message.timestamp()[1]))
                else:
                    assert message.error().name() == "_PARTITION_EOF", message.error()
                    return found
