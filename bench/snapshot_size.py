"""Measure one snapshot of real brokers at several sizes, read by one process, and read in parts and joined.

    .venv/bin/python bench/snapshot_size.py --partitions 2000 6000 18000

Topics have 10 partitions with one replica and a record in each; one group commits to each topic. Prints one line of JSON per size. Whole
processes are measured, the start of Python included; the parts are read one after another.
"""

import argparse
import json
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from kafka import KafkaAdminClient, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import NewTopic
from kafka.errors import KafkaError
from processes import Usage, run
from run import brokers

from kafka_audit.collect.part import parts_of

PER_TOPIC = 10


def grow(bootstrap: str, first: int, last: int) -> None:
    """Make the topics ``first`` to ``last``, write a record into each partition, and commit each topic by one group."""
    names = [f"bench-{number:05}" for number in range(first, last)]
    with closing(KafkaAdminClient(bootstrap_servers=bootstrap, request_timeout_ms=120_000)) as admin:
        for start in range(0, len(names), 100):
            admin.create_topics([NewTopic(name, PER_TOPIC, 1) for name in names[start : start + 100]])
        with closing(KafkaProducer(bootstrap_servers=bootstrap, linger_ms=50, max_block_ms=120_000)) as producer:
            for name in names:
                for partition in range(PER_TOPIC):
                    producer.send(name, b"x" * 100, partition=partition)
            producer.flush()
        for name in names:
            _commit(admin, name)


def _commit(admin: KafkaAdminClient, topic: str) -> None:
    offsets = {TopicPartition(topic, partition): OffsetAndMetadata(0, "", -1) for partition in range(PER_TOPIC)}
    for attempt in range(50):
        try:
            answer = admin.alter_group_offsets(f"group-of-{topic}", offsets)
            if not any(error is not None and getattr(error, "errno", 0) for error in answer.values()):
                return
        except KafkaError:
            pass
        time.sleep(0.1 * (attempt + 1))
    raise RuntimeError(f"the offsets of {topic} could not be committed")


def measure(bootstrap: str, work: Path, partitions: int, count: int) -> dict[str, Any]:
    """One point: the process that reads everything, the most that one of the parts takes, and the join."""
    root = work / f"root-{partitions}"

    def process(what: str, of: int) -> dict[str, float]:
        command = [sys.executable, str(Path(__file__).with_name("snapshot_process.py")), bootstrap, str(root), what, str(of)]
        used: Usage = run(command, log=work / "process.log")
        said: dict[str, float] = json.loads(used.output.splitlines()[-1])
        return {"seconds": round(used.wall_s, 2), "cpu_seconds": round(used.cpu_s, 2), "peak_mb": round(used.peak_mb), **said}

    whole = process("whole", 1)
    parts = [process(part.name, count) for part in parts_of(count)]
    joined = process("join", count)
    files = [file for file in root.rglob("*.parquet") if "parts" not in file.parts]
    return {
        "partitions": partitions,
        "group_partitions": partitions,
        "whole": whole,
        "parts": {"count": count, **{name: max(part[name] for part in parts) for name in whole}},
        "join": joined,
        "bytes": sum(file.stat().st_size for file in files) // 2,  # of two snapshots of the same cluster
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, nargs="+", default=[2000, 6000, 18_000])
    parser.add_argument("--parts", type=int, default=4)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder, brokers(Path(folder) / "brokers") as bootstrap:
        made = 0
        for partitions in sorted(asked.partitions):
            began = time.monotonic()
            grow(bootstrap, made // PER_TOPIC, partitions // PER_TOPIC)
            print(f"  made {partitions} partitions in {time.monotonic() - began:.0f} s", flush=True)
            time.sleep(5)
            made = partitions
            print(json.dumps(measure(bootstrap, Path(folder), partitions, asked.parts)), flush=True)


if __name__ == "__main__":
    main()
