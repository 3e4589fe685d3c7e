"""Makes the archive of Spark's classes that jobs on this machine start from. ``make install`` runs it once.

When a Spark session starts, its JVM reads, checks and links about 20,000 classes, which is half of the start's CPU time. From an archive of
loaded classes (class-data sharing, JEP 350) it maps them into memory instead. The archive serves the JVM and the jars that it was made
with. A different JVM, or different jars, ignore it and start as they do without one.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession, Window
from pyspark.sql import functions as F

from kafka_audit.errors import CollectionError
from kafka_audit.submit import CLASS_DATA, CLASS_DATA_BYTES, DRIVER_JAVA_OPTIONS, JAVA_OPTIONS
from spark_jobs.engine.session import spark_session, with_settings


def make_class_data() -> None:
    """Write ``CLASS_DATA`` and its size; CollectionError if the JVM wrote none. Nobody uses an earlier archive meanwhile."""
    CLASS_DATA.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=CLASS_DATA.parent) as folder:
        written = Path(folder, CLASS_DATA.name)
        CLASS_DATA_BYTES.unlink(missing_ok=True)  # a JVM that writes an archive may not start from another one
        # -Xlog:disable: it would list the thousand classes that cannot be archived, such as generated ones.
        options = f'{DRIVER_JAVA_OPTIONS} "-XX:ArchiveClassesAtExit={written}" -Xlog:disable'
        spark = spark_session("kafka_audit class data", {JAVA_OPTIONS: options})
        load_classes(spark, Path(folder, "rows"))
        gateway: Any = SparkContext._gateway
        spark.stop()
        # A JVM that PySpark has started ends, and writes the archive, when its standard input is closed.
        jvm = gateway.proc
        jvm.stdin.close()
        if jvm.wait() != 0 or not written.is_file():
            raise CollectionError(f"the JVM ended with exit code {jvm.returncode} and wrote no archive of classes")
        written.replace(CLASS_DATA)
        CLASS_DATA_BYTES.write_text(f"{CLASS_DATA.stat().st_size}\n")


def load_classes(spark: SparkSession, folder: Path) -> None:
    """Do a little of everything that jobs do: expressions from text, aggregates, windows, joins, Parquet written and read.

    Spark runs a query by other classes if it compiles whole stages, if a join does not broadcast, and if an aggregate has to sort.
    """
    for name, settings in {
        "small": {},
        "large": {"spark.sql.codegen.wholeStage": "true", "spark.sql.autoBroadcastJoinThreshold": "-1"},
    }.items():
        with with_settings(spark, settings):
            _queries(spark, folder / name)


def _queries(spark: SparkSession, folder: Path) -> None:
    newest = Window.partitionBy("seventh").orderBy(F.desc("id"))
    rows = (
        spark.range(100)
        .select("id", F.expr("id % 7 AS seventh"), F.expr("concat('t-', id) AS name"), F.expr("array(id, id + 1) AS pair"))
        .withColumn("rank", F.row_number().over(newest))
        .withColumn("before", F.lag("id").over(newest))
        .withColumn("settings", F.create_map(F.lit("acks"), F.lit("all")))
    )
    rows.write.parquet(str(folder))
    read = spark.read.parquet(str(folder))
    figures = read.groupBy("seventh").agg(
        F.max("id").alias("newest"),
        F.min_by("name", "id").alias("first"),
        F.count_distinct("name").alias("different"),
        F.percentile("id", F.lit(0.9)).alias("high"),
        F.array_sort(F.collect_list(F.struct("id", "name"))).alias("all"),
    )
    joined = read.join(figures, "seventh", "left").select("*", F.explode("all").alias("each"), F.expr("transform(pair, x -> x * 2)"))
    joined.localCheckpoint().filter("each.id > 2 AND settings['acks'] = 'all'").orderBy("id").limit(5).toArrow()
    joined.write.format("noop").mode("overwrite").save()


if __name__ == "__main__":
    try:
        make_class_data()
    except CollectionError as problem:
        sys.exit(f"kafka-audit: {problem}")
