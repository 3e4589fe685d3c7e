"""Measure both parts of the verification on generated snapshots of several sizes: seconds after the session's start, peak memory."""

import json
import os
import shutil
import sys
import time
from pathlib import Path

import psutil
import pyarrow.parquet as pq
from generated_snapshot import CLUSTER, GROUPS, PARTITIONS, READ, TAKEN, TOPICS, write_snapshots

from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.submit import DEFAULT_CONF, DRIVER_JAVA_OPTIONS, with_class_data

_EARLIER = 2


def measure(work: Path, scales: tuple[int, ...], memory: str) -> None:
    """Print one line per scale: rows, seconds, findings, peak memory of the whole process tree."""
    first = 0.0
    for scale in scales:
        root = work / f"scale-{scale}"
        snapshot = write_snapshots(root, scale, _EARLIER)
        audit_id = new_id(TAKEN, "bench")
        audit = EvidenceRoot(path=root).audit(CLUSTER, audit_id)
        write_json(
            audit.run_file, {"audit_id": audit_id, "cluster": CLUSTER, "snapshot_id": snapshot.snapshot_id, "started_at": TAKEN.isoformat()}
        )
        seconds, peak_mb = submit(["--snapshot", str(snapshot.path), "--audit", str(audit.path)], work / f"scale-{scale}.log", memory)
        first = first or seconds["judging"]
        findings = sum(
            pq.read_metadata(part).num_rows for folder in ("settings", "lag") for part in (audit.path / folder).glob("findings.parquet/*")
        )
        print(
            f"  {scale:>2}x: {TOPICS * scale} topics, {TOPICS * PARTITIONS * scale} partitions, {GROUPS * scale} groups, "
            f"{GROUPS * READ * scale} group partitions, {_EARLIER} earlier snapshots -> {findings} findings"
        )
        print(
            f"      {seconds['judging']:6.1f} s beyond the session's start of {seconds['session']:.1f} s, "
            f"{seconds['judging'] / first:.1f} times the first, {seconds['cpu']:.0f} CPU s, {peak_mb:.0f} MB peak",
            flush=True,
        )
        shutil.rmtree(root)


def submit(arguments: list[str], log: Path, memory: str) -> tuple[dict[str, float], float]:
    """Run the application under spark-submit; returns the seconds that it reports with those of its CPU (``cpu``), and the peak resident
    memory of JVM and Python in MB.
    """
    settings = {**DEFAULT_CONF, "spark.driver.memory": memory}  # of --conf and --driver-memory, the last one that is named wins
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    options = ["--master", "local[2]", "--driver-java-options", with_class_data(DRIVER_JAVA_OPTIONS)]
    script = Path(__file__).with_name("judge_snapshot.py")
    command = [shutil.which("spark-submit") or "spark-submit", *options, *conf, str(script), *arguments]
    with log.open("wb") as stream:
        process = psutil.Popen(command, stdout=stream, stderr=stream, env={**os.environ, "PYSPARK_PYTHON": sys.executable})
        peak, cpu = 0, dict[int, float]()
        while process.poll() is None:
            used = {one.pid: _used(one) for one in (process, *process.children(recursive=True))}
            peak = max(peak, sum(resident for resident, _ in used.values()))
            cpu |= {pid: seconds for pid, (_, seconds) in used.items() if seconds}
            time.sleep(0.2)
    output = log.read_text(encoding="utf-8", errors="replace")
    if process.returncode != 0:
        raise RuntimeError(f"the application ended with {process.returncode}:\n{output[-3000:]}")
    return {**json.loads(output.splitlines()[-1]), "cpu": sum(cpu.values())}, peak / 2**20


def _used(process: psutil.Process) -> tuple[int, float]:
    """Resident bytes and CPU seconds of a process; zeros when it has ended."""
    try:
        with process.oneshot():
            return int(process.memory_info().rss), process.cpu_times().user + process.cpu_times().system
    except psutil.NoSuchProcess:
        return 0, 0.0
