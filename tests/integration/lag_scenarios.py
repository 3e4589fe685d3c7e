"""One story on one cluster: groups that fall behind, recover, stop, leave, and lose records in every way Kafka knows.

Ten snapshots are taken, most of them five minutes apart by a simulated clock and a second or two apart in real time. The simulated clock gives
the snapshots their ids, ``started_at`` and ``read_at``, and the records their CreateTime, so all times that are compared are shifted by the same
amount, which is 0 at the last snapshot. The brokers use the real clock: for the times of commits and transactions, and for what retention
deletes.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from kafka import TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType
from lag_clients import Member, administer, leave_a_transaction_open, wait_for, write
from lag_cluster import LagCluster

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.policy import Policy
from kafka_audit.sandbox.members import commit_offsets
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id
from kafka_audit.store.sealed import OFFSETS

CLUSTER = "lag"
STEP = timedelta(minutes=5)
STEPS = 8
"""How often the clock moves on."""

# Records in each topic when the story begins, all in partition 0; `expired` and `marked` are written in their own ways.
BEGIN = {
    "recovering": 20,
    "falling": 20,
    "slow": 120,
    "stalled": 20,
    "stopped": 20,
    "losing": 500,
    "overtaken": 100,
    "drained": 100,
    "recreated": 50,
    "reborn": 50,
    "orphaned": 30,
    "truncated": 40,
    "hanging": 40,
    "uncommitted": 25,
    "kept": 30,
    "left": 30,
    "rewound": 50,
    "quiet": 30,
    "aborted": 20,
}
# Groups bear the names of their topics. These have committed that much and are left without members.
LEFT_AT = {
    "overtaken": 40,
    "drained": 40,
    "recreated": 40,
    "reborn": 40,
    "orphaned": 30,
    "expired": 12,
    "truncated": 40,
    "rewound": 50,
}
# These keep one member, which has committed that much; the one of `stopped` leaves in the middle of the story.
STAYS_AT = {
    "recovering": 20,
    "falling": 20,
    "slow": 20,
    "stalled": 20,
    "stopped": 20,
    "losing": 400,
    "hanging": 40,
    "quiet": 30,
    "marked": 20,
    "aborted": 20,
}
# Records that each step adds, and how many of them are read where somebody reads.
WRITTEN = {"recovering": 20, "falling": 20, "slow": 20, "stalled": 20, "stopped": 20, "losing": 100}
READ = {"recovering": 5, "falling": 5, "slow": 20, "losing": 20, "stalled": 20, "stopped": 20}
HALTED = ("stalled", "stopped")
"""Who reads no more from the middle on."""
DELETED = 60
"""Records of `losing` that each step deletes."""
_CONFIGS = {"truncated": {"unclean.leader.election.enable": "true"}, "expired": {"segment.ms": "600000"}}
_REPLICAS = {"truncated": [1, 2], "__consumer_offsets": [2, 3, 1]}
_PREFERRED = 0  # as the protocol calls this kind of election


class Clock:
    """The story's time in UTC."""

    def __init__(self) -> None:
        self._behind = STEPS * STEP

    def move(self) -> None:
        """Let five minutes pass."""
        self._behind -= STEP

    def now(self) -> datetime:
        """What a snapshot takes for the present."""
        return datetime.now(timezone.utc) - self._behind

    def ms(self, age: timedelta = timedelta(0)) -> int:
        """That long ago, in milliseconds since the epoch."""
        return round((self.now() - age).timestamp() * 1000)


