"""One Spark session for all Spark tests: starting it costs more than all of them."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_jobs.session import spark_session


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    session = spark_session("kafka_audit tests")
    yield session
    session.stop()
