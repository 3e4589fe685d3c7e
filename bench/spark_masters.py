"""Judge the same generated snapshot in threads of the driver and on Spark clusters of 1, 2 and 4 executors.

    PYTHONPATH=tests/spark:tests/unit .venv/bin/python bench/spark_masters.py --scale 1 --executors 1 2 4

It starts each cluster itself: a master, and workers of one core whose executors have Python and pyarrow and see no file of the driver.
Of each run it prints wall seconds, CPU seconds and peak memory of the driver, CPU seconds of all executors with their Python workers, the
bytes that tasks exchanged (Spark's shuffle), and whether all tables are those of the driver's threads. Executors share this machine's
cores: on fewer cores than executors read the CPU seconds, which tell what the work costs, and not the wall seconds.
"""

import argparse
import json
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from generated_snapshot import CLUSTER, TAKEN, write_snapshots
from processes import Usage, run
from standalone import SparkCluster, spark_cluster  # type: ignore[import-not-found]  # tests/spark/standalone.py, by PYTHONPATH

from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, Snapshot, new_id
from kafka_audit.submit import DEFAULT_CONF, DRIVER_JAVA_OPTIONS, job_path, with_class_data

Tables = dict[str, pa.Table]


def judge(root: EvidenceRoot, snapshot: Snapshot, master: str, conf: Mapping[str, str], folder: Path) -> tuple[Usage, Tables, int]:
    """What the job used, the tables that it wrote, and the bytes that its tasks wrote for others."""
    audit = root.audit(CLUSTER, new_id(TAKEN, "bench"))
    identity = {"audit_id": audit.path.name, "cluster": CLUSTER, "snapshot_id": snapshot.snapshot_id}
    write_json(audit.run_file, {**identity, "started_at": TAKEN.isoformat()})
    events = folder / "events"
    events.mkdir()
    every = {
        **DEFAULT_CONF,
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
        "spark.pyspark.driver.python": sys.executable,
        "spark.driver.host": "127.0.0.1",
        **conf,
    }
    command = [shutil.which("spark-submit") or "spark-submit", "--master", master]
    command += ["--driver-java-options", with_class_data(DRIVER_JAVA_OPTIONS)]
    command += [part for name, value in every.items() for part in ("--conf", f"{name}={value}")]
    command += [str(job_path("verify")), "--snapshot", str(snapshot.path), "--audit", str(audit.path)]
    used = run(command, log=folder / "log")
    found = {str(path.relative_to(audit.path)): pq.read_table(path) for path in sorted(audit.path.glob("*/*.parquet"))}
    written = sum(map(_shuffled, next(events.iterdir()).read_text().splitlines()))
    shutil.rmtree(events)
    shutil.rmtree(audit.path)
    return used, found, written


def _same(one: pa.Table | None, other: pa.Table | None) -> bool:
    """Whether both have the same rows in the same order. Threads of the driver also write which columns are never NULL."""
    if one is None or other is None or one.column_names != other.column_names:
        return False
    return all(column.cast(other[name].type).equals(other[name]) for name, column in zip(one.column_names, one.columns, strict=True))


def _shuffled(event: str) -> int:
    """The bytes that a task wrote for tasks of the next stage; 0 of an event that is not the end of a task."""
    told = json.loads(event)
    metrics = (told.get("Task Metrics") or {}) if told["Event"] == "SparkListenerTaskEnd" else {}
    return int(metrics.get("Shuffle Write Metrics", {}).get("Shuffle Bytes Written", 0))


@contextmanager
def cpu_of_executors(cluster: SparkCluster) -> Iterator[dict[int, float]]:
    """CPU seconds of each process below the cluster's workers, as it was last seen; looked at four times a second."""
    seen: dict[int, float] = {}
    ended = threading.Event()

    def look() -> None:
        while not ended.wait(0.25):
            for worker in cluster.workers:
                for one in worker.children(recursive=True):
                    with suppress(psutil.Error):
                        seen[one.pid] = sum(one.cpu_times()[:2])

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=float, default=1, help="1: 20,000 partitions and 100,000 group partitions")
    parser.add_argument("--executors", type=int, nargs="*", default=[1, 2, 4], help="clusters of so many executors")
    parser.add_argument("--driver-memory", default=DEFAULT_CONF["spark.driver.memory"], help="the driver's heap in every run")
    asked = parser.parse_args()
    heap = {"spark.driver.memory": asked.driver_memory}
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as name:
        folder = Path(name)
        root = EvidenceRoot(path=folder / "root")
        snapshot = write_snapshots(root.path, asked.scale, 2)
        size = sum(path.stat().st_size for path in root.path.rglob("*.parquet")) / 2**20
        print(f"snapshots at scale {asked.scale:g}: {size:.1f} MB", flush=True)
        used, alone, written = judge(root, snapshot, "local[2]", {**heap, "spark.pyspark.python": sys.executable}, folder)
        _say("threads of the driver", used, 0.0, written)
        for executors in asked.executors:
            with spark_cluster(executors, "2g") as cluster, cpu_of_executors(cluster) as cpu:
                conf = {
                    **heap,
                    "spark.pyspark.python": str(cluster.python),
                    "spark.executor.memory": "2g",
                    "spark.sql.shuffle.partitions": str(2 * executors),
                }
                used, found, written = judge(root, snapshot, cluster.master, conf, folder)
            differ = sorted(name for name in found.keys() | alone.keys() if not _same(found.get(name), alone.get(name)))
            _say(f"{executors} executors", used, sum(cpu.values()), written, f"; tables that differ: {', '.join(differ) or 'none'}")


def _say(what: str, used: Usage, executors: float, written: int, further: str = "") -> None:
    driver = f"driver {used.cpu_s:.0f} CPU s, peak {used.peak_mb:.0f} MB"
    print(
        f"  {what}: {used.wall_s:.0f} s; {driver}; executors {executors:.0f} CPU s; shuffle {written / 2**20:.1f} MB{further}", flush=True
    )


if __name__ == "__main__":
    main()
