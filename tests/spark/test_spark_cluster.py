"""Jobs on a Spark cluster whose executors have Python and pyarrow, no file of the driver, and no right to write results."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from large_audit import LargeAudit
from pyspark.sql import SparkSession
from remote_application import assert_history_is_that_of_threads, assert_outputs_are_those_of_threads, judged_losing_an_executor, submit
from standalone import SparkCluster, spark_cluster

from kafka_audit.submit import DRIVER_JAVA_OPTIONS, with_class_data

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def cluster() -> Iterator[SparkCluster]:
    with spark_cluster() as started:
        yield started


@pytest.fixture(scope="module")
def history(cluster: SparkCluster, large_audit: LargeAudit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commit history that the application landed, which has also judged ``large_audit`` and has lost an executor over it."""
    command = submit(cluster.master, cluster.python, {"spark.executor.extraJavaOptions": with_class_data(DRIVER_JAVA_OPTIONS)})
    return judged_losing_an_executor(cluster, command, large_audit, tmp_path_factory.mktemp("application")).history


@pytest.mark.usefixtures("history")
def test_a_cluster_that_loses_an_executor_gives_the_same_outputs_as_threads_of_the_driver(
    cluster: SparkCluster, large_audit: LargeAudit
) -> None:
    assert_outputs_are_those_of_threads(cluster, large_audit)


def test_a_commit_history_is_written_by_the_driver_as_threads_of_the_driver_write_it(
    history: Path, spark: SparkSession, tmp_path: Path
) -> None:
    assert_history_is_that_of_threads(history, spark, tmp_path)
