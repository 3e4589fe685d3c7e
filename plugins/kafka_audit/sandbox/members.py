"""Consumer group members, with two client libraries: each reads its topics, commits the offsets of the seed, and may stay in the group."""

import threading
import time
from collections.abc import Mapping
from contextlib import closing
from typing import TypeAlias, TypeVar

import confluent_kafka
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.errors import (
    CommitFailedError,
    CoordinatorLoadInProgressError,
    CoordinatorNotAvailableError,
    IllegalStateError,
    NoError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownTopicOrPartitionError,
)
from kafka.structs import OffsetAndMetadata

from kafka_audit.errors import CollectionError
from kafka_audit.sandbox.definition import Group

SETTLE_TIMEOUT_S = 240
_JOIN_PATIENCE_S = 6.0
_MOVING = (CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError)
FOR_NOW = {
    *("_WAIT_COORD", "_TIMED_OUT", "_TRANSPORT", "REQUEST_TIMED_OUT", "UNKNOWN_TOPIC_OR_PART"),
    *("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE", "COORDINATOR_LOAD_IN_PROGRESS"),
}
"""librdkafka's names of the errors after which a commit is retried; its ``retriable()`` is true only for errors of transactions."""
_A_DAY_MS = 86_400_000
_Partition = TypeVar("_Partition", bound=tuple[str, int])


class HandCommitting:
    """A kafka-python consumer of a classic group that commits by hand, or never."""

    def __init__(self, group: Group, bootstrap: str, partitions: Mapping[str, int]) -> None:
        self._group, self._bootstrap, self._expected = group, bootstrap, _expected(group, partitions)
        self._consumer = self._connect()

    def _connect(self) -> KafkaConsumer:
        return KafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=self._group.id,
            group_instance_id=_instance(self._group),
            client_id=f"{self._group.topics[0]}-reader",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            allow_auto_create_topics=False,
            metadata_max_age_ms=_A_DAY_MS,  # CON-08 needs a consumer that has not noticed a new partition yet
            max_poll_interval_ms=_A_DAY_MS,
            fetch_max_wait_ms=100,
        )

    def settle(self) -> None:
        deadline, patience = _Deadline(self._group.id), _JOIN_PATIENCE_S
        while not self._read_and_commit(deadline, patience=time.monotonic() + patience):
            # kafka-python 3.0.12: if metadata arrives while the group is joining, the member is sometimes left without
            # partitions, or rebalances for ever. Replacing it by a new member works.
            self._consumer.close(autocommit=False)
            self._consumer = self._connect()
            patience *= 2  # on a slow machine the first may not be enough

    def _read_and_commit(self, deadline: "_Deadline", *, patience: float) -> bool:
        """Return False if the member has not finished its first rebalances by ``patience`` (monotonic seconds)."""
        consumer = self._consumer
        consumer.subscribe(list(self._group.topics))
        while time.monotonic() < patience:
            deadline.check("commit")
            consumer.poll(timeout_ms=500)
            if {(p.topic, p.partition) for p in consumer.assignment()} != self._expected:
                continue
            try:
                ends = consumer.end_offsets(list(consumer.assignment()))
                if any((consumer.position(partition) or 0) < end for partition, end in ends.items()):
                    continue
                if self._group.commits != "never":
                    consumer.commit({p: OffsetAndMetadata(offset, "", -1) for p, offset in _targets(self._group, ends).items()})
                return True
            except (RebalanceInProgressError, CommitFailedError, IllegalStateError):
                continue
        return False

    def hold(self, stop: threading.Event) -> None:
        if self._group.stuck:
            self._be_waited_for(stop)
        while not stop.is_set():
            # Pause again each time: after a rebalance partitions are not paused, and a fetch could reset a commit that is out of range.
            self._consumer.pause(*self._consumer.assignment())
            self._consumer.poll(timeout_ms=0)
            # Wait here, not in poll: with all partitions paused and records buffered, poll keeps a core busy (kafka-python 3.0.12).
            stop.wait(0.5)

    def _be_waited_for(self, stop: threading.Event) -> None:
        """Let another member join. Without being polled, this one sends heartbeats and joins no rebalance, which cannot end therefore."""
        with closing(self._connect()) as other:
            other.subscribe(list(self._group.topics))
            while not stop.is_set():
                other.poll(timeout_ms=500)

    def close(self) -> None:
        self._consumer.close(autocommit=False)


