"""A healthy sandbox whose settings are changed and restored, with an admin client or, where it cannot, with Kafka's own tools."""

import json
import time
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from judged_here import snapshot_of
from kafka import KafkaAdminClient
from kafka_tools import KafkaTools

from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.store.layout import Snapshot

CLUSTER = "flipped"
_IN_SYNC_TIMEOUT_S = 600

# Topics beside the seed's, by what happens to them.
OWN_TOPICS = ("grown", "led", "read", "recreated", "spare", "thinned")
# Two groups without members that stand on read-0; it has the offsets 0 to 9.
REWOUND, OVERTAKEN = "rewound", "overtaken"

# entity type, entity, setting that is made, setting that was there before (nothing: the override is removed again)
SETTINGS = (
    ("topics", "orders", "min.insync.replicas=1", "min.insync.replicas=2"),
    ("topics", "invoices", "min.insync.replicas=3", None),
    ("topics", "payments", "unclean.leader.election.enable=true", None),
    (
        "topics",
        "inventory",
        "retention.ms=3600000,leader.replication.throttled.replicas=*,follower.replication.throttled.replicas=0:2",
        None,
    ),
    ("topics", "customers", "cleanup.policy=delete", "cleanup.policy=compact"),
    ("topics", "shipments", "max.message.bytes=1000", None),
    ("topics", "clickstream", "message.timestamp.after.max.ms=9223372036854775807,flush.messages=1", None),
    ("topics", "read", "retention.bytes=100", None),
    ("topics", "__consumer_offsets", "min.insync.replicas=1", "min.insync.replicas=2"),
    ("topics", "__transaction_state", "min.insync.replicas=1", "min.insync.replicas=2"),
    ("brokers", "2", "transaction.partition.verification.enable=false", None),
    ("brokers", "3", "num.replica.fetchers=2", None),
    ("brokers", "1", "leader.replication.throttled.rate=10000000,follower.replication.throttled.rate=10000000", None),
)
_GROUP_SETTING = "kafka-configs --alter --entity-type groups --entity-name shipping-kip848"
_QUOTA = "kafka-configs --alter --entity-type clients --entity-name report-reader --add-config consumer_byte_rate"
_KINDS = {"topics": ResourceType.TOPIC, "brokers": ResourceType.BROKER}


def _resource(kind: str, name: str, made: str, before: str | None, *, undo: bool) -> ConfigResource:
    removed = undo and before is None
    pairs = [pair.partition("=") for pair in (before if undo and before else made).split(",")]
    kind_of_change = AlterConfigOpType.DELETE if removed else AlterConfigOpType.SET
    entries = [ConfigEntry(key, None if removed else value, incremental_operation=kind_of_change) for key, _, value in pairs]
    return ConfigResource(_KINDS[kind], name, incremental_configs=entries)


def _done(futures: Mapping[Any, Future[Any]]) -> None:
    for future in futures.values():
        future.result(60)


