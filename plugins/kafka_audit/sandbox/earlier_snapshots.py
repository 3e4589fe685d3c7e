"""Takes the earlier snapshots of a seeded cluster that its audit compares with, and then makes the seed's change."""

import time
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import ConfigResourceType

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.snapshot import take_snapshot
from kafka_audit.errors import CollectionError
from kafka_audit.jars.fetch import Progress
from kafka_audit.sandbox import disks, leaders
from kafka_audit.sandbox.definition import Change, Seed, load
from kafka_audit.sandbox.disks import partition_named
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.sandbox.members import commit_offsets
from kafka_audit.sandbox.seed import alter_configs, create_topics, refusals
from kafka_audit.sandbox.state import Folder
from kafka_audit.store.layout import EvidenceRoot, new_id

_DELETE_TIMEOUT_S = 30
_SECOND_LOOK_S = 1.0
"""The disk that the seed fails stays failed, so the snapshot need not read unhealthy partitions twice."""


def make_past(sandbox: Sandbox, seed: str, *, root: Path, cluster: str, progress: Progress = lambda message: None) -> None:
    """Take the seed's earlier snapshots, at least a second apart, then change the cluster; CollectionError if the brokers refuse."""
    definition = load(seed)
    for number in range(definition.earlier_snapshots):
        started = time.monotonic()
        now = datetime.now(timezone.utc)
        progress(f"Taking earlier snapshot {number + 1} of {definition.earlier_snapshots}")
        take_snapshot(
            settings=ConnectionSettings.from_mapping(sandbox.audit_connection, where=str(sandbox.directory)),
            root=EvidenceRoot(path=root),
            cluster=cluster,
            snapshot_id=new_id(now, f"{now.isoformat()} {number}"),
            now=lambda: datetime.now(timezone.utc),
            second_look_seconds=_SECOND_LOOK_S,
        )
        time.sleep(max(0.0, 1.1 - (time.monotonic() - started)))  # ids differ, and sort, by the second
    _change(definition, sandbox)


def _change(seed: Seed, sandbox: Sandbox) -> None:
    """Make the seed's change, if it has one."""
    change = seed.change
    if change is None:
        return
    with refusals("changing the cluster"), closing(KafkaAdminClient(bootstrap_servers=sandbox.bootstrap, client_id="change")) as admin:
        _break(admin, seed, change, sandbox)
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


def _break(admin: KafkaAdminClient, seed: Seed, change: Change, sandbox: Sandbox) -> None:
    """Make a log dir fail, and what an operator in a hurry does then; and change leaders."""
    state = Folder(sandbox.directory).load()
    if change.log_dir_failure and state and disks.can_fail(change.log_dir_failure, state.brokers):
        disks.fail_log_dir(admin, change.log_dir_failure, state.brokers)
    for name, replicas in change.reassign.items():
        leaders.reassign(admin, name, list(replicas))
    alter_configs(admin, ConfigResourceType.TOPIC, change.configure)
    for name in change.elect_uncleanly:
        leaders.elect_uncleanly(admin, name)
    for name, times in change.change_leaders.items():
        leaders.change_often(admin, seed, name, times)
    leaders.wait_until_reassigned(admin)


def _wait_until_gone(admin: KafkaAdminClient, topics: set[str]) -> None:
    deadline = time.monotonic() + _DELETE_TIMEOUT_S
    while left := topics.intersection(admin.list_topics()):
        if time.monotonic() > deadline:
            raise CollectionError(f"The brokers did not delete {', '.join(sorted(left))} within {_DELETE_TIMEOUT_S} s")
        time.sleep(0.1)
