"""Measure reading ``__consumer_offsets``: this project's job, Spark's Kafka source alone, decoding alone, and two plain consumers.

    .venv/bin/python bench/commits.py --commits 5000000 --partitions 50

All figures are for the same real commits on one three-broker sandbox, in one run. On a busy machine compare CPU seconds (of Spark's JVM and
its Python workers). The fixed cost of a run is measured with a topic that has nothing new.
"""

import argparse
import json
import struct
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from unittest.mock import patch

import psutil
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from processes import run
from pyspark.sql import SparkSession

from kafka_audit.jars.fetch import broker_classpath, java, spark_connector_jars
from kafka_audit.sandbox import lifecycle
from kafka_audit.sandbox.definition import load
from kafka_audit.submit import READ_COMMITS_CONF
from spark_jobs.commit_history.decode.batch import OFFSETS, decode_batch
from spark_jobs.commit_history.history import History
from spark_jobs.commit_history.read.source import SPARK_CONF, TOPIC
from spark_jobs.engine.session import spark_session
from spark_jobs.read_commits import read

COMMITTED = 256
"""The number of partitions whose offsets each group commits."""

PLAIN = 900_000
"""The largest number of records that the plain consumers read; enough for a rate."""


def commit(bootstrap: str, commits: int, groups: int) -> None:
    """Commit offsets, COMMITTED per request; the broker writes each as one record."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("bench", COMMITTED, 1)])["bench"].result(60)

    def of_group(number: int) -> None:
        consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": f"bench-group-{number:02d}"})
        for n in range(commits // groups // COMMITTED):
            offsets = [TopicPartition("bench", p, n * 1000 + p) for p in range(COMMITTED)]
            for _ in range(50):  # retried while coordinators load
                try:
                    consumer.commit(offsets=offsets, asynchronous=False)
                    break
                except KafkaException:
                    time.sleep(0.2)
        consumer.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(of_group, range(groups)))


def processes() -> Iterator[psutil.Process]:
    """Spark's JVM and its Python workers; their parents' times include dead children."""
    gateway = SparkSession.active().sparkContext._gateway
    assert gateway is not None
    jvm = psutil.Process(gateway.proc.pid)
    yield from (jvm, *jvm.children(recursive=True))


def cpu_seconds() -> float:
    return sum(sum(each.cpu_times()[:4]) for each in processes())


def said(name: str, wall: float, rows: int, cpu: float) -> None:
    print(f"  {name:<44} {wall:7.2f} s  {rows / wall:11,.0f} rows/s  {cpu:7.2f} CPU s  {rows / cpu:11,.0f} rows/CPU s", flush=True)


def measured(name: str, rows: Callable[[], int], times: int = 1) -> float:
    """Print the best of ``times`` runs inside the Spark session, with the CPU seconds of its processes; returns its wall seconds."""
    best: tuple[float, float, int] | None = None
    for _ in range(times):
        before, started = cpu_seconds(), time.monotonic()
        count = rows()
        now = time.monotonic() - started, cpu_seconds() - before, count
        best = min(best or now, now)
    wall, cpu, count = best or (0.0, 0.0, 0)
    said(name, wall, count, max(cpu, 0.01))
    return wall


def bare_source(spark: SparkSession, bootstrap: str, partitions: list[int]) -> int:
    for name, value in SPARK_CONF.items():
        spark.conf.set(name, value)
    options = {"kafka.bootstrap.servers": bootstrap, "kafka.fetch.max.wait.ms": "10", "kafka.max.poll.records": "5000"}
    source = spark.read.format("kafka").options(**options).option("assign", json.dumps({TOPIC: partitions})).load()
    source.select("partition", "offset", "timestamp", "key", "value").write.format("noop").mode("overwrite").save()
    return 0


def plain_consumer(bootstrap: str, partitions: list[int], commits: int) -> None:
    """librdkafka's consumer and a Python loop that decodes each commit, as in a script without Spark."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "none", "enable.auto.commit": False, "auto.offset.reset": "earliest"})
    consumer.assign([TopicPartition(TOPIC, partition, 0) for partition in partitions])
    count, started, cpu = 0, time.monotonic(), time.process_time()
    while count < commits:
        for message in consumer.consume(10_000, 1.0):
            key, value = message.key(), message.value()
            if key[:2] != b"\x00\x01" or value is None:
                continue
            group = struct.unpack_from(">h", key, 2)[0]
            topic = struct.unpack_from(">h", key, 4 + group)[0]
            _ = key[4 : 4 + group].decode(), key[6 + group : 6 + group + topic].decode(), struct.unpack_from(">i", key, 6 + group + topic)
            _ = struct.unpack_from(">hqib", value)
            count += 1
    said("plain Python consumer (librdkafka)", time.monotonic() - started, count, time.process_time() - cpu)
    consumer.close()


