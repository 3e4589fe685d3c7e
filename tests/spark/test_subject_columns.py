"""The columns against which rules are checked are the columns that Spark builds."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from snapshot_builder import Synthetic

from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.policy import load_policy
from spark_jobs.engine.evidence import Evidence
from spark_jobs.rows.build import wide_rows

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("subject", SUBJECTS)
def test_a_subject_has_the_promised_columns_in_order_with_their_types(subject: str, spark: SparkSession, tmp_path: Path) -> None:
    snapshot = Synthetic().brokers({1: "a"}).error("offsets", "TIMEOUT", topic="t").write(tmp_path)
    built = wide_rows(subject, Evidence(spark=spark, snapshot=snapshot), load_policy())
    promised = spark.createDataFrame([], SUBJECTS[subject].ddl)
    assert [(name, kind) for name, kind in built.dtypes] == [(name, kind) for name, kind in promised.dtypes]
