"""Measure every step of an audit on generated clusters of several sizes.

    .venv/bin/python bench/audit_steps.py --scales 0.25 1 4
    .venv/bin/python bench/audit_steps.py --scales 16 --driver-memory 12g

At scale 1 a cluster has 20,000 partitions and 100,000 group partitions. The steps run one after another, each as a process of its own:
evidence gate, verification (Spark in local mode), findings gate, report with index, seal. Prints one line of JSON per size, and to
stderr the figures of each step as soon as it has ended.
"""

import argparse
import json
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from controls import submit
from generated_snapshot import CLUSTER, GROUPS, PARTITIONS, READ, TAKEN, TOPICS, write_snapshots
from processes import own_peak_mb

from kafka_audit.audit.formats import DEFAULT_FORMATS
from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.findings import Severity
from kafka_audit.policy import load_policy
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot, new_id, seal_audit

_EARLIER = 2
_AUDIT = new_id(TAKEN, "bench")
_JUDGED = TAKEN + timedelta(minutes=1)


def _opened(root: EvidenceRoot) -> Snapshot:
    return root.snapshot(CLUSTER, root.sealed_ids(CLUSTER)[-1])


def evidence_gate(root: EvidenceRoot) -> None:
    from expectations.gate import judge_evidence  # noqa: PLC0415 - only in the process of this step

    judge_evidence(_opened(root), root.audit(CLUSTER, _AUDIT).gate, now=_JUDGED)


def findings_gate(root: EvidenceRoot) -> None:
    from expectations.gate import judge_findings  # noqa: PLC0415 - only in the process of this step

    audit = root.audit(CLUSTER, _AUDIT)
    controls = {control.id: control.severity for control in load_catalogue().controls}
    judge_findings(audit, _opened(root), audit.gate, fail_on=Severity.HIGH, min_coverage=0.9, controls=controls)


def report(root: EvidenceRoot) -> None:
    from kafka_audit.index.write import write_report_and_index  # noqa: PLC0415 - only in the process of this step

    audit = root.audit(CLUSTER, _AUDIT)
    write_report_and_index(audit, _opened(root), load_catalogue(), load_policy(None), generated_at=_JUDGED, formats=DEFAULT_FORMATS)


def seal(root: EvidenceRoot) -> None:
    seal_audit(root, CLUSTER, _AUDIT, {})


def _used(step: Callable[[EvidenceRoot], None], root: EvidenceRoot) -> dict[str, float]:
    began = time.monotonic()
    step(root)
    used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": round(time.monotonic() - began, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": own_peak_mb(),
    }


def alone(step: Callable[[EvidenceRoot], None], root: EvidenceRoot) -> dict[str, float]:
    """What a step uses in a process of its own; the peak includes Python and its libraries."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return told(step.__name__, pool.submit(_used, step, root).result())


def told(step: str, used: dict[str, float]) -> dict[str, float]:
    """The figures, printed at once: the steps of a large cluster take half an hour, and the next one may not end."""
    print(step, used, file=sys.stderr, flush=True)
    return used


def measure(work: Path, scale: float, driver_memory: str) -> dict[str, Any]:
    """One point: the size of the cluster, the seconds and peak memory of each step, and the bytes that stay."""
    root = EvidenceRoot(path=work / "root")
    snapshot = write_snapshots(root.path, scale, _EARLIER)
    audit = root.audit(CLUSTER, _AUDIT)
    run = {"audit_id": _AUDIT, "cluster": CLUSTER, "snapshot_id": snapshot.snapshot_id, "started_at": TAKEN.isoformat()}
    write_json(audit.run_file, run)
    steps = {"evidence_gate": alone(evidence_gate, root)}
    verified, peak_mb = submit(["--snapshot", str(snapshot.path), "--audit", str(audit.path)], work / "spark.log", driver_memory)
    used = {"seconds": round(verified["judging"], 1), "cpu_seconds": round(verified["cpu"], 1), "peak_mb": round(peak_mb)}
    steps["verify"] = told("verify", used)
    steps |= {step.__name__: alone(step, root) for step in (findings_gate, report, seal)}
    written = {name: size(audit.path / name) for name in ("settings", "lag", "gate", "report", "index")}
    return {
        "partitions": round(TOPICS * PARTITIONS * scale),
        "group_partitions": round(GROUPS * READ * scale),
        "findings": findings_of(audit),
        "steps": steps,
        "bytes": {"snapshot": size(snapshot.path), **written},
    }


def findings_of(audit: Audit) -> int:
    parts = (part for folder in (audit.settings, audit.lag) for part in (folder / "findings.parquet").glob("*.parquet"))
    return sum(pq.read_metadata(part).num_rows for part in parts)


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scales", type=float, nargs="+", default=[0.25, 1, 4])
    parser.add_argument("--driver-memory", default="4g")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder:
        for scale in asked.scales:
            work = Path(folder) / f"scale-{scale:g}"
            work.mkdir()
            print(json.dumps(measure(work, scale, asked.driver_memory)), flush=True)
            shutil.rmtree(work)


if __name__ == "__main__":
    main()
