"""Judge the same generated snapshot through several Spark masters: seconds, CPU seconds of the driver, and whether all findings are equal.

    .venv/bin/python bench/spark_masters.py --scale 1 'local[2]' spark://127.0.0.1:7077 --conf spark.executor.memory=2g

The executors of a master that is not local need a python3 with pyarrow (docs/spark.md); PYSPARK_PYTHON or ``--conf`` names another.
"""

import argparse
import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from generated_snapshot import CLUSTER, TAKEN, write_snapshots
from processes import run

from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, new_id
from kafka_audit.submit import DEFAULT_CONF, DRIVER_JAVA_OPTIONS, is_local, job_path, with_class_data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("masters", nargs="+")
    parser.add_argument("--scale", type=int, default=1, help="1: 20,000 partitions and 100,000 group partitions")
    parser.add_argument("--conf", action="append", default=[], help="a setting for the masters that are not local")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder:
        root = EvidenceRoot(path=Path(folder, "root"))
        snapshot = write_snapshots(root.path, asked.scale, 2)
        size = sum(path.stat().st_size for path in root.path.rglob("*.parquet")) / 2**20
        print(f"snapshots at scale {asked.scale}: {size:.1f} MB")
        first: dict[str, pa.Table] = {}
        for master in asked.masters:
            audit = root.audit(CLUSTER, new_id(TAKEN, "bench"))
            identity = {"audit_id": audit.path.name, "cluster": CLUSTER, "snapshot_id": snapshot.snapshot_id}
            write_json(audit.run_file, {**identity, "started_at": TAKEN.isoformat()})
            conf = [*(f"{name}={value}" for name, value in DEFAULT_CONF.items()), f"spark.pyspark.driver.python={sys.executable}"]
            conf += [] if is_local(master) else asked.conf
            command = [shutil.which("spark-submit") or "spark-submit", "--master", master]
            command += ["--driver-java-options", with_class_data(DRIVER_JAVA_OPTIONS), *(part for one in conf for part in ("--conf", one))]
            command += [str(job_path("verify")), "--snapshot", str(snapshot.path), "--audit", str(audit.path)]
            used = run(command, log=Path(folder, "log"), env={"PYSPARK_PYTHON": sys.executable} if is_local(master) else {})
            found = {str(path.relative_to(audit.path)): pq.read_table(path) for path in sorted(audit.path.glob("*/*.parquet"))}
            first = first or found
            same = found.keys() == first.keys() and all(table.equals(first[name]) for name, table in found.items())
            rows = sum(table.num_rows for name, table in found.items() if name.endswith("findings.parquet"))
            print(f"  {master}: {used.wall_s:.1f} s, driver {used.cpu_s:.1f} CPU s, {rows} findings, all tables equal: {same}", flush=True)
            shutil.rmtree(audit.path)


if __name__ == "__main__":
    main()
