"""How full brokers' disks are and when they will be full, from this snapshot and earlier ones."""

import pytest
from snapshot_builder import Synthetic

pytestmark = pytest.mark.spark

SIZE = 1000


def disks(*dirs: tuple[int, str, int | None, str | None]) -> Synthetic:
    """Log dirs as (broker, path, usable bytes, error) on volumes of 1000 bytes."""
    cluster = Synthetic()
    for broker in sorted({broker for broker, *_ in dirs}):
        cluster.add("brokers", broker_id=broker, alive=True, answered=True)
    for broker, path, usable, error in dirs:
        cluster.add("log_dirs", broker_id=broker, path=path, usable_bytes=usable, error=error, total_bytes=None if usable is None else SIZE)
    return cluster


@pytest.fixture(scope="module")
def brokers(rows_of):
    now = disks(
        (1, "/filling", 300, None),
        (1, "/roomy", 900, None),
        (2, "/resized", 600, None),
        (3, "/failed", None, "KAFKA_STORAGE_ERROR"),
        (3, "/small", 100, None),
        (4, "/new", 500, None),
        (5, "/untold", None, None),
        (6, "/emptied", 400, None),
        (7, "/old", 800, None),
        (7, "/added", 700, None),
    )
    yesterday = disks(
        (1, "/filling", 500, None),
        (1, "/roomy", 890, None),
        (2, "/resized", 100, None),
        (3, "/small", 110, None),
        (6, "/emptied", 200, None),
        (6, "/gone", 1, None),
        (7, "/old", 900, None),
    )
    yesterday.tables["log_dirs"][2]["total_bytes"] = 600  # held 500 then, 400 now
    last_week = disks((1, "/filling", 990, None), (4, "/new", None, "KAFKA_STORAGE_ERROR"))
    an_hour_ago = disks((1, "/filling", 310, None), (4, "/new", 900, None))
    return rows_of(now, "broker", earlier={24: yesterday, 168: last_week, 1: an_hour_ago})


CASES = {
    "the fullest volume is named, and its pace is that since a day ago": (
        "1",
        {"fullest_log_dir": "/filling", "total_bytes": SIZE, "usable_bytes": 300, "days_to_full": 1.5, "pace_ms": 86_400_000},
    ),
    "a volume that was enlarged was not emptied by that": ("2", {"days_to_full": 3650.0, "usable_bytes": 600}),
    "a failed dir has no size and does not hide a full one": (
        "3",
        {"unmeasured_log_dirs": ["/failed"], "fullest_log_dir": "/small", "days_to_full": 10.0},
    ),
    "an hour is no pace": ("4", {"days_to_full": None, "pace_ms": 0, "unmeasured_log_dirs": []}),
    "a broker that tells no sizes": ("5", {"total_bytes": None, "usable_bytes": None, "unmeasured_log_dirs": ["/untold"], "pace_ms": None}),
    "a volume that empties is never full, and a dir that is gone does not count": ("6", {"days_to_full": 3650.0, "pace_ms": 86_400_000}),
    "a dir that is new leaves the pace of the others": ("7", {"days_to_full": 8.0, "pace_ms": 0}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_brokers_disks(case: str, brokers) -> None:
    resource, expected = CASES[case]
    assert {name: brokers[resource][name] for name in expected} == expected
