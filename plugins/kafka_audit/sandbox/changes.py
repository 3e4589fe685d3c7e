"""Changes a seeded cluster between its earlier snapshots and its audit."""

import time
from contextlib import closing

from kafka import KafkaAdminClient

from kafka_audit.errors import CollectionError
from kafka_audit.sandbox.definition import Seed
from kafka_audit.sandbox.members import commit_offsets
from kafka_audit.sandbox.seed import create_topics, partition_named, refusals

_DELETE_TIMEOUT_S = 30


def apply(seed: Seed, bootstrap: str) -> None:
    """Make the seed's change, if it has one. Raises CollectionError if the brokers refuse."""
    change = seed.change
    if change is None:
        return
    with refusals("changing the cluster"), closing(KafkaAdminClient(bootstrap_servers=bootstrap, client_id="change")) as admin:
        if change.recreate:
            admin.delete_topics(list(change.recreate))
            _wait_until_gone(admin, set(change.recreate))
            topics = tuple(topic for topic in seed.topics if topic.name in change.recreate)
            create_topics(admin, seed.model_copy(update={"topics": topics}))
        if change.add_partitions:
            counts = {topic.name: len(topic.replicas) for topic in seed.topics}
            admin.create_partitions({name: counts[name] + more for name, more in change.add_partitions.items()})
        for group, offsets in change.rewind.items():
            commit_offsets(admin, group, {partition_named(name): offset for name, offset in offsets.items()})


def _wait_until_gone(admin: KafkaAdminClient, topics: set[str]) -> None:
    deadline = time.monotonic() + _DELETE_TIMEOUT_S
    while left := topics.intersection(admin.list_topics()):
        if time.monotonic() > deadline:
            raise CollectionError(f"The brokers did not delete {', '.join(sorted(left))} within {_DELETE_TIMEOUT_S} s")
        time.sleep(0.1)
