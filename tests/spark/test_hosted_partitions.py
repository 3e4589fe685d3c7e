"""What a broker leads and should lead, and which replicas on its disks are stray or do not get on with their move."""

from typing import Any

import pytest
from snapshot_builder import Synthetic

pytestmark = pytest.mark.spark

RACKS = {1: "a", 2: "b", 3: "c"}
LEADERSHIPS = ("led_partitions", "preferred_partitions", "preferred_led_elsewhere")
ODD = ("stray_replicas", "lasting_stray_replicas", "moving_replicas", "stuck_moves", "uncompared_moves")


def test_leaderships_that_are_elsewhere_count_where_the_preferred_leader_is_in_sync(rows_of) -> None:
    cluster = Synthetic().brokers(RACKS)
    cluster.topic("home", replicas=[1, 2, 3]).topic("away", replicas=[1, 2, 3], leader=2).topic(
        "behind", replicas=[1, 2], isr=[2], leader=2
    )
    cluster.topic("offline", replicas=[1], isr=[1], leader=-1)
    rows = rows_of(cluster, "broker", columns=LEADERSHIPS)
    assert {name: tuple(row[column] for column in LEADERSHIPS) for name, row in rows.items()} == {
        "1": (1, 4, 1),
        "2": (2, 0, 0),
        "3": (0, 0, 0),
    }


def test_leaderships_are_not_known_where_partitions_could_not_be_read(rows_of) -> None:
    rows = rows_of(Synthetic().brokers(RACKS).error("partitions", "TIMEOUT"), "broker", columns=(*LEADERSHIPS, *ODD))
    assert {row[column] for row in rows.values() for column in (*LEADERSHIPS, *ODD)} == {None}


def replica(cluster: Synthetic, broker: int, topic: str, lag: int = 0, **columns: Any) -> Synthetic:
    place = {"path": "/data", "partition": 0, "size_bytes": 1, "is_future": False, **columns}
    return cluster.add("replica_sizes", broker_id=broker, topic=topic, offset_lag=lag, **place)


def disks(*, stray: tuple[str, ...] = (), lags: dict[str, int] | None = None) -> Synthetic:
    """Topics on brokers 1 and 2; broker 3 has stray replicas, and broker 1 moves replicas with these offset lags to /new."""
    cluster = Synthetic().brokers(RACKS)
    for topic in ("a", "b", "c", "d"):
        cluster.topic(topic, replicas=[1, 2])
    replica(cluster, 3, "hidden")
    for topic in stray:
        replica(cluster, 3, topic)
    for topic, lag in (lags or {}).items():
        replica(cluster, 1, topic, lag, path="/new", is_future=True)
    return cluster


def odd(rows: dict[str, dict[str, Any]], broker: str) -> tuple[Any, ...]:
    return tuple(rows[broker][column] for column in ODD)


@pytest.fixture(scope="module")
def rows(rows_of) -> dict[str, dict[str, Any]]:
    """Brokers a day and six minutes later."""
    earlier = {24: disks(stray=("b", "c"), lags={"a": 500, "b": 500, "d": -1}), 0.1: disks(stray=("a",), lags={"a": 1})}
    now = disks(stray=("a", "b"), lags={"a": 500, "b": 499, "c": 900, "d": 7})
    return rows_of(now, "broker", earlier=earlier, columns=ODD)


def test_a_stray_replica_lasts_if_it_was_stray_ten_minutes_ago(rows: dict[str, dict[str, Any]]) -> None:
    assert odd(rows, "3") == (["a-0 in /data", "b-0 in /data"], ["b-0 in /data"], 0, [], 0)
    assert odd(rows, "2") == ([], [], 0, [], 0)


def test_a_move_is_stuck_if_it_is_no_less_behind_than_ten_minutes_ago(rows: dict[str, dict[str, Any]]) -> None:
    assert odd(rows, "1") == ([], [], 4, ["a-0 in /new: 500 offsets behind, then 500"], 1)


def test_a_replica_that_was_assigned_then_is_no_lasting_stray(rows_of) -> None:
    then = Synthetic().brokers(RACKS).topic("a", replicas=[1, 2, 3])
    rows = rows_of(disks(stray=("a",)), "broker", earlier={1: then}, columns=ODD)
    assert odd(rows, "3") == (["a-0 in /data"], [], 0, [], 0)


def test_whether_a_move_advances_is_not_known_without_an_older_snapshot_that_read_the_broker(rows_of) -> None:
    unread = disks(lags={"a": 900})
    for name in ("replica_sizes", "log_dirs"):
        unread.tables[name] = [row for row in unread.tables[name] if row["broker_id"] != 1]
    unread.add("log_dirs", broker_id=1, error="TIMEOUT")
    for earlier in ({}, {0.1: disks(lags={"a": 900})}, {1: unread}):
        rows = rows_of(disks(lags={"a": 500}), "broker", earlier=earlier, columns=ODD)
        assert odd(rows, "1") == ([], [], 1, [], 1)


def test_the_replicas_of_a_broker_that_did_not_tell_its_log_dirs_are_not_known(rows_of) -> None:
    silent = disks()
    silent.tables["log_dirs"] = [row for row in silent.tables["log_dirs"] if row["broker_id"] != 2]
    rows = rows_of(silent.add("log_dirs", broker_id=2, error="TIMEOUT"), "broker", columns=ODD)
    assert odd(rows, "2") == (None,) * 5
