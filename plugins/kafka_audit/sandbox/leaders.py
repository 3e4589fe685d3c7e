"""Changes which replicas lead: prefers others, elects them, and makes one without the records leader by force."""

import time

from kafka import KafkaAdminClient, TopicPartition
from kafka.protocol.admin import ElectionType

from kafka_audit.errors import CollectionError
from kafka_audit.sandbox.definition import Seed
from kafka_audit.sandbox.disks import partition_named

_TIMEOUT_S = 60


def prefer(admin: KafkaAdminClient, seed: Seed) -> None:
    """Put other replicas first. No data moves, and the leaders stay until somebody elects the preferred ones."""
    placed = seed.partitions()
    for name, first in seed.preferred_leaders.items():
        reassign(admin, name, [first, *(one for one in placed[name] if one != first)])


def reassign(admin: KafkaAdminClient, name: str, replicas: list[int]) -> None:
    """Give a "topic-partition" these replicas, the preferred leader first; CollectionError if the controllers refuse."""
    answers = admin.alter_partition_reassignments({partition_named(name): replicas})
    refused = [error.__name__ for error in answers.values() if error]
    if refused or not answers:
        raise CollectionError(f"The controllers did not accept the replicas {replicas} of {name}: {refused or 'no answer'}")


def change_often(admin: KafkaAdminClient, seed: Seed, name: str, times: int) -> None:
    """Elect the first two replicas of a "topic-partition" in turn, so that its leader changes that often."""
    first, second, *others = seed.partitions()[name]
    for number in range(times):
        reassign(admin, name, [*((second, first), (first, second))[number % 2], *others])
        _elect(admin, ElectionType.PREFERRED, partition_named(name))


def wait_until_reassigned(admin: KafkaAdminClient) -> None:
    """Wait until no reassignment runs: the audit would meet one that a moment later is over."""
    deadline = time.monotonic() + _TIMEOUT_S
    while moving := admin.list_partition_reassignments():
        if time.monotonic() > deadline:
            raise CollectionError(f"Waited {_TIMEOUT_S} s without success for these reassignments to end: {moving}")
        time.sleep(0.1)


def elect_uncleanly(admin: KafkaAdminClient, name: str) -> None:
    """Make the first living replica of a "topic-partition" without a leader its leader, whatever it has of the records."""
    _elect(admin, ElectionType.UNCLEAN, partition_named(name))


def _elect(admin: KafkaAdminClient, kind: ElectionType, partition: TopicPartition) -> None:
    admin.elect_leaders(kind, {partition.topic: [partition.partition]})
