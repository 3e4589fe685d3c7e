"""Throttles that a reassignment left behind: what a broker's row tells of its rates, and whether any partition is being reassigned."""

import pytest
from snapshot_builder import Synthetic

pytestmark = pytest.mark.spark

RACKS = {1: "a", 2: "b", 3: "c"}
LEADER, FOLLOWER = "leader.replication.throttled.rate", "follower.replication.throttled.rate"


def cluster_with(*rates: tuple[int, str, str | None, str]) -> Synthetic:
    """Three brokers with these settings: broker, name, value and source."""
    cluster = Synthetic().brokers(RACKS).topic("t")
    for broker, name, value, source in rates:
        cluster.add("broker_configs", broker_id=broker, name=name, value=value, source=source, is_sensitive=value is None, synonyms=[])
    return cluster


def test_the_rates_of_the_dynamic_configuration_are_named_and_no_rate_is_an_empty_list(rows_of) -> None:
    cluster = cluster_with(
        (1, LEADER, "1000", "DYNAMIC_BROKER_CONFIG"),
        (1, FOLLOWER, "2000", "DYNAMIC_DEFAULT_BROKER_CONFIG"),
        (2, LEADER, None, "DYNAMIC_BROKER_CONFIG"),
        (3, LEADER, "9223372036854775807", "DYNAMIC_BROKER_CONFIG"),  # the greatest number: no throttle
        (3, FOLLOWER, "1000", "STATIC_BROKER_CONFIG"),  # brokers do not take it from server.properties
    )
    rows = rows_of(cluster, "broker", columns=["replication_throttles"])
    assert {name: row["replication_throttles"] for name, row in rows.items()} == {
        "1": [f"{FOLLOWER}=2000 (bytes per second)", f"{LEADER}=1000 (bytes per second)"],
        "2": [f"{LEADER}=unknown (bytes per second)"],
        "3": [],
    }


def test_the_rates_of_a_broker_whose_configuration_was_not_read_are_not_known(rows_of) -> None:
    cluster = cluster_with()
    cluster.tables["broker_configs"] = [row for row in cluster.tables["broker_configs"] if row["broker_id"] != 2]
    rows = rows_of(cluster.error("broker_configs", "TIMEOUT", broker_id=2), "broker", columns=["replication_throttles"])
    assert {name: row["replication_throttles"] for name, row in rows.items()} == {"1": [], "2": None, "3": []}


def test_whether_a_reassignment_is_in_progress_is_known_only_of_all_topics(rows_of) -> None:
    def reassigning(cluster: Synthetic) -> int | None:
        (count,) = {row["reassigning_partitions"] for row in rows_of(cluster, "broker", columns=["reassigning_partitions"]).values()}
        topics = rows_of(cluster, "topic", columns=["cluster_reassigning_partitions"])
        (same,) = {row["cluster_reassigning_partitions"] for row in topics.values()}
        assert same == count
        return count

    some = cluster_with()
    some.topics_in_scope = ["t*"]
    assert reassigning(cluster_with()) == 0
    assert reassigning(some) is None, "another topic may be reassigned"
    assert reassigning(cluster_with().error("reassignments", "TIMEOUT")) is None
    some.add("reassignments", topic="t", partition=0, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[])
    assert reassigning(some) == 1


def test_throttle_rates_that_differ_between_brokers_are_no_drift_of_durability_settings(rows_of) -> None:
    cluster = cluster_with((1, LEADER, "1000", "DYNAMIC_BROKER_CONFIG"), (2, LEADER, "2000", "DYNAMIC_BROKER_CONFIG"))
    assert rows_of(cluster, "cluster", columns=["drifting_keys"])["cluster"]["drifting_keys"] == []


def test_cordoned_log_dirs_are_those_that_the_setting_names_and_without_it_none_before_kafka_4_3(rows_of) -> None:
    cluster = cluster_with(
        (1, "cordoned.log.dirs", "/d/0, /d/1,/d/0", "DYNAMIC_BROKER_CONFIG"), (2, "cordoned.log.dirs", "", "DEFAULT_CONFIG")
    )
    cluster.tables["broker_configs"] = [row for row in cluster.tables["broker_configs"] if row["broker_id"] != 3]
    rows = rows_of(cluster, "broker", columns=["cordoned_log_dirs"])
    assert {name: row["cordoned_log_dirs"] for name, row in rows.items()} == {"1": ["/d/0", "/d/1"], "2": [], "3": None}
    # A broker from 4.3 on lists the setting always, so one that does not has left it out. What all brokers support tells an older one.
    for supported, expected in ((None, None), (30, None), (29, [])):
        cluster = cluster_with()
        levels = {"finalized_min": 29, "finalized_max": 29, "supported_min": 7, "supported_max": supported}
        cluster.tables["cluster"][0]["features"] = [{"name": "metadata.version", **levels}]
        rows = rows_of(cluster, "broker", columns=["cordoned_log_dirs"])
        assert [row["cordoned_log_dirs"] for row in rows.values()] == [expected] * 3
    older = Synthetic().brokers(RACKS, None, {1: 1, 2: 2, 3: None}).topic("t")
    found = rows_of(older, "broker", columns=["cordoned_log_dirs"])
    assert {name: row["cordoned_log_dirs"] for name, row in found.items()} == {"1": [], "2": None, "3": None}
