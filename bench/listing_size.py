"""Measure what the list of all topics costs: every process that reads a part of a snapshot reads the whole list (Metadata).

    .venv/bin/python bench/listing_size.py --partitions 20000 200000 1000000

A generated answer is decoded as the product does it; topics have 10 partitions with 3 replicas. Prints one line of JSON per size.
"""

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
import uuid
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from kafka.protocol.metadata import MetadataResponse

from kafka_audit.cluster.topics import Partition, _partition

_VERSION, _PER_TOPIC, _BROKERS = 12, 10, 1000


def write(path: Path, partitions: int) -> None:
    topic = MetadataResponse.MetadataResponseTopic
    placed = {"error_code": 0, "leader_epoch": 3, "replica_nodes": [1, 2, 3], "isr_nodes": [1, 2, 3], "offline_replicas": []}
    topics = [
        topic(
            error_code=0,
            name=f"topic-{number:06}",
            topic_id=uuid.UUID(int=number + 1),
            is_internal=False,
            partitions=[
                topic.MetadataResponsePartition(partition_index=index, leader_id=(number + index) % _BROKERS, **placed)
                for index in range(_PER_TOPIC)
            ],
        )
        for number in range(partitions // _PER_TOPIC)
    ]
    response = MetadataResponse(throttle_time_ms=0, brokers=[], cluster_id="bench", controller_id=1, topics=topics)
    response.API_VERSION = _VERSION
    path.write_bytes(response.encode())


def read(path: Path, partitions: int) -> dict[str, float]:
    data, began = path.read_bytes(), time.process_time()
    response = MetadataResponse.decode(data, version=_VERSION)
    listed: list[Partition] = [_partition(topic.name, one) for topic in response.topics for one in topic.partitions]
    assert len(listed) == partitions
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "partitions": partitions,
        "received_bytes": len(data),
        "cpu_seconds": round(time.process_time() - began, 2),
        "peak_mb": round(peak / 1024),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, nargs="+", default=[20_000, 200_000, 1_000_000])
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder:
        for partitions in asked.partitions:
            path = Path(folder) / "answer"
            for step in (write, read):  # each in a process of its own, so that the peak is that of reading
                with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                    found = pool.submit(step, path, partitions).result()
            print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
