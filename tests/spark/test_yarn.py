"""Jobs on YARN whose containers have Spark, Python and pyarrow, no file of the driver, and no right to write results."""

import os
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest
from hadoop_jars import ON_REQUEST
from large_audit import LargeAudit
from pyspark.sql import SparkSession
from remote_application import (
    Done,
    assert_history_is_that_of_threads,
    assert_outputs_are_those_of_threads,
    judged_losing_an_executor,
    submit,
)
from yarn import YarnCluster, yarn_cluster

from kafka_audit.submit import DRIVER_JAVA_OPTIONS

pytestmark = [pytest.mark.spark, ON_REQUEST]


@pytest.fixture(scope="module")
def cluster() -> Iterator[YarnCluster]:
    with yarn_cluster() as started:
        yield started


@pytest.fixture(scope="module")
def done(cluster: YarnCluster, large_audit: LargeAudit, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """An application that has lost a container over ``large_audit``."""
    conf = {
        "spark.submit.deployMode": "client",
        "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent}/jars/*",
        "spark.executor.instances": "2",
        "spark.executor.memory": "768m",
        "spark.executor.extraJavaOptions": DRIVER_JAVA_OPTIONS,
    }
    command = submit("yarn", cluster.python, conf)
    environment = {**os.environ, "HADOOP_CONF_DIR": str(cluster.conf)}
    return judged_losing_an_executor(cluster, command, large_audit, tmp_path_factory.mktemp("application"), environment)


@pytest.mark.usefixtures("done")
def test_yarn_that_loses_a_container_gives_the_same_outputs_as_threads_of_the_driver(cluster: YarnCluster, large_audit: LargeAudit) -> None:
    assert_outputs_are_those_of_threads(cluster, large_audit)


def test_a_commit_history_is_written_by_the_driver_as_threads_of_the_driver_write_it(
    done: Done, spark: SparkSession, tmp_path: Path
) -> None:
    assert_history_is_that_of_threads(done.history, spark, tmp_path)