class Librdkafka:
    """A confluent-kafka consumer of a classic or KIP-848 group, with auto-commit or committing by hand."""

    def __init__(self, group: Group, bootstrap: str, partitions: Mapping[str, int]) -> None:
        self._group, self._expected = group, _expected(group, partitions)
        classic_only = {"session.timeout.ms": 45_000} if group.protocol == "classic" else {}
        static = {"group.instance.id": _instance(group)} if group.static else {}
        self._consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group.id,
                "client.id": f"{group.topics[0]}-reader",
                "group.protocol": group.protocol,
                "enable.auto.commit": group.commits == "auto",
                "auto.commit.interval.ms": 500,
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "allow.auto.create.topics": False,
                "max.poll.interval.ms": _A_DAY_MS,
                **classic_only,
                **static,
            }
        )

    def settle(self) -> None:
        consumer, deadline = self._consumer, _Deadline(self._group.id)
        consumer.subscribe(list(self._group.topics))
        while {(p.topic, p.partition) for p in consumer.assignment()} != self._expected:
            consumer.poll(0.1)
            deadline.check("be given partitions")
        ends = {(p.topic, p.partition): consumer.get_watermark_offsets(p, timeout=10)[1] for p in consumer.assignment()}
        while not self._has_read(ends):
            message = consumer.poll(0.1)
            if message is not None and message.error():
                raise CollectionError(f"group {self._group.id!r} could not read: {message.error()}")
            deadline.check("read to the end")
        if self._group.commits == "auto":
            while not self._has_committed(ends):
                consumer.poll(0.1)
                deadline.check("commit by itself")
        elif self._group.commits == "by hand":
            offsets = [confluent_kafka.TopicPartition(*key, offset) for key, offset in _targets(self._group, ends).items()]
            while refused := self._refused(offsets):
                if any(error.name() not in FOR_NOW for error in refused):
                    raise CollectionError(f"group {self._group.id!r} could not commit: {refused[0]}")
                deadline.check(f"commit: {refused[0]}")
                time.sleep(0.2)

    def _refused(self, offsets: list[confluent_kafka.TopicPartition]) -> list[confluent_kafka.KafkaError]:
        """Commit; returns the errors of the coordinator."""
        try:
            return [answer.error for answer in self._consumer.commit(offsets=offsets, asynchronous=False) if answer.error]
        except confluent_kafka.KafkaException as problem:
            return [problem.args[0]]

    def _has_read(self, ends: Mapping[tuple[str, int], int]) -> bool:
        # Before anything is read from a partition, its position is a negative number.
        positions = self._consumer.position(self._consumer.assignment())
        return all(p.offset >= ends.get((p.topic, p.partition), 0) or ends.get((p.topic, p.partition)) == 0 for p in positions)

    def _has_committed(self, ends: Mapping[tuple[str, int], int]) -> bool:
        committed = self._consumer.committed(self._consumer.assignment(), timeout=10)
        return all(p.offset >= ends.get((p.topic, p.partition), 0) for p in committed)

    def hold(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self._consumer.pause(self._consumer.assignment())
            self._consumer.poll(0.5)

    def close(self) -> None:
        self._consumer.close()


class OffsetsOnly:
    """No member: commits are written through the admin API, as by offset tools and by consumers with their own offset store."""

    def __init__(self, group: Group, bootstrap: str, partitions: Mapping[str, int]) -> None:
        self._group, self._bootstrap, self._expected = group, bootstrap, _expected(group, partitions)
        self._admin = KafkaAdminClient(bootstrap_servers=bootstrap, client_id="offset-import")

    def settle(self) -> None:
        partitions = [TopicPartition(topic, partition) for topic, partition in sorted(self._expected)]
        with closing(KafkaConsumer(bootstrap_servers=self._bootstrap, enable_auto_commit=False, allow_auto_create_topics=False)) as reader:
            ends = reader.end_offsets(partitions)
        commit_offsets(self._admin, self._group.id, _targets(self._group, ends))

    def hold(self, stop: threading.Event) -> None:
        """There is nothing to keep alive."""

    def close(self) -> None:
        self._admin.close()


Member: TypeAlias = HandCommitting | Librdkafka | OffsetsOnly
"""One member of one group. ``settle``: join, read to the end of every assigned partition, and commit what the group's definition asks for.

``hold``: stay in the group until ``stop`` is set, without reading or committing anything else. ``close``: leave the group.
"""


def create(group: Group, bootstrap: str, partitions: Mapping[str, int]) -> Member:
    """Return the member that the group's definition asks for; partitions is topic -> partition count."""
    if group.client == "kafka-python":
        return HandCommitting(group, bootstrap, partitions)
    return Librdkafka(group, bootstrap, partitions) if group.client == "confluent-kafka" else OffsetsOnly(group, bootstrap, partitions)


def commit_offsets(admin: KafkaAdminClient, group_id: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Commit for a group without members; retry while its coordinator is being created, loads, or does not know a new topic yet.

    alter_group_offsets returns an error per partition instead of raising; each of them counts here.
    Raises CollectionError if a partition is refused or SETTLE_TIMEOUT_S passes.
    """
    deadline = _Deadline(group_id)
    while True:
        try:
            answers = admin.alter_group_offsets(group_id, {p: OffsetAndMetadata(offset, "", -1) for p, offset in offsets.items()})
        except _MOVING:
            answers = dict.fromkeys(offsets, CoordinatorNotAvailableError)
        refused = {partition: error for partition, error in answers.items() if error is not NoError}
        if not refused:
            return
        words = ", ".join(f"{p.topic}-{p.partition}: {error.__name__}" for p, error in refused.items())
        if any(error not in (*_MOVING, UnknownTopicOrPartitionError) for error in refused.values()):
            raise CollectionError(f"group {group_id!r} could not commit {words}")
        deadline.check(f"commit {words}")
        time.sleep(0.2)


def _instance(group: Group) -> str | None:
    return f"{group.topics[0]}-reader-0" if group.static else None


def _expected(group: Group, partitions: Mapping[str, int]) -> set[tuple[str, int]]:
    return {(topic, partition) for topic in group.topics for partition in range(partitions[topic])}


def _targets(group: Group, ends: Mapping[_Partition, int]) -> dict[_Partition, int]:
    """The offset to commit for each partition, a pair or a TopicPartition of kafka-python, from its log end."""
    return {
        key: max(0, end - group.behind.get(f"{key[0]}-{key[1]}", 0))
        for key, end in ends.items()
        if f"{key[0]}-{key[1]}" not in group.without
    }


class _Deadline:
    def __init__(self, group_id: str) -> None:
        self._group_id, self._at = group_id, time.monotonic() + SETTLE_TIMEOUT_S

    def check(self, what: str) -> None:
        if time.monotonic() > self._at:
            raise CollectionError(f"group {self._group_id!r} did not {what} within {SETTLE_TIMEOUT_S} s")
