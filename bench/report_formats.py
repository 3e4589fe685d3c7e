"""Measure how long a report takes in every format, and the memory: of a real audit, and of one with the findings of a large cluster.

    .venv/bin/python bench/report_formats.py audit-root/audits/shop/20261120T231500Z-0123456789abcdef
    .venv/bin/python bench/report_formats.py AUDIT --findings 963028

The large audit has the findings of the real one many times over, in the same proportions, with other names and other evidence; likewise its
groups. Each audit is rendered in a new process, whose peak memory includes Python and all libraries.
"""

import argparse
import json
import math
import multiprocessing
import resource
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

# The commands run without numpy, too (cli/main.py). Before pyarrow is imported.
sys.modules.setdefault("numpy", None)  # type: ignore[arg-type]

import pyarrow as pa  # noqa: E402
import pyarrow.compute as pc  # noqa: E402
import pyarrow.dataset as ds  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

from kafka_audit.audit.formats import REPORT_FILES  # noqa: E402
from kafka_audit.audit.inputs import CONTROLS, POLICY  # noqa: E402
from kafka_audit.catalogue.load import load_catalogue  # noqa: E402
from kafka_audit.findings import COUNTED_AS  # noqa: E402
from kafka_audit.policy import load_policy  # noqa: E402
from kafka_audit.report import read_report  # noqa: E402
from kafka_audit.report.formats import write_formats  # noqa: E402
from kafka_audit.store.durable_files import read_json  # noqa: E402
from kafka_audit.store.layout import Audit, EvidenceRoot  # noqa: E402
from kafka_audit.store.sealed import placed  # noqa: E402
from kafka_audit.times import parse_time  # noqa: E402

FINDINGS = 963_028
_NAMES = ("resource", "topic", "group_id")
_ROWS_AT_ONCE = 50_000


def peak_mb() -> int:
    """The peak memory of this process until now."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


def render(audit: Path, snapshot_of: Path) -> tuple[dict[str, float], dict[str, int], dict[str, int]]:
    """Seconds for each step and format, bytes of each file, and the peak memory of this process in MB after each.

    ``snapshot_of``: the sealed audit whose snapshot, policy and controls the report is made with.
    """
    seconds: dict[str, float] = {}
    peaks: dict[str, int] = {}
    _, place = placed(snapshot_of)
    if place is None:
        sys.exit(f"{snapshot_of} is not the folder of an audit below a root")
    manifest = read_json(snapshot_of / "manifest.json")
    started = time.monotonic()
    snapshot = EvidenceRoot(path=place.root).snapshot(place.cluster, manifest["snapshot"]["snapshot_id"])
    inputs = Audit(path=snapshot_of).inputs
    catalogue, policy = load_catalogue([inputs / CONTROLS]), load_policy(inputs / POLICY)
    seconds["policy and controls"], peaks["policy and controls"] = time.monotonic() - started, peak_mb()
    started = time.monotonic()
    when = parse_time(read_json(snapshot_of / "report" / "report.json")["generated_at"])
    report = read_report(Audit(path=audit), snapshot, catalogue, policy, generated_at=when)
    seconds["results"], peaks["results"] = time.monotonic() - started, peak_mb()
    sizes = {}
    with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder:
        for name, about in REPORT_FILES.items():
            started = time.monotonic()
            write_formats(report, audit, [name], Path(folder))
            seconds[name], peaks[name] = time.monotonic() - started, peak_mb()
            sizes[name] = (Path(folder) / about.file).stat().st_size
    return seconds, sizes, peaks


def enlarge(audit: Path, to: Path, findings: int) -> None:
    """Copy an audit with its findings repeated until there are ``findings``."""
    shutil.copytree(audit, to)
    parts = {part: ds.dataset(audit / part / "findings.parquet", format="parquet").to_table() for part in ("settings", "lag")}
    of_all = sum(table.num_rows for table in parts.values())
    left = findings
    for part, table in parts.items():
        wanted = left if part == "lag" else round(findings * table.num_rows / of_all)
        left -= wanted
        _write(to / part / "findings.parquet", _repeated(table, wanted))
        _summarize(to / part / "summary.parquet", table, wanted)
    for name in ("group_partitions", "group_slas"):
        table = ds.dataset(audit / "lag" / f"{name}.parquet", format="parquet").to_table()
        _write(to / "lag" / f"{name}.parquet", _repeated(table, math.ceil(table.num_rows * findings / of_all)))


def _repeated(table: pa.Table, rows: int) -> Iterator[pa.Table]:
    """The table again and again, each time with other names and evidence, until ``rows`` rows."""
    waiting: list[pa.Table] = []
    for number in range(-(-rows // table.num_rows)):
        waiting.append(_renamed(table, number).slice(0, rows - number * table.num_rows))
        if len(waiting) * table.num_rows >= _ROWS_AT_ONCE:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def _renamed(table: pa.Table, number: int) -> pa.Table:
    for name in (name for name in _NAMES if name in table.schema.names):
        made = pc.binary_join_element_wise(f"{number:06}.", table[name], "")
        table = table.set_column(table.schema.get_field_index(name), table.schema.field(name), made)
    if "evidence" in table.schema.names:
        made = pc.replace_substring_regex(table["evidence"], r"^\{", f'{{"copy":{number},')
        table = table.set_column(table.schema.get_field_index("evidence"), table.schema.field("evidence"), made)
    return table


def _write(folder: Path, tables: Iterator[pa.Table]) -> None:
    shutil.rmtree(folder)
    folder.mkdir()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"part-{number:05}.parquet", compression="zstd")


def _summarize(path: Path, table: pa.Table, rows: int) -> None:
    """Write the summary that fits the repeated findings."""
    copies, rest = divmod(rows, table.num_rows)
    found = list(zip(table["control_id"].to_pylist(), table["status"].to_pylist(), strict=True))
    counted = Counter({key: number * copies for key, number in Counter(found).items()}) + Counter(found[:rest])
    summary = ds.dataset(path, format="parquet").to_table()
    made = []
    for row in summary.to_pylist():
        counts = {column: counted[row["control_id"], status.value] for status, column in COUNTED_AS.items()}
        all_of_it = dict.fromkeys(("population", "findings", "distinct_resources"), sum(counts.values()))
        made.append({**row, **counts, **all_of_it})
    _write(path, iter([pa.Table.from_pylist(made, schema=summary.schema)]))


def alone(function, *arguments):
    """The result of a call in a new process."""
    with ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def say(title: str, audit: Path, snapshot_of: Path) -> None:
    seconds, sizes, peaks = alone(render, audit, snapshot_of)
    print(title)
    for name, taken in seconds.items():
        print(f"  {taken:7.2f} s  {peaks[name]:>5} MB  {name}" + (f", {sizes[name]:,} bytes" if name in sizes else ""))
    print(f"  {sum(seconds.values()):7.2f} s  in all; peak memory {max(peaks.values())} MB", flush=True)


def main() -> None:
    about = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    about.add_argument("audit", type=Path, help="folder of a sealed audit")
    about.add_argument("--findings", type=int, default=FINDINGS, help="findings of the large audit; 0: only the real one")
    options = about.parse_args()
    audit = options.audit.resolve()
    totals = json.loads((audit / "report" / "report.json").read_text())["totals"]
    say(f"{audit.name}: {totals['findings']:,} findings", audit, audit)
    if options.findings:
        with tempfile.TemporaryDirectory(prefix="kafka-audit-bench-") as folder:
            large = Path(folder) / audit.name
            alone(enlarge, audit, large, options.findings)
            say(f"generated: {options.findings:,} findings", large, audit)


if __name__ == "__main__":
    main()
