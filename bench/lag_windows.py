"""Measure the evaluation of lag SLAs over a window of generated history days: rows per second and core, linearity and peak memory.

    .venv/bin/python bench/lag_windows.py --scales 1 4 16

Scale 16 has 10,000 group partitions with a sample every five minutes for 30 days: 86.4 million rows. Smaller scales have fewer partitions.
"""

import argparse
import json
import os
import resource
import shutil
import sys
import tempfile
import time
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from kafka_audit.store.lag_days import GROUP_PARTITIONS, GROUPS, day_start_ms
from kafka_audit.submit import DEFAULT_CONF, DRIVER_JAVA_OPTIONS, with_class_data

DAYS, SAMPLES, INTERVAL_MS = 30, 288, 300_000
CORES = 2
PARTITIONS, OF_A_TOPIC, TOPICS_OF_A_GROUP = 625, 5, 2
"""Group partitions at scale 1; partitions per topic and topics per group at every scale."""
FIRST = date(2026, 1, 1)


def write_days(folder: Path, scale: int) -> int:
    """Write the days below ``folder``; returns the number of rows of group partitions."""
    count = PARTITIONS * scale
    rows = count * SAMPLES
    number = np.repeat(np.arange(count), SAMPLES)
    topic = number // OF_A_TOPIC
    step = np.tile(np.arange(SAMPLES), count)
    dictionaries = {
        "group_id": pa.DictionaryArray.from_arrays(
            (topic // TOPICS_OF_A_GROUP).astype(np.int32), [f"group-{n:05d}" for n in range(count // OF_A_TOPIC // TOPICS_OF_A_GROUP + 1)]
        ),
        "topic": pa.DictionaryArray.from_arrays(topic.astype(np.int32), [f"topic-{n:05d}" for n in range(count // OF_A_TOPIC + 1)]),
    }
    for day in range(DAYS):
        target = folder / (FIRST + timedelta(days=day)).isoformat()
        target.mkdir(parents=True)
        taken = day_start_ms(FIRST + timedelta(days=day)) + step * INTERVAL_MS
        moment = day * SAMPLES + step
        end = moment * (50 + number % 7) + (number * 31 + step * 17) % 40
        behind = np.where(number % 100 == 0, moment * 3 % 20_000, (number + step) % 60)
        stuck = (number % 50 == 1) & (step % 48 < 12)
        committed = np.maximum(end - behind, 0)
        end_before, committed_before = np.roll(end, 1), np.roll(committed, 1)
        first = (step == 0) if day == 0 else np.zeros(rows, bool)
        columns = {
            "group_id": dictionaries["group_id"],
            "topic": dictionaries["topic"],
            "partition": (number % OF_A_TOPIC).astype(np.int32),
            "topic_id": pa.DictionaryArray.from_arrays(
                topic.astype(np.int32), [f"id-of-topic-{n:05d}-000" for n in range(count // OF_A_TOPIC + 1)]
            ),
            "taken_ms": taken,
            "state": pa.DictionaryArray.from_arrays(np.zeros(rows, np.int32), ["Stable"]),
            "counts": np.ones(rows, bool),
            "committed": committed,
            "log_start": np.zeros(rows, np.int64),
            "log_end": end,
            "last_stable": end,
            "over_seconds": pa.array(np.where(behind > 10_000, 300, 0).astype(np.int32), mask=behind <= 10_000),
            "kept_seconds": pa.array(np.where(behind > 0, 300, 0).astype(np.int32), mask=behind > 10_000),
            "before_ms": pa.array(taken - INTERVAL_MS, mask=first),
            "committed_before": pa.array(committed_before, mask=first),
            "log_start_before": pa.array(np.zeros(rows, np.int64), mask=first),
            "log_end_before": pa.array(end_before, mask=first),
            "recreated": np.zeros(rows, bool),
            "only_markers": np.zeros(rows, bool),
            "still_since_ms": pa.array(taken - step % 48 * INTERVAL_MS, mask=~stuck),
        }
        pq.write_table(pa.table(columns), target / GROUP_PARTITIONS, compression="zstd", row_group_size=1 << 20)
        per_topic = pa.table(
            {
                "group_id": columns["group_id"],
                "topic": columns["topic"],
                "taken_ms": taken,
                "partitions": np.ones(rows, np.int32),
                "unknown": np.zeros(rows, np.int32),
                "lag": end - committed,
                "lag_max": end - committed,
                "lost": np.zeros(rows, np.int64),
                "over_seconds": columns["over_seconds"],
                "kept_seconds": columns["kept_seconds"],
                "still_since_ms": columns["still_since_ms"],
                "still_unknown": np.zeros(rows, np.int32),
            }
        ).filter(pa.array(number % OF_A_TOPIC == 0))
        pq.write_table(per_topic, target / GROUPS, compression="zstd", row_group_size=1 << 20)
    return rows * DAYS


def measure(work: Path, scales: tuple[int, ...], memory: str, java: str) -> None:
    """Print one line per scale and part of the evaluation."""
    first: dict[str, float] = {}
    for scale in scales:
        folder = work / f"scale-{scale}"
        rows = write_days(folder, scale)
        size = sum(path.stat().st_size for path in folder.rglob("*.parquet")) / 2**20
        print(f"  {scale:>2}x: {rows} rows of {PARTITIONS * scale} group partitions, {size:.0f} MB", flush=True)
        seconds, peak, cpu = _submit(folder, memory, java)
        seconds["both"] = [sum(each) for each in zip(*seconds.values(), strict=True)]
        for part, each in seconds.items():
            best, cold = min(each), each[0]
            first.setdefault(part, best / scale)
            print(
                f"      {part:<16} {cold:6.1f} s in a new JVM, {best:6.1f} s warm, "
                f"{rows / cold / 1e6:.2f} and {rows / best / 1e6:.2f} million rows/s ({rows / best / 1e6 / CORES:.2f} a core), "
                f"{best / scale / first[part]:.2f} times the first a row"
            )
        print(f"      {peak:.0f} MB peak of the JVM and Python together, {cpu:.0f} CPU s of the whole application", flush=True)
        shutil.rmtree(folder)


def _submit(folder: Path, memory: str, java: str) -> tuple[dict[str, list[float]], float, float]:
    before = _children_cpu()
    settings = {**DEFAULT_CONF, "spark.driver.memory": memory}  # of --conf and --driver-memory, the last one that is named wins
    conf = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    options = ["--master", f"local[{CORES}]", "--driver-java-options", java]
    command = [
        str(Path(sys.executable).with_name("spark-submit")),
        *options,
        *conf,
        str(Path(__file__).with_name("evaluate_window.py")),
        str(folder),
    ]
    log = folder.with_suffix(".log")
    with log.open("wb") as stream:
        process = psutil.Popen(command, stdout=stream, stderr=stream, env={**os.environ, "PYSPARK_PYTHON": sys.executable})
        peak = 0
        while process.poll() is None:
            peak = max(peak, sum(_resident(one) for one in [process, *process.children(recursive=True)]))
            time.sleep(0.2)
    output = log.read_text(encoding="utf-8", errors="replace")
    if process.returncode != 0:
        raise RuntimeError(f"the application ended with {process.returncode}:\n{output[-3000:]}")
    return json.loads(output.splitlines()[-1]), peak / 2**20, _children_cpu() - before


def _children_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=int, nargs="+", default=[1, 4, 16])
    parser.add_argument("--driver-memory", default="4g")
    parser.add_argument("--java", default=with_class_data(DRIVER_JAVA_OPTIONS), help="default: the options of an audit's own Spark job")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as work:
        measure(Path(work), tuple(asked.scales), asked.driver_memory, asked.java)


if __name__ == "__main__":
    main()
