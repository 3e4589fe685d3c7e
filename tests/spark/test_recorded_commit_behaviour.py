"""What is inferred from the commits that real clients wrote: recorded once from a live cluster by ``make record``."""

import pytest
from commit_log import WEEK_MS
from coordinator_records import RECORDED, decoded
from pyspark.sql import Row, SparkSession

from spark_jobs.commit_history.describe.commit_behaviour import commit_behaviour
from spark_jobs.commit_history.describe.group_behaviour import group_behaviour
from spark_jobs.engine.tables import table_of

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def groups(spark: SparkSession) -> dict[str, Row]:
    with decoded(spark.read.parquet(str(RECORDED / "commits_of_real_clients.parquet"))) as tables:
        none_empty = table_of(spark, [], "group_id string, empty_since timestamp")
        partitions = commit_behaviour(tables["offset_commits"], none_empty, WEEK_MS)
        return {row.group_id: row for row in group_behaviour(tables["group_records"], partitions).collect()}


@pytest.mark.parametrize(
    ("group", "interval"),
    [("java-1s", 1000), ("java-5s", 5000), ("java-kip848-5s", 5000), ("librdkafka-5s", 5000), ("hand-5s", 5000)],
)
def test_commits_on_a_timer_are_consistent_with_auto_commit(groups: dict[str, Row], group: str, interval: int) -> None:
    row = groups[group]
    assert (row.auto_commit, row.auto_commit_interval_ms) == ("consistent", interval), row.auto_commit_reason
    assert "timer written by hand" in row.auto_commit_reason


def test_few_commits_are_no_conclusion(groups: dict[str, Row]) -> None:
    row = groups["java-30s"]
    assert (row.auto_commit, row.auto_commit_interval_ms) == ("unknown", None)
    assert "too few commits" in row.auto_commit_reason


@pytest.mark.parametrize("group", ["per-batch", "per-record"])
def test_commits_that_follow_the_work_are_not_taken_for_auto_commit(groups: dict[str, Row], group: str) -> None:
    assert groups[group].auto_commit in ("unlikely", "unknown"), groups[group].auto_commit_reason
