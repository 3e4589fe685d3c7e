"""The brokers contain what the seeds say, and nothing of a sandbox is left after it was stopped."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from kafka import KafkaAdminClient, KafkaConsumer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType

from kafka_audit.errors import ConfigurationError
from kafka_audit.sandbox import lifecycle
from kafka_audit.sandbox.definition import load
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.sandbox.state import Folder

pytestmark = pytest.mark.kafka

HOSTILE = "=cmd|' /C calc'!A0 <script>alert(1)</script>"
OFFLINE = "legacy-import"


class Cluster:
    """What kafka-python's admin client sees of one sandbox."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.admin = KafkaAdminClient(bootstrap_servers=sandbox.bootstrap)
        self.sandbox = sandbox

    def partitions(self) -> dict[str, dict[str, Any]]:
        return {f"{t['name']}-{p['partition_index']}": p for t in self.admin.describe_topics() for p in t["partitions"]}

    def config(self, kind: ConfigResourceType, name: str) -> dict[str, str]:
        answer = self.admin.describe_configs([ConfigResource(kind, name)], config_filter="all")
        return {key: entry["value"] for key, entry in answer[kind.name.lower()][name].items()}

    def groups(self) -> dict[str, tuple[str, str]]:
        return {g["group_id"]: (g["group_type"], g["group_state"]) for g in self.admin.list_groups()}

    def commits(self) -> dict[str, dict[str, int]]:
        answer = self.admin.list_group_offsets(dict.fromkeys(self.groups()))
        return {g: {f"{p.topic}-{p.partition}": o.offset for p, o in found.items()} for g, found in answer.items()}

    def bounds(self) -> dict[str, tuple[int, int]]:
        readable = {name: p for name, p in self.partitions().items() if p["leader_id"] >= 0 and not name.startswith("__")}
        asked = [TopicPartition(*name.rsplit("-", 1)[:1], int(name.rsplit("-", 1)[1])) for name in readable]
        reader = KafkaConsumer(bootstrap_servers=self.sandbox.bootstrap, allow_auto_create_topics=False)
        try:
            starts, ends = reader.beginning_offsets(asked), reader.end_offsets(asked)
        finally:
            reader.close()
        return {f"{p.topic}-{p.partition}": (starts[p], ends[p]) for p in asked}

    def producers(self, topic: str, partition: int) -> int:
        answer = self.admin.describe_producers([TopicPartition(topic, partition)])
        return sum(len(state.active_producers) for state in answer.values())


def _cluster(sandbox: Sandbox) -> Iterator[Cluster]:
    seen = Cluster(sandbox)
    yield seen
    seen.admin.close()


@pytest.fixture
def faulty(faulty_cluster: Sandbox) -> Iterator[Cluster]:
    yield from _cluster(faulty_cluster)


@pytest.fixture
def healthy(healthy_cluster: Sandbox) -> Iterator[Cluster]:
    yield from _cluster(healthy_cluster)


def test_faulty_brokers_differ_where_the_seed_says_so(faulty: Cluster) -> None:
    racks = {b["broker_id"]: b["rack"] for b in faulty.admin.describe_cluster()["brokers"]}
    assert racks == {1: "rack-a", 2: "rack-b", 3: None}
    quorum = faulty.admin.describe_metadata_quorum()["topics"][0]["partitions"][0]
    assert [voter["replica_id"] for voter in quorum["current_voters"]] == [1, 2]
    wanted = {
        "default.replication.factor": "1",
        "min.insync.replicas": "1",
        "auto.create.topics.enable": "true",
        "offsets.retention.minutes": "1440",
        "controlled.shutdown.enable": "true",
        "replica.lag.time.max.ms": "30000",
    }
    slow = {**wanted, "controlled.shutdown.enable": "false", "replica.lag.time.max.ms": "120000"}
    for broker, values in {"1": wanted, "2": slow, "3": wanted}.items():
        config = faulty.config(ConfigResourceType.BROKER, broker)
        assert {key: config[key] for key in values} == values, broker


def test_faulty_log_dir_takes_exactly_its_replicas_with_it(faulty: Cluster) -> None:
    dirs = {(entry["broker"], d["log_dir"]): d["error_code"] for entry in faulty.admin.describe_log_dirs() for d in entry["log_dirs"]}
    assert sorted(error for error in dirs.values() if error) == [56]  # KAFKA_STORAGE_ERROR
    assert [broker for (broker, _), error in dirs.items() if error] == [3]
    partitions = faulty.partitions()
    behind = {
        name: (p["leader_id"], sorted(p["isr_nodes"])) for name, p in partitions.items() if len(p["isr_nodes"]) < len(p["replica_nodes"])
    }
    assert behind == {"legacy-import-0": (-1, []), "settlements-0": (1, [1, 2]), "shipments-0": (2, [1, 2]), "wishlists-0": (1, [1])}
    assert {name for name, p in partitions.items() if p["offline_replicas"]} == set(behind)


def test_faulty_topics_are_configured_as_the_seed_says(faulty: Cluster) -> None:
    seed = load("faulty")
    partitions = faulty.partitions()
    for topic in seed.topics:
        for number, replicas in enumerate(topic.replicas):
            name = f"{topic.name}-{number}"
            first = seed.preferred_leaders.get(name, replicas[0])
            assert partitions[name]["replica_nodes"] == [first, *(one for one in replicas if one != first)], name
        config = faulty.config(ConfigResourceType.TOPIC, topic.name)
        assert {key: config[key] for key in topic.config} == topic.config
    assert faulty.config(ConfigResourceType.TOPIC, "__consumer_offsets")["min.insync.replicas"] == "1"
    assert faulty.config(ConfigResourceType.TOPIC, "__transaction_state")["min.insync.replicas"] == "1"
    assert all(len(p["replica_nodes"]) == 3 for name, p in partitions.items() if name.startswith("__"))
    assert not {"refunds"}.intersection(topic.name for topic in seed.topics)