class Story:
    """Everything that happens; afterwards ``steps`` are its snapshots, of which ``middle`` and ``end`` are whole ones."""

    def __init__(self, cluster: LagCluster, root: Path, policy: Policy) -> None:
        self.cluster, self.root, self.policy = cluster, EvidenceRoot(path=root), policy
        self.steps: list[Snapshot] = []
        self.written, self.read, self.deleted = dict(BEGIN), dict(STAYS_AT), 0
        self.first_ids: dict[str, object] = {}
        self._clock = Clock()
        self._members: dict[str, Member] = {}

    def run(self) -> None:
        """Live through the whole story."""
        self._begin()
        for _ in range(2):
            self._offsets_snapshot()
            self._go_on()
        self._offsets_snapshot()
        self._go_on()
        self.middle = self._snapshot()
        self._go_on(second_half=True)
        self._lose_records()
        self._change_places()
        self._offsets_snapshot()
        self._go_on(second_half=True)
        self.without_coordinator = self._offsets_snapshot(while_reading=self._kill_the_coordinator)
        self._go_on(second_half=True)
        self._write_what_will_be_lost()
        self._offsets_snapshot()
        self._go_on(second_half=True)
        self._elect_the_replica_that_lags()
        self.with_moving_coordinator = self._offsets_snapshot(while_reading=self._move_the_coordinator)
        self._go_on(second_half=True)
        self.end = self._snapshot()

    def close(self) -> None:
        """Have all members leave."""
        for member in self._members.values():
            member.close()

    def _begin(self) -> None:
        self._create("__consumer_offsets", *BEGIN, "expired", "marked")
        self.first_ids = self._topic_ids()
        write(self.cluster.bootstrap, BEGIN, self._clock.ms())
        write(self.cluster.bootstrap, {"expired": 30}, self._clock.ms(age=timedelta(hours=2)))
        write(self.cluster.bootstrap, {"marked": 20}, self._clock.ms(), **{"transactional.id": "marks"})
        with ThreadPoolExecutor(max_workers=4) as pool:
            stay = {group: pool.submit(self._join, group, offset) for group, offset in STAYS_AT.items()}
            left = [pool.submit(self._join, group, offset) for group, offset in LEFT_AT.items()]
            self._members = {group: future.result() for group, future in stay.items()}
            for future in left:
                future.result().close()
        self._members["uncommitted"] = uncommitted = Member(self.cluster.bootstrap, "uncommitted", "uncommitted")
        uncommitted.read_to("uncommitted", 25, commit=False)
        self._members["leaving"] = leaving = Member(self.cluster.bootstrap, "leaving", "kept", "left", protocol="consumer")
        leaving.read_to("kept", 30)
        leaving.read_to("left", 25)

    def _go_on(self, *, second_half: bool = False) -> None:
        """Let a step pass in which the groups that read go on reading."""
        self._clock.move()
        write(self.cluster.bootstrap, WRITTEN, self._clock.ms())
        for topic, count in WRITTEN.items():
            self.written[topic] += count
        for group, count in READ.items():
            if not (second_half and group in HALTED):
                self.read[group] = self.written[group] if second_half and group == "recovering" else self.read[group] + count
                self._members[group].read_to(group, self.read[group])
        self.deleted += DELETED
        self._delete_records("losing", before=self.deleted)

    def _lose_records(self) -> None:
        self._delete_records("overtaken", before=70)
        self._delete_records("drained", before=100)
        # These are so much younger than what `expired` has that they begin a new segment, and the one before can be deleted.
        write(self.cluster.bootstrap, {"expired": 20}, self._clock.ms())
        shorter = ConfigResource(ConfigResourceType.TOPIC, "expired", configs={"retention.ms": "3600000"})
        administer(self.cluster.bootstrap, lambda admin: admin.alter_configs([shorter]))
        wait_for("retention deletes the first segment", lambda: self._log_start("expired") == 30)

    def _change_places(self) -> None:
        self._delete_topics("recreated")
        self._create("recreated")
        write(self.cluster.bootstrap, {"recreated": 15}, self._clock.ms())
        self._join("recreated", 10).close()
        administer(self.cluster.bootstrap, lambda admin: commit_offsets(admin, "rewound", {TopicPartition("rewound", 0): 10}))
        self._members["leaving"].subscribe("kept")
        self._members.pop("stopped").close()
        write(self.cluster.bootstrap, {"aborted": 30}, self._clock.ms(), abort=True, **{"transactional.id": "aborts"})
        leave_a_transaction_open(self.cluster.bootstrap, "hanging", 15, self._clock.ms())
        write(self.cluster.bootstrap, {"hanging": 10}, self._clock.ms())

    def _kill_the_coordinator(self) -> None:
        """Kill the broker that has all groups; no other has them yet when two topics are deleted, so nobody forgets their offsets."""
        self.cluster.kill(2)
        self._delete_topics("orphaned", "reborn")
        self._create("reborn")

    def _move_the_coordinator(self) -> None:
        """Give all groups back to the broker that had them first; none dies."""
        place = TopicPartition("__consumer_offsets", 0)
        wait_for("broker 2 has every commit", lambda: 2 in self._partition(place.topic)["isr_nodes"])
        administer(self.cluster.bootstrap, lambda admin: admin.elect_leaders(_PREFERRED, {place.topic: [place.partition]}))
        wait_for("broker 2 coordinates", lambda: self._partition(place.topic)["leader_id"] == 2)

    def _write_what_will_be_lost(self) -> None:
        wait_for("broker 2 is out of sync", lambda: self._partition("truncated")["isr_nodes"] == [1])
        write(self.cluster.bootstrap, {"truncated": 60}, self._clock.ms(), acks=1)
        self._join("truncated", 100).close()
        write(self.cluster.bootstrap, {"reborn": 10}, self._clock.ms())

    def _elect_the_replica_that_lags(self) -> None:
        self.cluster.kill(1)
        wait_for("nobody leads", lambda: self._partition("truncated")["leader_id"] == -1)
        self.without_leader = self._offsets_snapshot()
        self.cluster.launch(2)
        self.cluster.wait_until_registered()
        wait_for("broker 2 leads without being in sync", lambda: self._partition("truncated")["leader_id"] == 2)
        self.cluster.launch(1)
        self.cluster.wait_until_registered()
        wait_for("broker 1 follows", lambda: sorted(self._partition("truncated")["isr_nodes"]) == [1, 2])

    def _join(self, group: str, offset: int) -> Member:
        member = Member(self.cluster.bootstrap, group, group)
        member.read_to(group, offset)
        return member

    def _offsets_snapshot(self, while_reading: Callable[[], None] | None = None) -> Snapshot:
        snapshot_id = new_id(self._clock.now(), "lag")
        now = self._clock.now if while_reading is None else _once_at_call(2, self._clock.now, while_reading)
        take_snapshot(
            kind=OFFSETS,
            settings=ConnectionSettings.from_mapping({"bootstrap.servers": self.cluster.bootstrap}),
            root=self.root,
            cluster=CLUSTER,
            snapshot_id=snapshot_id,
            policy=self.policy,
            now=now,
        )
        self.steps.append(self.root.snapshot(CLUSTER, snapshot_id, OFFSETS))
        return self.steps[-1]

    def _snapshot(self) -> Snapshot:
        snapshot_id, settings = new_id(self._clock.now(), "lag"), {"bootstrap.servers": self.cluster.bootstrap}
        connection = ConnectionSettings.from_mapping(settings)
        take_snapshot(
            settings=connection, root=self.root, cluster=CLUSTER, snapshot_id=snapshot_id, policy=self.policy, now=self._clock.now
        )
        self.steps.append(self.root.snapshot(CLUSTER, snapshot_id))
        return self.steps[-1]

    def _create(self, *topics: str) -> None:
        wanted = {name: {"assignments": {0: _REPLICAS.get(name, [3, 1, 2])}, "configs": _CONFIGS.get(name, {})} for name in topics}
        administer(self.cluster.bootstrap, lambda admin: admin.create_topics(wanted))
        administer(self.cluster.bootstrap, lambda admin: admin.wait_for_topics(list(topics), timeout_ms=300_000))

    def _delete_topics(self, *topics: str) -> None:
        administer(self.cluster.bootstrap, lambda admin: admin.delete_topics(list(topics)))
        wait_for(f"{topics} are gone", lambda: not set(topics).intersection(self._topic_ids()))

    def _delete_records(self, topic: str, *, before: int) -> None:
        administer(self.cluster.bootstrap, lambda admin: admin.delete_records({TopicPartition(topic, 0): before}))

    def _log_start(self, topic: str) -> int:
        place = TopicPartition(topic, 0)
        return int(administer(self.cluster.bootstrap, lambda admin: admin.list_partition_offsets({place: -2}))[place].offset)

    def _partition(self, topic: str) -> dict[str, Any]:
        (found,) = administer(self.cluster.bootstrap, lambda admin: admin.describe_topics([topic]))
        return found["partitions"][0]

    def _topic_ids(self) -> dict[str, object]:
        return {one["name"]: one["topic_id"] for one in administer(self.cluster.bootstrap, lambda admin: admin.describe_topics())}


def _once_at_call(number: int, now: Callable[[], datetime], event: Callable[[], None]) -> Callable[[], datetime]:
    """``now``, which has something happen at its call of that number."""
    calls = 0

    def asked() -> datetime:
        nonlocal calls
        calls += 1
        if calls == number:
            event()
        return now()

    return asked
