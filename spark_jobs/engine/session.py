"""Builds the Spark session: the one place that knows how Spark is set up."""

import functools
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Any, TypeVar

from py4j.java_gateway import JavaClass, JavaMember, JavaPackage, JVMView  # type: ignore[import-untyped]  # it ships no types
from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

from kafka_audit.submit import (
    DEFAULT_CONF,
    DRIVER_JAVA_OPTIONS,
    JAVA_OPTIONS,
    LOOPBACK_CONF,
    READ_COMMITS_CONF,
    is_local,
    with_class_data,
)

T = TypeVar("T")

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
def with_settings(spark: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Queries planned inside the block use these settings of Spark SQL; they are restored afterwards."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, value in settings.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, earlier)


def whole_stages(spark: SparkSession) -> AbstractContextManager[None]:
    """Queries planned inside the block are compiled by whole stages, which pays from a million rows on."""
    return with_settings(spark, {"spark.sql.codegen.wholeStage": "true"})


def spark_session(app_name: str, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The session of a job or a test. Under spark-submit its ``--master`` and ``--conf`` win, except where a verdict depends on them."""
    builder = SparkSession.builder.appName(app_name)
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # set by spark-submit: a JVM with its own configuration is already there
    if not submitted:
        builder = builder.master("local[2]")
    wanted = {name: value for name, value in DEFAULT_CONF.items() if not submitted or name.startswith("spark.sql.")}
    if submitted:
        SparkContext._ensure_initialized()  # before that, SparkConf() knows nothing of what spark-submit was told
    local = not submitted or is_local(str(SparkConf().get("spark.master")))
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    for name, value in {**wanted, **(conf or {}), **(LOOPBACK_CONF if local else {})}.items():
        builder = builder.config(name, value)
    if not submitted:
        builder = builder.config(JAVA_OPTIONS, with_class_data((conf or {}).get(JAVA_OPTIONS, DRIVER_JAVA_OPTIONS)))
    remember_lookups()
    session = builder.getOrCreate()
    hold_settings(session, conf or {})
    _leave_out_stacks(session)
    return session


def _leave_out_stacks(session: SparkSession) -> None:
    """Name the caller of this thread's queries. Otherwise Spark searches the stack for it at each RDD of a plan, and finds only py4j."""
    session.sparkContext.setLocalProperty("callSite.long", "Python")


def in_threads(session: SparkSession, calls: Iterable[Callable[[], T]]) -> list[T]:
    """Make these calls at the same time, each in a thread that plans its queries with this session's settings; results in order."""

    def begin() -> None:
        # Otherwise expressions that are made in the thread before its first query would follow Spark's defaults (ANSI mode is one).
        SparkSession._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)
        _leave_out_stacks(session)

    with ThreadPoolExecutor(initializer=begin) as pool:
        return list(pool.map(lambda call: call(), calls))


def remember_lookups() -> None:
    """Let py4j ask the JVM only once what a name is: for each ``F.col`` it asks what ``functions`` is, what ``col`` is, and then calls it.

    A class, a package and a static method stay what they are. They are kept as attributes of the object that they were asked of, where
    Python finds them before it asks py4j, and so they are forgotten with the JVM.
    """
    for kind in (JVMView, JavaPackage, JavaClass):
        if not hasattr(kind.__getattr__, "__wrapped__"):
            kind.__getattr__ = _remembering(kind.__getattr__)


def _remembering(look_up: Callable[[Any, str], Any]) -> Callable[[Any, str], Any]:
    @functools.wraps(look_up)
    def found(self: Any, name: str) -> Any:  # noqa: ANN401  (py4j's own)
        value = look_up(self, name)
        if isinstance(value, JavaPackage | JavaClass | JavaMember):
            vars(self)[name] = value
        return value

    return found


def hold_settings(session: SparkSession, conf: Mapping[str, str]) -> None:
    """Give the session the settings that verdicts depend on; of Spark SQL's others only ``conf`` and those of speed may differ."""
    for name in session.conf.getAll:
        if name.startswith("spark.sql.") and name not in _MAY_DIFFER and name not in conf and session.conf.isModifiable(name):
            session.conf.unset(name)
    for name in _FIXED:
        session.conf.set(name, DEFAULT_CONF[name])