def test_faulty_groups_stand_where_the_seed_left_them(faulty: Cluster) -> None:
    groups, commits, bounds = faulty.groups(), faulty.commits(), faulty.bounds()
    empty = {group for group, (_, state) in groups.items() if state == "Empty"}
    assert empty == {"reporting", "month-end", HOSTILE}
    assert {group for group, (_, state) in groups.items() if state == "PreparingRebalance"} == {"recommendations"}
    assert {state for group, (_, state) in groups.items() if group not in {*empty, "recommendations"}} == {"Stable"}
    assert {group for group, (kind, _) in groups.items() if kind == "consumer"} == {"shipping-kip848"}
    assert groups.keys() == {group.id for group in load("faulty").groups}
    behind = {(g, p): bounds[p][1] - offset for g, found in commits.items() for p, offset in found.items() if bounds[p][1] != offset}
    assert behind == {
        ("warehouse", "inventory-0"): 650,
        ("warehouse", "inventory-1"): 600,
        ("billing", "invoices-0"): 90,
        ("fraud-check", "payments-0"): -250,
        ("email-sender", "email-outbox-0"): 120,
    }
    assert (bounds["invoices-0"][0], commits["billing"]["invoices-0"]) == (60, 10)
    assert commits["newsletter"] == {}


def test_faulty_records_come_from_the_producers_the_seed_names(faulty: Cluster) -> None:
    for topic in load("faulty").topics:
        for partition in range(len(topic.replicas)):
            if topic.name != OFFLINE:
                identified = topic.name not in {"clickstream", "__remote_log_metadata"}  # nobody has written to the second
                assert (faulty.producers(topic.name, partition) > 0) == identified, topic.name


def test_faulty_outbox_records_are_old_and_the_others_new(faulty: Cluster) -> None:
    reader = KafkaConsumer(bootstrap_servers=faulty.sandbox.bootstrap, allow_auto_create_topics=False)
    try:
        old, new = TopicPartition("email-outbox", 0), TopicPartition("orders", 0)
        yesterday = int((time.time() - 86_400) * 1000)
        found = reader.offsets_for_times({old: yesterday, new: yesterday})
    finally:
        reader.close()
    assert found[old] is None
    assert found[new] is not None


def test_figures_do_not_move_once_the_seed_is_written(faulty: Cluster) -> None:
    first = (faulty.bounds(), faulty.commits(), faulty.groups())
    time.sleep(3)
    assert (faulty.bounds(), faulty.commits(), faulty.groups()) == first


def test_healthy_cluster_has_nothing_wrong(healthy: Cluster) -> None:
    assert {b["rack"] for b in healthy.admin.describe_cluster()["brokers"]} == {"rack-a", "rack-b", "rack-c"}
    assert len(healthy.admin.describe_metadata_quorum()["topics"][0]["partitions"][0]["current_voters"]) == 3
    assert all(d["error_code"] == 0 for entry in healthy.admin.describe_log_dirs() for d in entry["log_dirs"])
    assert all(len(p["isr_nodes"]) == 3 for p in healthy.partitions().values())
    for topic in healthy.admin.list_topics():
        assert healthy.config(ConfigResourceType.TOPIC, topic)["min.insync.replicas"] == "2", topic
    for broker in "123":
        config = healthy.config(ConfigResourceType.BROKER, broker)
        assert (config["default.replication.factor"], config["min.insync.replicas"]) == ("3", "2")
        assert config["auto.create.topics.enable"] == "false"
    assert {state for _, state in healthy.groups().values()} == {"Stable"}
    bounds = healthy.bounds()
    for group in load("healthy").groups:
        wanted = {name: end for name, (_, end) in bounds.items() if name.rsplit("-", 1)[0] in group.topics}
        assert healthy.commits()[group.id] == wanted, group.id
    assert all(healthy.producers(name.rsplit("-", 1)[0], int(name.rsplit("-", 1)[1])) for name in bounds)


def test_a_crashed_sandbox_is_cleaned_up_and_a_running_one_is_seeded(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "with space")
    lifecycle.start("none", directory=folder.path)
    first = folder.processes()
    assert len(first) == 3
    with pytest.raises(ConfigurationError, match="is up in"):
        lifecycle.start("none", directory=folder.path)
    first[0].kill()
    psutil.wait_procs(first[:1], timeout=120)
    assert lifecycle.status(directory=folder.path).condition == "degraded"

    with lifecycle.start("none", directory=folder.path) as sandbox:
        assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in first)
        skipped = lifecycle.seed_running("faulty", directory=folder.path)
        assert {verdict.control for verdict in skipped} >= {"BRK-01", "QRM-01", "REP-08", "AUD-01"}
        assert "TOP-01" not in {verdict.control for verdict in skipped}
        with pytest.raises(ConfigurationError, match="topics the seed would create: access-log"):
            lifecycle.seed_running("faulty", bootstrap=sandbox.bootstrap, directory=tmp_path / "other")
        second = folder.processes()
        assert len(second) == 4
        (folder.path / "state.json").unlink()  # as if the machine had lost it: processes are known by their arguments too
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in second)
    assert not folder.data.exists()
    assert folder.log("broker-1").stat().st_size > 0
