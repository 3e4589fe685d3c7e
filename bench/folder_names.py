"""Measure how long a cluster's ids are listed: an offsets snapshot every five minutes makes 105,120 folders a year.

    .venv/bin/python bench/folder_names.py --names 1000 10000 100000

Prints one line of JSON per size: seconds for the first list of a new process, for the same list again, and for a list of sealed folders,
which looks for each manifest.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.store.manifest import MANIFEST
from kafka_audit.store.sealed import OFFSETS

FIRST = datetime(2026, 1, 1, tzinfo=timezone.utc)


def seconds(call: Callable[[], Any]) -> float:
    began = time.perf_counter()
    call()
    return round(time.perf_counter() - began, 4)


def measure(folder: Path, names: int) -> dict[str, float]:
    root = EvidenceRoot(path=folder)
    for number in range(names):
        one = root.snapshot_dir("bench", new_id(FIRST + timedelta(minutes=5 * number), str(number)), OFFSETS)
        one.mkdir(parents=True)
        (one / MANIFEST).touch()
    return {
        "names": names,
        "first_s": seconds(lambda: root.ids("bench", OFFSETS)),
        "again_s": seconds(lambda: root.ids("bench", OFFSETS)),
        "sealed_s": seconds(lambda: root.sealed_ids("bench", OFFSETS)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    asked = parser.parse_args()
    for names in asked.names:
        with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder:
            print(json.dumps(measure(Path(folder), names)), flush=True)


if __name__ == "__main__":
    main()
