"""Spark matches globs as Python does, and as quickly."""

import time

from glob_cases import CASES, generated
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_audit.input_files.glob import glob_to_regex, matches


def test_spark_and_python_match_the_same_names(spark: SparkSession) -> None:
    pairs = [*((glob, name) for glob, name, _ in CASES), *generated(20_000)]
    rows = [(glob, name, glob_to_regex(glob)) for glob, name in pairs]
    found = spark.createDataFrame(rows, "glob string, name string, regex string").select(
        "glob", "name", F.expr("name rlike regex").alias("is")
    )
    differing = [(row["glob"], row["name"]) for row in found.collect() if row["is"] is not matches(row["glob"], row["name"])]

    assert differing == []


def test_a_name_that_nearly_matches_takes_spark_no_longer_than_another(spark: SparkSession) -> None:
    name = F.repeat(F.lit("-"), F.lit(100_000))
    began = time.monotonic()
    (row,) = spark.range(1).select(name.rlike(glob_to_regex("*-*-*-dlq")).alias("is")).collect()

    assert row["is"] is False
    assert time.monotonic() - began < 120  # 8.7 s at 2,000 characters when pieces were sought again: hours at 100,000
