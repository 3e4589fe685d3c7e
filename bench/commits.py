"""Measure the reading of ``__consumer_offsets``: this project's job, Spark's bare source, decoding alone, Kafka's console consumer.

    .venv/bin/python bench/commits.py --commits 5000000

All figures are of the same real commits on one three-broker sandbox, in one run. CPU seconds count on a machine that does other work too.
"""

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from processes import run
from pyspark.sql import SparkSession

from kafka_audit.sandbox.jars import broker_classpath, java, spark_connector_jars
from kafka_audit.sandbox.lifecycle import start
from spark_jobs.offsets_topic.commits import regular_commits
from spark_jobs.offsets_topic.history import History
from spark_jobs.offsets_topic.source import SPARK_CONF, TOPIC
from spark_jobs.read_commits import CONF, read
from spark_jobs.session import spark_session

PARTITIONS = 256
GROUPS = 40


def commit(bootstrap: str, commits: int) -> None:
    """Each request commits PARTITIONS offsets, each of which the broker writes as a record."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("bench", PARTITIONS, 1)])["bench"].result(60)

    def of_group(number: int) -> None:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"bench-group-{number:02d}"})
        for n in range(commits // GROUPS // PARTITIONS):
            offsets = [TopicPartition("bench", p, n * 1000 + p) for p in range(PARTITIONS)]
            for _ in range(50):  # while coordinators load
                try:
                    consumer.commit(offsets=offsets, asynchronous=False)
                    break
                except KafkaException:
                    time.sleep(0.2)
        consumer.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(of_group, range(GROUPS)))


def measured(name: str, rows: Callable[[], int], times: int = 1) -> None:
    """Print the best of ``times`` runs inside the Spark session, with the CPU seconds of its JVM."""
    jvm = psutil.Process(SparkSession.active().sparkContext._gateway.proc.pid)
    best: tuple[float, float, int] | None = None
    for _ in range(times):
        before, started = sum(jvm.cpu_times()[:2]), time.monotonic()
        count = rows()
        now = time.monotonic() - started, sum(jvm.cpu_times()[:2]) - before, count
        best = min(best or now, now)
    wall, cpu, count = best or (0.0, 0.0, 0)
    print(f"  {name:<44} {wall:7.2f} s  {count / wall:11,.0f} rows/s  {cpu:7.2f} CPU s  {count / cpu:11,.0f} rows/CPU s", flush=True)


def bare_source(spark: SparkSession, bootstrap: str, partitions: list[int]) -> int:
    for name, value in SPARK_CONF.items():
        spark.conf.set(name, value)
    options = {"kafka.bootstrap.servers": bootstrap, "kafka.fetch.max.wait.ms": "10", "kafka.max.poll.records": "5000"}
    source = spark.read.format("kafka").options(**options).option("assign", json.dumps({TOPIC: partitions})).load()
    source.select("partition", "offset", "timestamp", "key", "value").write.format("noop").mode("overwrite").save()
    return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=5_000_000)
    parser.add_argument("--cores", type=int, default=2)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as name:
        folder = Path(name)
        with start(seed="none", directory=folder / "brokers") as sandbox:
            print(f"  committing {asked.commits} offsets", flush=True)
            commit(sandbox.bootstrap, asked.commits)
            jars = ",".join(map(str, spark_connector_jars(print)))
            spark = spark_session("bench", {**CONF, "spark.master": f"local[{asked.cores}]", "spark.jars": jars})
            client = {"bootstrap.servers": sandbox.bootstrap}
            history = History(path=folder / "history")

            def whole_job() -> int:
                with history.claimed():
                    read(spark, history, client)
                return total()

            def total() -> int:
                return sum(history.raw_manifest(batch)["totals"]["rows"] for batch in history.raw_batches())

            measured("job, first run: Kafka to decoded Parquet", whole_job)
            rows = total()
            again = History(path=folder / "again")

            def warm_job() -> int:
                with again.claimed():
                    read(spark, again, client)
                return rows

            measured("job, warm: Kafka to decoded Parquet", warm_job)
            partitions = list(range(max(each["partition"] for each in history.raw_manifest(history.raw_batches()[0])["partitions"]) + 1))
            measured("bare Kafka source", lambda: bare_source(spark, sandbox.bootstrap, partitions) + rows, 3)
            raw = spark.read.parquet(str(folder / "history" / "raw" / "*" / "records.parquet"))
            measured("scan of raw Parquet", lambda: _noop(raw) + rows, 3)
            measured("decoding alone, from raw Parquet", lambda: _noop(regular_commits(raw)) + rows, 5)
            tool = [java(), "-cp", broker_classpath(print), "org.apache.kafka.tools.consumer.ConsoleConsumer"]
            tool += [
                "--bootstrap-server",
                sandbox.bootstrap,
                "--topic",
                TOPIC,
                "--from-beginning",
                "--max-messages",
                str(asked.commits * 9 // 10),
            ]
            tool += ["--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"]
            usage = run(tool, log=folder / "console.json")
            count = usage.output.count('"key":{"type":1,')
            rate = f"{usage.wall_s:7.2f} s  {count / usage.wall_s:11,.0f} rows/s  {usage.cpu_s:7.2f} CPU s"
            print(f"  {'console consumer with its formatter':<44} {rate}", flush=True)
            spark.stop()


def _noop(rows: object) -> int:
    rows.write.format("noop").mode("overwrite").save()  # type: ignore[attr-defined]
    return 0


if __name__ == "__main__":
    sys.exit(main())