def console_consumer(bootstrap: str, log: Path, commits: int) -> None:
    tool = [java(), "-cp", broker_classpath(print), "org.apache.kafka.tools.consumer.ConsoleConsumer"]
    tool += ["--bootstrap-server", bootstrap, "--topic", TOPIC, "--from-beginning", "--max-messages", str(commits)]
    tool += ["--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter"]
    usage = run(tool, log=log)
    said("console consumer with its formatter", usage.wall_s, usage.output.count('"key":{"type":1,'), usage.cpu_s)


def peak_memory(process: psutil.Process) -> int:
    """The peak resident memory of a process, in MB; 0 of one that has ended."""
    lines = Path(f"/proc/{process.pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) // 1000 for line in lines if line.startswith("VmHWM:")), 0)


@contextmanager
def brokers(commits: int, partitions: int, folder: Path) -> Iterator[str]:
    """A sandbox whose offsets topic has ``partitions`` partitions, nearly all of them with groups."""
    seed = load("healthy")
    config = {**seed.brokers.config, "offsets.topic.num.partitions": str(partitions)}
    wide = seed.model_copy(update={"brokers": seed.brokers.model_copy(update={"config": config})})
    with patch.object(lifecycle, "load", return_value=wide), lifecycle.start(seed="none", directory=folder) as sandbox:
        print(f"  committing {commits} offsets", flush=True)
        commit(sandbox.bootstrap, commits, max(40, 3 * partitions))
        yield sandbox.bootstrap


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commits", type=int, default=5_000_000)
    parser.add_argument("--partitions", type=int, default=6, help="partitions of the offsets topic")
    parser.add_argument("--cores", type=int, default=2)
    asked = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as name,
        brokers(asked.commits, asked.partitions, Path(name) / "brokers") as bootstrap,
    ):
        folder = Path(name)
        jars = ",".join(map(str, spark_connector_jars(print)))
        spark = spark_session("bench", {**READ_COMMITS_CONF, "spark.master": f"local[{asked.cores}]", "spark.jars": jars})
        client = {"bootstrap.servers": bootstrap}

        def job(history: History) -> int:
            before = rows_of(history)
            with history.claimed():
                read(spark, history, client, datetime.now(timezone.utc))
            return rows_of(history) - before

        def rows_of(history: History) -> int:
            return sum(history.raw_manifest(batch)["totals"]["rows"] for batch in history.raw_batches())

        first, second = History(path=folder / "first"), History(path=folder / "second")
        measured("job in a new session: Kafka to decoded Parquet", lambda: job(first))
        warm = measured("job, warm", lambda: job(second))
        idle = measured("job with nothing new", lambda: job(second), 2)
        rows = rows_of(second)
        partitions = list(range(1 + max(each["partition"] for each in first.raw_manifest(first.raw_batches()[0])["partitions"])))
        bare = measured("bare Kafka source", lambda: bare_source(spark, bootstrap, partitions) + rows, 3)
        raw = next((folder / "first" / "raw").glob("*/records.parquet"))
        count = int(first.raw_manifest(raw.parent.name)["totals"]["rows"])

        def decoding() -> int:
            with tempfile.TemporaryDirectory(dir=folder) as target:
                decode_batch(spark, OFFSETS, raw, Path(target))
            return count

        measured("decoding alone: raw to decoded Parquet", decoding, 3)
        peaks = [peak_memory(each) for each in processes()]
        share, without = 100 * bare / warm, 100 * bare / (warm - idle)
        print(f"  job, warm: {share:.0f} % of the bare source's rate; {without:.0f} % without what an empty run costs")
        print(f"  peak resident memory, MB: JVM {peaks[0]}, Python workers {peaks[1:]}", flush=True)
        spark.stop()
        few = min(PLAIN, rows * 9 // 10)
        plain_consumer(bootstrap, partitions, few)
        console_consumer(bootstrap, folder / "console.json", few)


if __name__ == "__main__":
    main()
