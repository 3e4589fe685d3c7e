"""Builds the Spark session: the one place that knows how Spark is set up."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from spark_jobs.submit import DEFAULT_CONF, DRIVER_JAVA_OPTIONS, LOOPBACK_CONF, READ_COMMITS_CONF, is_local

# A verdict depends on these, so they hold whatever spark-submit was told.
_FIXED = (
    "spark.sql.ansi.enabled",
    "spark.sql.legacy.sizeOfNull",
    "spark.sql.session.timeZone",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.variable.substitute",
    "spark.sql.optimizer.nestedSchemaPruning.enabled",
)
# Settings of Spark SQL that change how fast it works and not what it finds. Hundreds of others do change it (how text in quotes is read,
# whether letters' case counts, whether unreadable files are passed over), and each version brings more: they go back to their defaults.
_MAY_DIFFER = frozenset(
    {
        "spark.sql.adaptive.enabled",
        "spark.sql.autoBroadcastJoinThreshold",
        "spark.sql.broadcastTimeout",
        "spark.sql.codegen.wholeStage",
        "spark.sql.execution.arrow.maxRecordsPerBatch",
        "spark.sql.files.maxPartitionBytes",
        "spark.sql.files.openCostInBytes",
        "spark.sql.maxPlanStringLength",
        "spark.sql.shuffle.partitions",
        *DEFAULT_CONF,
        *READ_COMMITS_CONF,
    }
)


@contextmanager
def whole_stages(spark: SparkSession) -> Iterator[None]:
    """What is planned meanwhile is compiled by whole stages, which pays from a million rows on."""
    name = "spark.sql.codegen.wholeStage"
    before = spark.conf.get(name)
    spark.conf.set(name, "true")
    try:
        yield
    finally:
        spark.conf.set(name, str(before))


def spark_session(app_name: str, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session of a job or a test. Under spark-submit its ``--master`` and ``--conf`` win, except where a verdict depends on them."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(app_name)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # set by spark-submit: a JVM with its own configuration is already there
    if not submitted:
        builder = builder.master("local[2]").config("spark.driver.extraJavaOptions", DRIVER_JAVA_OPTIONS)
    wanted = {name: value for name, value in DEFAULT_CONF.items() if not submitted or name.startswith("spark.sql.")}
    if submitted:
        SparkContext._ensure_initialized()  # before that, SparkConf() knows nothing of what spark-submit was told
    local = not submitted or is_local(str(SparkConf().get("spark.master")))
    for name, value in {**wanted, **(conf or {}), **(LOOPBACK_CONF if local else {})}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    hold_settings(session, conf or {})
    return session


def hold_settings(session: SparkSession, conf: Mapping[str, str]) -> None:
    """Give the session the settings that verdicts depend on; of Spark SQL's others only ``conf`` and those of speed may differ."""
    for name in session.conf.getAll:
        if name.startswith("spark.sql.") and name not in _MAY_DIFFER and name not in conf and session.conf.isModifiable(name):
            session.conf.unset(name)
    for name in _FIXED:
        session.conf.set(name, DEFAULT_CONF[name])
