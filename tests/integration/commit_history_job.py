"""The job that reads the coordinators' topics, run as a process of its own, what it wrote, and what Kafka's formatters print."""

import json
import re
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from kafka import KafkaConsumer, TopicPartition

from kafka_audit.sandbox.jars import broker_classpath, java

OFFSETS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"


def job(bootstrap: str, history: Path, *more: str) -> list[str]:
    """Its command line."""
    return [sys.executable, "-m", "spark_jobs.read_commits", "--history", str(history), "--bootstrap", bootstrap, *more]


def run(bootstrap: str, history: Path, *more: str) -> dict[str, Any]:
    """Run it; returns last_run.json."""
    done = subprocess.run(job(bootstrap, history, *more), capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads((history / "last_run.json").read_text())


def table(history: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a table in all batches."""
    return [row for part in sorted(history.glob(f"*/*/{name}.parquet/*.parquet")) for row in pq.read_table(part).to_pylist()]


def milliseconds(row: dict[str, Any], name: str) -> int | None:
    return None if row[name] is None else round(row[name].timestamp() * 1000)


def offsets(bootstrap: str, which: str, *, topic: str = OFFSETS, isolation: str = "read_uncommitted") -> dict[int, int]:
    """``end_offsets`` or ``beginning_offsets`` by partition."""
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, exclude_internal_topics=False, isolation_level=isolation)) as consumer:
        partitions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
        return {each.partition: offset for each, offset in getattr(consumer, which)(partitions).items()}


def committed(bootstrap: str, topic: str) -> list[Any]:
    """Every committed record of a topic, by a plain consumer."""
    found = []
    with closing(KafkaConsumer(bootstrap_servers=bootstrap, exclude_internal_topics=False, isolation_level="read_committed")) as consumer:
        partitions = [TopicPartition(topic, p) for p in sorted(consumer.partitions_for_topic(topic) or ())]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            found += [record for some in consumer.poll(100).values() for record in some]
    return found


def formatted(bootstrap: str, topic: str, formatter: str) -> list[dict[str, Any]]:
    """Every committed record of a topic as Kafka's console consumer prints it with one of its formatters."""
    expected = len(committed(bootstrap, topic))
    command = [java(), "-Xmx256m", "-cp", broker_classpath(print), "org.apache.kafka.tools.consumer.ConsoleConsumer"]
    command += ["--bootstrap-server", bootstrap, "--topic", topic, "--from-beginning"]
    command += ["--isolation-level", "read_committed", "--formatter", f"org.apache.kafka.tools.consumer.{formatter}"]
    for patience_s in (8, 30, 90):  # without a record; on a busy machine the first one may take long
        line = [*command, "--timeout-ms", str(patience_s * 1000)]
        done = subprocess.run(line, capture_output=True, text=True, timeout=300, check=False)
        said = re.search(r"Processed a total of (\d+) messages", done.stdout + done.stderr)
        if said and int(said[1]) >= expected:
            break
    assert said, done.stderr[-3000:]
    text = done.stdout.strip()
    decoder, found, at = json.JSONDecoder(), [], 0
    while text[at : at + 1] == "{":  # it writes no newlines, and at the end what its logger says of the timeout
        one, at = decoder.raw_decode(text, at)
        found.append(one)
    return found
