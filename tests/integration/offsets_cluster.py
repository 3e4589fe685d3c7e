"""A cluster whose offsets topic holds records of every type that brokers of Kafka 4.3 write."""

import struct
from collections import Counter
from typing import Any

from commit_history_job import OFFSETS, committed, formatted, offsets
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Position
from group_requests import commit_that_expires, share_member, streams_member
from kafka import KafkaAdminClient, OffsetAndMetadata, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewTopic
from kafka.errors import KafkaError, NoError
from lag_clients import commit, wait_for

CONSUMER_RECORDS = (3, 5, 6, 7, 8)
SHARE_RECORDS = (10, 11, 12, 13, 14, 15)
STREAMS_RECORDS = (17, 19, 20, 21, 22, 23)
OURS = {"by-admin", "by-expression", "classic", "expiring", "kip848", "transactional"}
"""Groups that commit offsets; the console consumers that print them have groups of their own."""


class Cluster:
    """A sandbox with groups of every protocol, all of them stopped, and an offset that has expired."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        self.before_history: Counter[tuple[str, int, bool]] = Counter()
        self.admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        self.admin.create_topics([NewTopic("orders", 300, 1)])
        self.commit("by-admin", range(3), 7, 'note é"')
        self.consume("classic", "orders", {"partition.assignment.strategy": "range"})
        self.consume("kip848", "orders", {"group.protocol": "consumer"})
        self.consume("by-expression", "^ord.*", {"group.protocol": "consumer"})
        self.transactions()
        commit_that_expires(bootstrap, "expiring", "orders", 5, 1000)
        share_member(bootstrap, "share", "orders", lambda: self.has("share", *SHARE_RECORDS))
        streams_member(bootstrap, "streams", "orders", lambda: self.has("streams", *STREAMS_RECORDS) and self.has_tasks())
        wait_for("what expires has expired", lambda: {("expiring", 2, True), ("streams", 17, True)} <= self.written().keys())
        self.admin.delete_group_offsets("by-admin", [TopicPartition("orders", 2)])

    def commit(self, group: str, partitions: range, offset: int, metadata: str = "") -> None:
        wanted = {TopicPartition("orders", p): OffsetAndMetadata(offset, metadata, -1) for p in partitions}

        def done() -> bool:  # the coordinator of a new cluster is being made, and may not know of the topic yet
            try:
                answer = self.admin.alter_group_offsets(group, wanted)
            except KafkaError as problem:
                assert problem.retriable, problem
                return False
            return all(error in {None, NoError} for error in answer.values())

        wait_for(f"{group} has committed", done)

    def consume(self, group: str, topic: str, more: dict[str, str]) -> None:
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": group, "enable.auto.commit": False, **more})
        consumer.subscribe([topic])

        def assigned() -> bool:
            consumer.poll(0.2)
            return bool(consumer.assignment())

        wait_for(f"{group} was assigned something", assigned)
        commit(consumer, Position("orders", 0, 11), Position("orders", 1, 12))
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
        # The end of the last transaction is answered before its marker is written.
        wait_for("no transaction is open", lambda: self.ends() == offsets(self.bootstrap, "end_offsets", isolation="read_committed"))

    def written(self) -> Counter[tuple[str, int, bool]]:
        """How many records of the offsets topic there are of each group and type, tombstones apart, by a plain consumer."""
        found: Counter[tuple[str, int, bool]] = Counter()
        for record in committed(self.bootstrap, OFFSETS):
            kind, length = struct.unpack_from(">hh", record.key)
            found[record.key[4 : 4 + length].decode(), kind, record.value is None] += 1
        return found

    def has(self, group: str, *types: int) -> bool:
        """Whether records of the group of each of these types have been written."""
        return {(group, kind, False) for kind in types} <= self.written().keys()

    def has_tasks(self) -> bool:
        """Whether the member of the streams group has been given its tasks, one for each partition; at first it has none."""
        mine = [
            record.value for record in committed(self.bootstrap, OFFSETS) if struct.unpack_from(">h", record.key)[0] == STREAMS_RECORDS[-2]
        ]
        return any(value is not None and len(value) > 300 * 4 for value in mine)

    def ends(self) -> dict[int, int]:
        return offsets(self.bootstrap, "end_offsets")

    def starts(self) -> dict[int, int]:
        return offsets(self.bootstrap, "beginning_offsets")

    def configure(self, config: dict[str, str]) -> None:
        self.admin.alter_configs([ConfigResource(ConfigResourceType.TOPIC, OFFSETS, config)])

    def formatted(self, formatter: str) -> list[dict[str, Any]]:
        return [one for one in formatted(self.bootstrap, OFFSETS, formatter) if one["key"]["data"]["group"] in OURS]
