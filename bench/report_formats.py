"""Measure what a report costs in every format: of a real audit, and of a generated one of a large cluster with its comparison.

    .venv/bin/python bench/report_formats.py audit-root/audits/shop/20261120T231500Z-0123456789abcdef
    .venv/bin/python bench/report_formats.py AUDIT --findings 963028 --other-policy

The large audit has the findings of the real one many times over (``enlarged_audit.py``), likewise its groups, and is compared with an
earlier audit of the same size. Each audit is rendered in a new process, whose peak memory includes Python and all libraries. The gate that
blocks on new failures only, and ``kafka-audit diff``, are measured as processes of their own.

On a busy machine compare CPU seconds; wall seconds hold only where nothing else runs.
"""

import argparse
import gzip
import json
import multiprocessing
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

# The commands run without numpy, too (cli/main.py). Before pyarrow is imported.
sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]

from enlarged_audit import make_pair  # noqa: E402
from processes import run  # noqa: E402

from kafka_audit.audit.formats import REPORT_FILES  # noqa: E402
from kafka_audit.audit.inputs import CONTROLS, POLICY  # noqa: E402
from kafka_audit.catalogue.load import Catalogue, load_catalogue  # noqa: E402
from kafka_audit.policy import Policy, load_policy  # noqa: E402
from kafka_audit.report import read_report  # noqa: E402
from kafka_audit.report.changes import old_failures  # noqa: E402
from kafka_audit.report.formats import write_formats  # noqa: E402
from kafka_audit.store.durable_files import read_json  # noqa: E402
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot  # noqa: E402
from kafka_audit.store.sealed import placed  # noqa: E402
from kafka_audit.times import parse_time  # noqa: E402

T = TypeVar("T")
FINDINGS = 963_028
_DIFFERENT = 3  # what ``kafka-audit diff`` ends with if something is new
_PACKED = ("sarif",)  # formats whose size counts after gzip, because they are uploaded so


@dataclass
class Step:
    """``peak_mb``: of the process until the end of the step. ``size``: bytes of the file, and as gzip."""

    name: str
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_mb: int = 0
    size: str = ""


@dataclass
class Measured:
    """The steps of one process, in order, and what it found."""

    steps: list[Step] = field(default_factory=list)
    said: str = ""

    @contextmanager
    def step(self, name: str) -> Iterator[Step]:
        one, wall, cpu = Step(name), time.monotonic(), time.process_time()
        yield one
        one.wall_s, one.cpu_s = time.monotonic() - wall, time.process_time() - cpu
        one.peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        self.steps.append(one)


def opened(audit: Path) -> tuple[Audit, Snapshot, Catalogue, Policy]:
    """A sealed audit with its snapshot, controls and policy."""
    _, place = placed(audit)
    if place is None:
        sys.exit(f"{audit} is not the folder of an audit below a root")
    snapshot_id = read_json(audit / "manifest.json")["snapshot"]["snapshot_id"]
    found = Audit(path=audit)
    snapshot = EvidenceRoot(path=place.root).snapshot(place.cluster, snapshot_id)
    return found, snapshot, load_catalogue([found.inputs / CONTROLS]), load_policy(found.inputs / POLICY)


def render(audit: Path, keep: Path | None = None) -> Measured:
    """Read the results of a sealed audit, compare it with the previous one, and write every format."""
    made = Measured()
    with made.step("policy and controls"):
        inputs = opened(audit)
    when = parse_time(read_json(audit / "report" / "report.json")["generated_at"])
    with made.step("results and comparison"):
        report = read_report(*inputs, generated_at=when)
    made.said = f"compared: {dict(report.comparison.counts)}" if report.comparison else "nothing to compare with"
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder:
        to = keep or Path(folder)
        to.mkdir(exist_ok=True)
        for name, about in REPORT_FILES.items():
            with made.step(name) as one:
                write_formats(report, audit, [name], to)
            one.size = f", {(to / about.file).stat().st_size:,} bytes"
            if name in _PACKED:
                one.size += f", {len(gzip.compress((to / about.file).read_bytes())):,} as gzip"
    return made


def gate(audit: Path) -> Measured:
    """What a gate that blocks on new failures only adds."""
    made = Measured()
    inputs = opened(audit)
    with made.step("gate: failures that are old"):
        old = old_failures(*inputs)
    made.said = f"{sum(old.counts.values()):,} failures are old"
    return made


def alone(function: Callable[..., T], *arguments: object, **options: object) -> T:
    """The result of a call in a new process."""
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments, **options).result()


def say(title: str, made: Measured) -> None:
    print(f"{title}; {made.said}")
    for one in made.steps:
        print(f"  {one.wall_s:7.2f} s  {one.cpu_s:7.2f} CPU s  {one.peak_mb:>5} MB  {one.name}{one.size}")
    wall, cpu = sum(one.wall_s for one in made.steps), sum(one.cpu_s for one in made.steps)
    print(f"  {wall:7.2f} s  {cpu:7.2f} CPU s  {max(one.peak_mb for one in made.steps):>5} MB  in all", flush=True)


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("audit", type=Path, help="folder of a sealed audit")
    about.add_argument("--findings", type=int, default=FINDINGS, help="findings of the large audit; 0: only the real one")
    about.add_argument("--other-policy", action="store_true", help="the earlier large audit had another policy")
    about.add_argument("--keep", type=Path, help="write the large report to this folder and leave it there")
    options = about.parse_args()
    audit = options.audit.resolve()
    totals = json.loads((audit / "report" / "report.json").read_text())["totals"]
    say(f"{audit.name}: {totals['findings']:,} findings", alone(render, audit))
    if options.findings:
        with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder:
            earlier, later = alone(make_pair, audit, Path(folder) / "root", options.findings, other_policy=options.other_policy)
            say(f"generated: {options.findings:,} findings", alone(render, later, options.keep))
            say("the same audit", alone(gate, later))
            command = [sys.executable, "-m", "kafka_audit.cli", "diff", str(earlier), str(later)]
            used = run(command, log=Path(folder) / "log", accepted=(0, _DIFFERENT))
            print(f"kafka-audit diff\n  {used.wall_s:7.2f} s  {used.cpu_s:7.2f} CPU s  {used.peak_mb:5.0f} MB")


if __name__ == "__main__":
    main()
