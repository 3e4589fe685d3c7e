"""The brokers contain what the faulty seed says."""

import time
from collections.abc import Iterator
from contextlib import closing

import pytest
from kafka import KafkaConsumer, TopicPartition
from kafka.admin import ConfigResourceType
from seen_cluster import Cluster

from kafka_audit.sandbox.definition import load
from kafka_audit.sandbox.lifecycle import Sandbox

pytestmark = pytest.mark.kafka

HOSTILE = "=cmd|' /C calc'!A0 <script>alert(1)</script>"
OFFLINE = "legacy-import"


@pytest.fixture
def faulty(faulty_cluster: Sandbox) -> Iterator[Cluster]:
    with closing(Cluster(faulty_cluster)) as cluster:
        yield cluster


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
