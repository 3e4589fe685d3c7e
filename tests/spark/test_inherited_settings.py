"""Settings that topics inherit from brokers which differ: what the rows hold, which is not what the broker that was asked has."""

from collections.abc import Callable
from typing import Any

import pytest
from snapshot_builder import Synthetic

pytestmark = pytest.mark.spark

RACKS = {1: "a", 2: "b", 3: "c"}
WEEK, HOUR = "604800000", "3600000"
OF_BROKERS = {
    1: {"min.insync.replicas": "2", "log.retention.hours": "168", "log.cleanup.policy": "compact,delete", "log.retention.bytes": "-1"},
    2: {"min.insync.replicas": "3", "log.retention.minutes": "60", "log.cleanup.policy": "delete,compact", "log.retention.bytes": "1000"},
    3: {"min.insync.replicas": "1", "log.retention.ms": "-1", "log.cleanup.policy": "delete", "message.max.bytes": "not a number"},
}


def cluster() -> Synthetic:
    one = Synthetic().brokers(RACKS, OF_BROKERS)
    inherited = {"retention.ms": WEEK, "retention.bytes": "-1", "cleanup.policy": "delete", "min.insync.replicas": "2"}
    one.topic("own", config={**inherited, "min.insync.replicas": "2"})
    one.topic("inherits", partitions=4).topic("refused", without_config=True).error("topic_configs", "TIMEOUT", topic="refused")
    for row in one.tables["partitions"]:
        if row["topic"] == "inherits":
            row["leader"] = (1, 2, 3, -1)[row["partition"]]
    return one


@pytest.fixture(scope="module")
def topics(rows_of: Callable[..., dict[str, dict[str, Any]]]) -> dict[str, dict[str, Any]]:
    return rows_of(cluster(), "topic", columns=("config", "min_insync_replicas", "min_insync_replicas_max"))


def test_a_topic_has_of_what_it_inherits_the_value_that_protects_least(topics: dict[str, dict[str, Any]]) -> None:
    row = topics["inherits"]
    values = {name: row["config"][name]["value"] for name in ("retention.ms", "retention.bytes", "min.insync.replicas", "cleanup.policy")}
    assert values == {"retention.ms": HOUR, "retention.bytes": "1000", "min.insync.replicas": "1", "cleanup.policy": None}
    assert {row["config"][name]["source"] for name in values} == {"brokers differ"}
    assert (row["min_insync_replicas"], row["min_insync_replicas_max"]) == (1, 3)


def test_a_topic_whose_configuration_was_not_read_has_no_value_of_a_broker(topics: dict[str, dict[str, Any]]) -> None:
    row = topics["refused"]
    assert (row["config"], row["min_insync_replicas"], row["min_insync_replicas_max"]) == (None, None, None)


def test_a_value_of_its_own_stays(topics: dict[str, dict[str, Any]]) -> None:
    row = topics["own"]
    assert (row["config"]["retention.ms"]["value"], row["config"]["cleanup.policy"]["value"]) == (WEEK, "delete")
    assert (row["min_insync_replicas"], row["min_insync_replicas_max"]) == (2, 2)


@pytest.mark.usefixtures("spark")
def test_a_partition_has_the_value_of_its_leader(rows_of: Callable[..., dict[str, dict[str, Any]]]) -> None:
    rows = rows_of(cluster(), "partition", columns=("min_insync_configured", "min_insync_replicas"))
    found = {name: (row["min_insync_configured"], row["min_insync_replicas"]) for name, row in rows.items()}
    of_leaders = {"inherits-0": (2, 2), "inherits-1": (3, 3), "inherits-2": (1, 1), "inherits-3": (None, None)}
    assert found == {"own-0": (2, 2), "refused-0": (None, None), **of_leaders}


def test_the_metadata_of_tiered_topics_must_outlive_the_longest_retention_of_a_broker(
    rows_of: Callable[..., dict[str, dict[str, Any]]],
) -> None:
    one = Synthetic().brokers(RACKS, {1: {"log.retention.hours": "168"}, 2: {"log.retention.hours": "1"}, 3: {"log.retention.hours": "24"}})
    one.topic("__remote_log_metadata").topic("tiered", config={"remote.storage.enable": "true"})
    row = rows_of(one, "topic", columns=("tiered_retention_ms_max",))["__remote_log_metadata"]
    assert row["tiered_retention_ms_max"] == int(WEEK)


def test_brokers_that_agree_leave_every_value_as_it_was_told(rows_of: Callable[..., dict[str, dict[str, Any]]]) -> None:
    same = {"log.retention.hours": "1", "log.cleanup.policy": "compact"}
    one = Synthetic().brokers(RACKS, dict.fromkeys(RACKS, same)).topic("t")
    told = {row["name"]: row["value"] for row in one.tables["topic_configs"]}
    row = rows_of(one, "topic", columns=("config",))["t"]
    assert {name: each["value"] for name, each in row["config"].items()} == told
