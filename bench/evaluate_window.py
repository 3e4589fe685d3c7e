"""A Spark application that evaluates the window over a folder of history days three times and prints the seconds as JSON."""

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.policy.slas import LagSla
from kafka_audit.store.lag_days import GROUP_PARTITIONS, GROUPS
from spark_jobs.engine.session import spark_session
from spark_jobs.lag import days as lag_days
from spark_jobs.lag.days import LagWindow
from spark_jobs.lag.samples import WindowSamples
from spark_jobs.lag.series import partition_figures
from spark_jobs.lag.slas import sla_figures, sla_samples

_LIMITS = {"pattern": "*", "name": "bench", "max_lag_records": 1000, "max_lag_seconds": 300, "availability": {"target_percent": 99.5}}


def evaluate(folder: Path) -> None:
    spark = spark_session("kafka_audit bench")
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    days = sorted(folder.iterdir())
    times = sorted({at for day in days for at in pq.read_table(day / GROUPS, columns=["taken_ms"])["taken_ms"].unique().to_pylist()})
    last_ms = times[-1] + 300_000
    samples = WindowSamples(
        days=(), raw=(), whole=(), times=tuple(times), first_ms=times[0], last_ms=last_ms, interval_ms=300_000, record={}
    )
    window = LagWindow(
        group_partitions=spark.read.schema(lag_days.GROUP_PARTITIONS).parquet(*[str(day / GROUP_PARTITIONS) for day in days]),
        groups=spark.read.schema(lag_days.GROUPS).parquet(*[str(day / GROUPS) for day in days]),
        samples=samples,
    )
    slas = [LagSla.model_validate(_LIMITS)]
    parts: dict[str, Callable[[], DataFrame]] = {
        "group partitions": lambda: partition_figures(window),
        "groups and SLAs": lambda: sla_figures(sla_samples(window, slas, F.lit(0), F.lit(None).cast("string")), last_ms),
    }
    seconds: dict[str, list[float]] = {name: [] for name in parts}
    for _ in range(3):
        for name, part in parts.items():
            started = time.monotonic()
            part().write.format("noop").mode("overwrite").save()
            seconds[name].append(time.monotonic() - started)
    spark.stop()
    print(json.dumps(seconds))


if __name__ == "__main__":
    evaluate(Path(sys.argv[1]))
