"""Compare an offsets snapshot with Kafka's own tool and Burrow: seconds, and requests per broker and API.

    .venv/bin/python bench/offsets_snapshot.py                              500 groups x 20 partitions
    .venv/bin/python bench/offsets_snapshot.py --groups 50 --runs 1

The groups' commits are at ``--positions`` different offsets per partition, so the snapshot reads as many first unread records there.
"""

import argparse
import statistics
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path

import burrow_side
from kafka import KafkaAdminClient, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError, NoError
from processes import run
from request_log import counted
from run import machine, show

from kafka_audit.cluster.connection import ConnectionSettings
from kafka_audit.collect.snapshot import SnapshotResult, take_snapshot
from kafka_audit.jars.fetch import broker_classpath
from kafka_audit.policy.slas import LagSla
from kafka_audit.sandbox.lifecycle import start
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.store.sealed import OFFSETS

TOPIC = "bench-offsets"
RECORDS = 2000
TARGET_S = 2.0
_JAVA = ("java", "-Xmx512m", "-cp")
_TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


class OneMinute:
    """A policy whose SLA allows every group one minute of lag."""

    sla = LagSla(pattern="*", name="bench", max_lag_seconds=60)

    def lag_sla(self, group_id: str, topic: str) -> LagSla:
        return self.sla


def fill(bootstrap: str, groups: int, partitions: int, positions: int) -> None:
    """Write one topic with records of the last hour, and commit groups at evenly spread offsets of it, the last group at the end."""
    began_ms = int(time.time() * 1000) - 3_600_000
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
        admin.create_topics([NewTopic(TOPIC, partitions, 3)])
    with closing(KafkaProducer(bootstrap_servers=bootstrap, linger_ms=20)) as producer:
        for number in range(RECORDS * partitions):
            age = number // partitions * (3_600_000 // RECORDS)
            producer.send(TOPIC, b"x" * 100, partition=number % partitions, timestamp_ms=began_ms + age)
        producer.flush()

    def commit(numbers: range) -> None:
        with closing(KafkaAdminClient(bootstrap_servers=bootstrap)) as admin:
            for number in numbers:
                offset = RECORDS * (number % positions + 1) // positions
                offsets = {TopicPartition(TOPIC, index): OffsetAndMetadata(offset, "", -1) for index in range(partitions)}
                _commit(admin, f"bench-group-{number:05d}", offsets)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(commit, [range(first, min(first + 50, groups)) for first in range(0, groups, 50)]))


def _commit(admin: KafkaAdminClient, group: str, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
    for attempt in range(50):
        try:
            if all(error in {None, NoError} for error in admin.alter_group_offsets(group, offsets).values()):
                return
        except KafkaError as problem:
            if not problem.retriable:
                raise
        time.sleep(0.1 * (attempt + 1))
    raise RuntimeError(f"{group}: offsets could not be committed")


def take(bootstrap: str, root: Path, number: int) -> tuple[float, SnapshotResult]:
    """Take one snapshot in this process; returns its seconds, including connection and Parquet files, and its result."""
    began, when = time.monotonic(), datetime.now(timezone.utc)
    result = take_snapshot(
        kind=OFFSETS,
        settings=ConnectionSettings.from_mapping({"bootstrap.servers": bootstrap}),
        root=EvidenceRoot(path=root),
        cluster="bench",
        snapshot_id=new_id(when, str(number)),
        policy=OneMinute(),
        now=lambda: datetime.now(timezone.utc),
    )
    return time.monotonic() - began, result


def show_requests(name: str, found: dict[str, tuple[int, int]]) -> None:
    listed = ", ".join(f"{api} {total} (at most {most} to a broker)" for api, (total, most) in found.items())
    print(f"  {name}: {sum(total for total, _ in found.values())} requests: {listed}", flush=True)


def measure(work: Path, asked: argparse.Namespace) -> None:
    groups, partitions, positions, runs = asked.groups, asked.partitions, asked.positions, asked.runs
    with start(seed="none", directory=work / "brokers", progress=lambda line: print(f"  {line}", flush=True)) as sandbox:
        bootstrap, logs = sandbox.bootstrap, work / "brokers" / "logs"
        print(f"  committing {groups} groups x {partitions} partitions", flush=True)
        fill(bootstrap, groups, partitions, positions)
        print(f"offsets snapshot, {groups} groups x {partitions} partitions at {positions} positions, {machine()}")

        taken = [take(bootstrap, work / "root", number) for number in range(runs)]
        seconds = statistics.median(one for one, _ in taken)
        rows = {name.removesuffix(".parquet"): entry["rows"] for name, entry in taken[0][1].manifest["files"].items()}
        if rows["committed_offsets"] < groups * partitions or rows["errors"]:
            raise RuntimeError(f"the snapshot is not whole: {rows}")
        print(f"  {'offsets snapshot in a running process':<48} {seconds:7.2f} s wall, target {TARGET_S:g} s   (median of {runs})")
        print(f"  rows: {rows}")
        root = str(work / "root")
        ours = ["kafka-audit", "snapshot", "--offsets-only", "--bootstrap", bootstrap, "--root", root]
        ours[0] = str(Path(sys.executable).with_name(ours[0]))
        tool = [*_JAVA, broker_classpath(print), _TOOL, "--bootstrap-server", bootstrap, "--describe", "--all-groups", "--offsets"]
        fast = show("kafka-audit snapshot --offsets-only", [run(ours, log=work / "ours.log") for _ in range(runs)])
        theirs = [run(tool, log=work / "theirs.log") for _ in range(max(1, runs // 3))]
        if (printed := theirs[0].output.count(TOPIC)) < groups * partitions:
            raise RuntimeError(f"Kafka's tool printed {printed} of {groups * partitions} rows: the comparison would not be fair")
        print(f"  ratio {show('kafka-consumer-groups --describe --all-groups', theirs) / fast:.1f}", flush=True)

        with counted(bootstrap, logs) as requests:
            take(bootstrap, work / "counted", 0)
            run(tool, log=work / "counted.log")
        show_requests("kafka-audit", requests.of("kafka-audit"))
        show_requests("kafka-consumer-groups", requests.of("admin"))
        with counted(bootstrap, logs) as requests:
            said = burrow_side.measure(bootstrap, work / "burrow", groups, patience_s=asked.burrow_patience)
        print(f"  Burrow {said}")
        show_requests("Burrow", requests.of(burrow_side.CLIENT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--groups", type=int, default=500)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--positions", type=int, default=10)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--burrow-patience", type=float, default=60)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder:
        measure(Path(folder), asked)


if __name__ == "__main__":
    main()
