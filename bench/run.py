"""Measure collection against Kafka's own tool, the snapshot's memory, the verification of large clusters, and the web pages.

    make bench                                     everything, at full size
    .venv/bin/python bench/run.py collection --groups 500
    .venv/bin/python bench/run.py memory
    .venv/bin/python bench/run.py controls --scales 1 4 16
    .venv/bin/python bench/run.py pages

Collection and memory are measured on whole processes (including the start of the interpreter or JVM), on the same brokers in the same run.
"""

import argparse
import os
import platform
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import controls
import pages
from kafka import KafkaAdminClient, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError
from processes import Usage, run

from kafka_audit.collect.datasets import DATASETS
from kafka_audit.jars.fetch import broker_classpath
from kafka_audit.sandbox.lifecycle import start

PARTITIONS = 4


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores, {memory:.0f} GB, {platform.system()} {platform.machine()}, Python {platform.python_version()}"


@contextmanager
def brokers(folder: Path) -> Iterator[str]:
    sandbox = start(seed="none", directory=folder, progress=lambda line: print(f"  {line}", flush=True))
    try:
        yield sandbox.bootstrap
    finally:
        sandbox.stop()


def create_topics(bootstrap: str, count: int, partitions: int) -> None:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    for first in range(0, count, 100):
        admin.create_topics([NewTopic(f"bench-{n:04d}", partitions, 3) for n in range(first, min(first + 100, count))])
    admin.close()


def write_records(bootstrap: str) -> None:
    producer = KafkaProducer(bootstrap_servers=bootstrap)
    for n in range(1000):
        producer.send("bench-0000", value=b"x" * 100, partition=n % PARTITIONS)
    producer.flush()
    producer.close()


def commit_offsets(bootstrap: str, groups: int) -> None:
    """Commit PARTITIONS offsets in each of ``groups`` groups; retry while coordinators load."""
    offsets = {TopicPartition("bench-0000", p): OffsetAndMetadata(100, "", -1) for p in range(PARTITIONS)}

    def commit(numbers: range) -> None:
        admin = KafkaAdminClient(bootstrap_servers=bootstrap)
        for n in numbers:
            for attempt in range(50):
                try:
                    answer = admin.alter_group_offsets(f"bench-group-{n:05d}", offsets)
                    problems = [error for error in answer.values() if error is not None and getattr(error, "errno", 0) != 0]
                    if not problems:
                        break
                except KafkaError:
                    pass
                time.sleep(0.1 * (attempt + 1))
            else:
                raise RuntimeError(f"bench-group-{n:05d}: offsets could not be committed")
        admin.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(commit, [range(first, min(first + 250, groups)) for first in range(0, groups, 250)]))


def show(name: str, usages: list[Usage]) -> float:
    wall = statistics.median(usage.wall_s for usage in usages)
    cpu = statistics.median(usage.cpu_s for usage in usages)
    memory = max(usage.peak_mb for usage in usages)
    print(f"  {name:<48} {wall:7.2f} s wall  {cpu:7.2f} s CPU  {memory:6.0f} MB peak   (median of {len(usages)})", flush=True)
    return wall


def collection(work: Path, groups: int, runs: int) -> None:
    """Compare kafka-consumer-groups --describe --all-groups with ``kafka-audit snapshot``: offsets of every group."""
    with brokers(work / "brokers") as bootstrap:
        create_topics(bootstrap, 1, PARTITIONS)
        write_records(bootstrap)
        print(f"  committing {groups} groups x {PARTITIONS} partitions", flush=True)
        commit_offsets(bootstrap, groups)
        tool = ["java", "-Xmx512m", "-cp", broker_classpath(print), "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"]
        tool += ["--bootstrap-server", bootstrap, "--describe", "--all-groups", "--offsets"]
        ours = [shutil.which("kafka-audit") or "kafka-audit", "snapshot", "--bootstrap", bootstrap, "--root", str(work / "root")]
        mine = [run(ours, log=work / "ours.log") for _ in range(runs)]
        theirs = [run(tool, log=work / "theirs.log", env={"KAFKA_LOG4J_OPTS": ""}) for _ in range(max(1, runs // 3))]
        rows = theirs[0].output.count("bench-group-")
        expected = groups * PARTITIONS
        if rows < expected:
            raise RuntimeError(f"Kafka's tool printed {rows} of {expected} rows: the comparison would not be fair")
        print(f"collection, {groups} groups x {PARTITIONS} partitions, {machine()}")
        fast = show(f"kafka-audit snapshot ({len(DATASETS)} datasets)", mine)
        slow = show("kafka-consumer-groups --describe --all-groups", theirs)
        print(f"  ratio {slow / fast:.1f}", flush=True)


def memory(work: Path, runs: int) -> None:
    """Measure the peak memory of a snapshot process at 5,000 partitions and 500 groups; the target is below 300 MB."""
    with brokers(work / "brokers") as bootstrap:
        create_topics(bootstrap, 500, 10)
        write_records(bootstrap)
        commit_offsets(bootstrap, 500)
        ours = [shutil.which("kafka-audit") or "kafka-audit", "snapshot", "--bootstrap", bootstrap, "--root", str(work / "root")]
        usages = [run(ours, log=work / "memory.log") for _ in range(runs)]
        print(f"snapshot of 500 topics x 10 partitions and 500 groups, {machine()}")
        show("kafka-audit snapshot", usages)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["all", "collection", "memory", "controls", "pages"], default="all")
    parser.add_argument("--groups", type=int, default=5000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--scales", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--driver-memory", default="4g")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder:
        if asked.what in ("all", "collection"):
            collection(Path(folder), asked.groups, asked.runs)
        if asked.what in ("all", "memory"):
            memory(Path(folder), asked.runs)
        if asked.what in ("all", "controls"):
            print(f"judging generated snapshots by every control, one Spark application, {machine()}")
            controls.measure(Path(folder), tuple(asked.scales), asked.driver_memory)
        if asked.what in ("all", "pages"):
            print(f"web pages, {machine()}")
            pages.run()


if __name__ == "__main__":
    main()
