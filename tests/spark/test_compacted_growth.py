"""How far partitions of compacted topics have grown in a day."""

from typing import Any

import pytest
from snapshot_builder import Synthetic

pytestmark = pytest.mark.spark

COLUMNS = ("compacted_growth", "grown_partition", "grown_to_bytes", "grown_from_bytes", "uncompared_partitions")
COMPACT = {"cleanup.policy": "compact,delete", "segment.bytes": "100"}


def topics(**sizes: tuple[int, ...]) -> Synthetic:
    """Compacted topics with the sizes of their partitions, each on three brokers of which the first one is a little ahead."""
    return add_topics(Synthetic().brokers({1: "a", 2: "b", 3: "c"}), COMPACT, "id", **sizes)


def add_topics(cluster: Synthetic, config: dict[str, str], topic_id: str, **sizes: tuple[int, ...]) -> Synthetic:
    for topic, found in sizes.items():
        cluster.topic(topic, partitions=len(found), config=config, topic_id=topic_id)
        for row in cluster.tables["replica_sizes"]:
            if row["topic"] == topic:
                row["size_bytes"] = found[row["partition"]] - row["broker_id"] + 1
    return cluster


def growth(rows: dict[str, dict[str, Any]], topic: str = "state") -> tuple[Any, ...]:
    return tuple(rows[topic][column] for column in COLUMNS)


@pytest.fixture(scope="module")
def a_day_later(rows_of) -> dict[str, dict[str, Any]]:
    now = topics(state=(4000, 6000, 900), added=(6000, 2000), recreated=(6000,), small=(1000, 7))
    add_topics(now, {"cleanup.policy": "delete"}, "id", plain=(6000,))
    yesterday = add_topics(topics(state=(2000, 1500, 5), added=(1500,)), COMPACT, "another", recreated=(1500,))
    earlier = {24: yesterday, 1: topics(state=(4000, 1500, 900)), 72: topics(state=(1, 1, 1))}
    return rows_of(now, "topic", earlier=earlier, columns=COLUMNS)


def test_the_partition_that_grew_by_the_largest_factor_in_a_day_decides(a_day_later) -> None:
    assert growth(a_day_later) == (4.0, 1, 6000, 1500, 0)


@pytest.mark.parametrize(("hours", "factor"), [(72, 2.0), (23, 4.0)])
def test_growth_since_an_older_snapshot_is_spread_over_its_days(hours: float, factor: float, rows_of) -> None:
    rows = rows_of(topics(state=(6000,)), "topic", earlier={hours: topics(state=(1500,))}, columns=COLUMNS)
    assert growth(rows) == (factor, 0, 6000, 1500, 0)


def test_partitions_of_up_to_ten_segments_need_no_past(rows_of, a_day_later) -> None:
    assert growth(a_day_later, "small") == (0.0, None, None, None, 0)
    alone = rows_of(topics(small=(1000, 7), state=(6000,)), "topic", columns=COLUMNS)
    assert growth(alone, "small") == (0.0, None, None, None, 0)
    assert growth(alone) == (None, None, None, None, 1), "a large one does, and there is no earlier snapshot"


def test_a_large_partition_without_a_size_of_a_day_ago_is_not_compared(rows_of, a_day_later) -> None:
    an_hour_later = rows_of(topics(state=(6000,)), "topic", earlier={1: topics(state=(1500,))}, columns=COLUMNS)
    assert growth(an_hour_later) == (None, None, None, None, 1)
    assert growth(a_day_later, "recreated") == (None, None, None, None, 1)


def test_a_partition_that_was_added_hides_no_growth_of_another(a_day_later) -> None:
    assert growth(a_day_later, "added") == (4.0, 0, 6000, 1500, 1)


def test_topics_that_are_not_compacted_are_not_compared(a_day_later) -> None:
    assert growth(a_day_later, "plain") == (0.0, None, None, None, 0)
