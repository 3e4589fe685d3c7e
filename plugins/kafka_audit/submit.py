"""What a caller of spark-submit needs to know about the jobs of ``spark_jobs``, without Spark: paths, configuration, driver options."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path

from kafka_audit.errors import ConfigurationError
from kafka_audit.shipped import shipped_folder

JOBS = ("verify", "roll_up_offsets", "read_commits")

JAVA_OPTIONS = "spark.driver.extraJavaOptions"
"""The setting of Spark that DRIVER_JAVA_OPTIONS are for."""

DRIVER_JAVA_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
"""A job lives for seconds, so the quick compiler wins over the thorough one.

With the quick one alone a JVM reserves 48 MB for compiled code, which sixty rules fill: then it compiles no more, or dies.
"""

CLASS_DATA = Path(sys.prefix, "share", "kafka-audit", "spark-classes.jsa")
"""Spark's classes as this environment's JVM has loaded them once (class_data.py); beside it stands the size it must have."""

CLASS_DATA_BYTES = CLASS_DATA.with_suffix(".bytes")

DEFAULT_CONF: Mapping[str, str] = {
    # With Spark's default of 1 GB, 20,000 partitions and 100,000 group partitions spend a third of the time in garbage collection.
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    # Rules rely on these: what cannot be computed is NULL and not an exception, size(NULL) is NULL and not -1,
    # and a timestamp prints the same on every machine.
    "spark.sql.ansi.enabled": "false",
    "spark.sql.legacy.sizeOfNull": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN",
    # SQL is data: without this Spark writes environment variables and Java properties into every ${env:NAME} and ${system:NAME} of it.
    "spark.sql.variable.substitute": "false",
    # A job is one large plan over small tables: compiling whole stages of it, re-planning between its stages and remembering where in
    # Python each expression was made cost more than running it does. Expressions are still compiled: 100,000 rows need that.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    # It loses a column where a struct passes through joins before an array is exploded (Spark 4.2.0: INTERNAL_ERROR_ATTRIBUTE_NOT_FOUND).
    "spark.sql.optimizer.nestedSchemaPruning.enabled": "false",
    # Each table that is broadcast takes a whole page, however short it is. By default a page is 4 MB and more, and a job's eighty short
    # tables would fill the driver's memory; a page of 1 MB holds a longer row, too, because such a row gets a page of its own.
    "spark.buffer.pageSize": "1m",
    # A short table that is broadcast may have to wait for the cores behind the findings of a large cluster, for longer than Spark's 300 s
    # (320,000 partitions on two cores). Negative: for as long as the job may run.
    "spark.sql.broadcastTimeout": "-1",
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    "spark.sql.dataFrameQueryContext.enabled": "false",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.sql.parquet.compression.codec": "zstd",
    # Hadoop gives each file it writes a mode of its own, whatever the umask of the process.
    "spark.hadoop.fs.permissions.umask-mode": "027",
}
"""For ``--conf``, and what the session uses when nothing else is said."""

LOOPBACK_CONF: Mapping[str, str] = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""For a local master (``is_local``), which nobody on another machine has to reach."""

SHARED_FILES = "spark.kafka_audit.sharedFiles"
"""``true`` says that the executors of a master that is not local see the root folder at the same path as the driver."""

SECRET_SETTINGS = (
    "(?i)secret|password|passphrase|token|access[._-]?key|account[.]key([.]|$)|private[.]key|key[._-]pem|jaas"
    "|key[._-]?store[._-]?key|user[.]info"
)
"""Finds the names of settings whose values are secret: those of Spark, Hadoop and Kafka's clients."""

_NO_SECRET = re.compile(
    r"(?i)(file|path|location|class|name|enabled|mechanism|[._-]ms|bitlength|endpoint[.]url)$|provider([.]type)?([.]|$)"
    r"|^spark[.]kubernetes[.](driver|executor)[.]secret(s|keyref)[.]|^spark[.]kubernetes[.]kerberos[.]tokensecret[.]"
)
"""Names that SECRET_SETTINGS finds, too, whose values only say where a secret is or who provides it."""

READ_COMMITS_CONF: Mapping[str, str] = {
    # It may run for long.
    JAVA_OPTIONS: "-XX:+UseParallelGC",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
    # Unlike the jobs that judge, this one is few expressions over many rows.
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200000",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Plans and logs show the options of a source; by default a private key would be among them.
    "spark.redaction.regex": SECRET_SETTINGS,
    "spark.sql.redaction.options.regex": f"{SECRET_SETTINGS}|url",
}
"""For read_commits, on top of DEFAULT_CONF; its ``--jars`` are the Kafka connector's (kafka_audit.jars)."""


def is_secret(name: str) -> bool:
    """Whether the value of a setting of this name is itself a secret."""
    return re.search(SECRET_SETTINGS, name) is not None and _NO_SECRET.search(name) is None


def is_local(master: str) -> bool:
    """Whether the executors are threads of the driver."""
    return re.fullmatch(r"local(\[.*\])?", master) is not None


def sees_files(conf: Mapping[str, str]) -> bool:
    """Whether the executors of an application with this configuration see the files of its driver."""
    return is_local(conf["spark.master"]) or conf.get(SHARED_FILES, "").strip().lower() == "true"


def with_class_data(java_options: str) -> str:
    """Java options of a driver on this machine, with the archive of Spark's classes if this environment has a whole one.

    A JVM ignores an archive that was made by another JVM or from other jars, and warns on standard output, which is switched off. An
    archive that was cut short would kill it, hence the comparison of sizes.
    """
    try:
        whole = CLASS_DATA.stat().st_size == int(CLASS_DATA_BYTES.read_text())
    except (OSError, ValueError):
        whole = False
    return f'{java_options} "-XX:SharedArchiveFile={CLASS_DATA}" -Xlog:disable' if whole else java_options


def job_path(name: str) -> Path:
    """The script of a job, for spark-submit; ConfigurationError when there is no such job."""
    if name not in JOBS:
        raise ConfigurationError(f"{name!r} is not a Spark job: write one of {', '.join(JOBS)}")
    return shipped_folder("spark_jobs") / f"{name}.py"