class Flipped:
    """The sandbox whose settings are changed and restored, and the snapshots that are taken of it."""

    def __init__(self, sandbox: Sandbox, root: Path) -> None:
        self.tools, self.sandbox, self.root = KafkaTools(sandbox.bootstrap), sandbox, root
        self.admin = AdminClient({"bootstrap.servers": sandbox.bootstrap})
        self.snapshots: list[Snapshot] = []

    def snapshot(self) -> Snapshot:
        # Ids are ordered by their second; a number in its place makes waiting for the next one needless.
        second = datetime(2026, 1, 1, tzinfo=timezone.utc) + timedelta(seconds=len(self.snapshots))
        self.snapshots.append(snapshot_of(self.sandbox, self.root, CLUSTER, when=second))
        return self.snapshots[-1]

    def prepare(self) -> None:
        """Add topics and groups; the groups' commits advance within the three snapshots of the history."""
        self._create(*OWN_TOPICS)
        self._wait_for(**{topic: [3] for topic in OWN_TOPICS})
        self.tools.run("kafka-console-producer --topic read --batch-size 1", stdin="".join(f"record {n}\n" for n in range(10)))
        self.tools.run(f"{self._reset(REWOUND)} --group {OVERTAKEN} --to-offset 5")
        self.snapshot()
        self.tools.run_all(f"{self._reset(REWOUND)} --to-latest", f"{self._reset(OVERTAKEN)} --to-offset 6")
        self.snapshot()

    def change(self) -> str:
        """Change everything; returns how the brokers refused the one setting that they do not allow."""
        self._set(undo=False)
        _done(self.admin.delete_topics(["spare", "recreated"]))
        _done(self.admin.create_partitions([NewPartitions("grown", 3)]))
        self.tools.run_all(
            f"{_GROUP_SETTING} --add-config consumer.heartbeat.interval.ms=15000",
            f"{_QUOTA}=1024",
            "kafka-acls --add --allow-principal User:stranger --operation Delete --topic '*'",
            "kafka-acls --add --allow-principal User:auditor --operation Write --topic orders",
            "kafka-features downgrade --feature eligible.leader.replicas.version=0 --feature transaction.version=1",
            f"kafka-delete-records --offset-json-file {self._json('delete', [self._partition('read', offset=8)])}",
            self._reassign(self._partition("thinned", replicas=[1, 2]), self._partition("led", replicas=[2, 3, 1])),
        )
        self._wait_for(recreated=None, spare=None)
        self._create("recreated")
        self.tools.run_all(
            "kafka-leader-election --election-type preferred --topic led --partition 0",
            f"{self._reset(REWOUND)} --to-offset 9",
        )
        self._wait_for(grown=[3, 3, 3], thinned=[2], recreated=[3])
        return self.tools.refusal(f"{_GROUP_SETTING} --add-config consumer.heartbeat.interval.ms=15001")

    def restore(self) -> None:
        """Undo everything, except that topics cannot get their old id back, nor lose partitions; the leader of led-0 stays where it is,
        and the quota becomes one that leaves room.
        """
        self._set(undo=True)
        self._create("spare")
        self.tools.run_all(
            f"{_GROUP_SETTING} --delete-config consumer.heartbeat.interval.ms",
            f"{_QUOTA}=10485760",
            "kafka-acls --remove --force --allow-principal User:stranger --operation Delete --topic '*'",
            "kafka-acls --remove --force --allow-principal User:auditor --operation Write --topic orders",
            "kafka-features upgrade --feature eligible.leader.replicas.version=1 --feature transaction.version=2",
            self._reassign(self._partition("thinned", replicas=[1, 2, 3])),
            f"{self._reset(REWOUND)} --group {OVERTAKEN} --to-latest",
        )
        self._wait_for(grown=[3, 3, 3], thinned=[3], spare=[3])

    def _set(self, *, undo: bool) -> None:
        for setting in SETTINGS:  # a broker's settings are sent to that broker alone
            _done(self.admin.incremental_alter_configs([_resource(*setting, undo=undo)]))

    def _create(self, *topics: str) -> None:
        _done(self.admin.create_topics([NewTopic(topic, 1, replica_assignment=[[1, 2, 3]]) for topic in topics]))

    def _reset(self, group: str) -> str:
        return f"kafka-consumer-groups --reset-offsets --execute --topic read --group {group}"

    def _partition(self, topic: str, **facts: Any) -> dict[str, Any]:
        return {"topic": topic, "partition": 0, **facts}

    def _json(self, name: str, partitions: list[dict[str, Any]]) -> Path:
        path = self.root / f"{name}.json"
        path.write_text(json.dumps({"version": 1, "partitions": partitions}))
        return path

    def _reassign(self, *partitions: dict[str, Any]) -> str:
        return f"kafka-reassign-partitions --execute --reassignment-json-file {self._json('reassign', list(partitions))}"

    def _wait_for(self, **replicas: list[int] | None) -> None:
        """Return when each topic has that many replicas on each partition (None: is gone) and all replicas are in sync."""
        deadline = time.monotonic() + _IN_SYNC_TIMEOUT_S
        with closing(KafkaAdminClient(bootstrap_servers=self.sandbox.bootstrap)) as admin:
            while True:
                seen = {topic["name"]: topic["partitions"] for topic in admin.describe_topics()}
                behind = [name for name, found in seen.items() for p in found if set(p["isr_nodes"]) != set(p["replica_nodes"])]
                counts = {name: [len(p["replica_nodes"]) for p in seen[name]] if name in seen else None for name in replicas}
                if counts == replicas and not behind:
                    return
                assert time.monotonic() < deadline, (counts, behind)
                time.sleep(0.1)
