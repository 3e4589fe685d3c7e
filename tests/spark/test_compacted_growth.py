"""How far partitions of compacted topics have grown in a day."""

from typing import Any

import pytest
from snapshot_builder import Synthetic

pytestmark = pytest.mark.spark

COLUMNS = ("compacted_growth", "grown_partition", "grown_to_bytes", "grown_from_bytes", "uncompared_partitions")
COMPACT = {"cleanup.policy": "compact,delete", "segment.bytes": "100"}


def topics(cleanup: dict[str, str] | None = None, topic_id: str = "id-state", **sizes: tuple[int, ...]) -> Synthetic:
    """Topics with the sizes of their partitions, each on three brokers of which the first one is a little ahead."""
    cluster = Synthetic().brokers({1: "a", 2: "b", 3: "c"})
    for topic, found in sizes.items():
        cluster.topic(topic, partitions=len(found), config=cleanup or COMPACT, topic_id=topic_id)
        for row in cluster.tables["replica_sizes"]:
            if row["topic"] == topic:
                row["size_bytes"] = found[row["partition"]] - row["broker_id"] + 1
    return cluster


def growth(rows: dict[str, dict[str, Any]], topic: str = "state") -> tuple[Any, ...]:
    return tuple(rows[topic][column] for column in COLUMNS)


def test_the_partition_that_grew_by_the_largest_factor_in_a_day_decides(rows_of) -> None:
    earlier = {24: topics(state=(2000, 1500, 5)), 1: topics(state=(4000, 1500, 900)), 72: topics(state=(1, 1, 1))}
    assert growth(rows_of(topics(state=(4000, 6000, 900)), "topic", earlier=earlier)) == (4.0, 1, 6000, 1500, 0)


def test_growth_since_an_older_snapshot_is_spread_over_its_days(rows_of) -> None:
    assert growth(rows_of(topics(state=(6000,)), "topic", earlier={72: topics(state=(1500,))})) == (2.0, 0, 6000, 1500, 0)
    assert growth(rows_of(topics(state=(6000,)), "topic", earlier={23: topics(state=(1500,))})) == (4.0, 0, 6000, 1500, 0)


def test_partitions_of_up_to_ten_segments_need_no_past(rows_of) -> None:
    assert growth(rows_of(topics(state=(1000, 7)), "topic")) == (0.0, None, None, None, 0)


@pytest.mark.parametrize(
    "earlier",
    [{}, {1: topics(state=(1500,))}, {24: topics(state=(1500,), topic_id="another")}],
    ids=["no snapshot", "an hour old", "another topic"],
)
def test_a_large_partition_without_a_size_of_a_day_ago_is_not_compared(earlier: dict[float, Synthetic], rows_of) -> None:
    assert growth(rows_of(topics(state=(6000,)), "topic", earlier=earlier)) == (None, None, None, None, 1)


def test_a_partition_that_was_added_hides_no_growth_of_another(rows_of) -> None:
    assert growth(rows_of(topics(state=(6000, 2000)), "topic", earlier={24: topics(state=(1500,))})) == (4.0, 0, 6000, 1500, 1)


def test_topics_that_are_not_compacted_are_not_compared(rows_of) -> None:
    assert growth(rows_of(topics({"cleanup.policy": "delete"}, state=(6000,)), "topic")) == (0.0, None, None, None, 0)
