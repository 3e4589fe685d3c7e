"""Makes large audits from a small sealed one: the same findings many times over, with other names and other evidence.

Two audits of one cluster are made and sealed, one after the other, so that the later one is compared with the earlier one. Of ten copies
of a failure, one passed in the earlier audit (new), one had the severity ``low`` (worse) and one was not assessed (incomparable); one of
fifty copies of a pass failed in it (resolved). All others are the same in both audits.
"""

import math
import shutil
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from kafka_audit.audit.inputs import CONTROLS, POLICY
from kafka_audit.audit.previous import COMPARISON, choose_previous
from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.findings import COUNTED_AS, Status
from kafka_audit.policy import load_policy
from kafka_audit.report.trend import asked_in, figures_of, keep_figures
from kafka_audit.store.durable_files import read_json, write_json
from kafka_audit.store.layout import EvidenceRoot, new_id, seal_audit
from kafka_audit.store.sealed import placed
from kafka_audit.times import parse_time

_NAMES = ("resource", "topic", "group_id")
_ROWS_AT_ONCE = 50_000
_PER_CHANGE, _PER_RESOLVED = 10, 50


def make_pair(sealed: Path, folder: Path, findings: int, *, other_policy: bool) -> tuple[Path, Path]:
    """Two sealed audits of ``findings`` findings below the root ``folder``, the earlier one first, on the snapshot of ``sealed``.

    ``other_policy``: the earlier one had another policy file, so that what was asked of each failure is compared, too.
    """
    _, place = placed(sealed)
    if place is None:
        raise SystemExit(f"{sealed} is not the folder of an audit below a root")
    manifest, cluster = read_json(sealed / "manifest.json"), place.cluster
    snapshot_id = manifest["snapshot"]["snapshot_id"]
    root = EvidenceRoot(path=folder)
    shutil.copytree(EvidenceRoot(path=place.root).snapshot(cluster, snapshot_id).path, folder / "evidence" / cluster / snapshot_id)
    snapshot = root.snapshot(cluster, snapshot_id)
    about = {name: value for name, value in manifest.items() if name.endswith("_sha256") or name == "snapshot"}
    started = parse_time(read_json(sealed / "run.json")["started_at"])
    made = []
    for days, earlier in ((1, True), (0, False)):
        when = started - timedelta(days=days)
        audit = root.audit(cluster, new_id(when, "earlier" if earlier else "later"))
        _enlarge(sealed, audit.path, findings, earlier=earlier)
        run = read_json(sealed / "run.json")
        write_json(audit.run_file, {**run, "audit_id": audit.path.name, "started_at": when.isoformat()})
        if earlier and other_policy:
            with (audit.inputs / "policy" / "tiers.yaml").open("a", encoding="utf-8") as file:
                file.write("# before\n")
        choose_previous(audit, snapshot)
        asked = asked_in(snapshot, load_catalogue([audit.inputs / CONTROLS]), load_policy(audit.inputs / POLICY))
        keep_figures(audit, snapshot, figures_of(audit, "FAILED", asked))
        seal_audit(root, cluster, audit.path.name, about)
        made.append(audit.path)
    return made[0], made[1]


def _enlarge(sealed: Path, to: Path, findings: int, *, earlier: bool) -> None:
    """Copy an audit without its seal, with its findings repeated until there are ``findings``."""
    shutil.copytree(sealed, to, ignore=shutil.ignore_patterns("manifest.json", "manifest.dsse.json", COMPARISON))
    parts = {part: ds.dataset(sealed / part / "findings.parquet", format="parquet").to_table() for part in ("settings", "lag")}
    of_all = sum(table.num_rows for table in parts.values())
    left = findings
    for part, table in parts.items():
        wanted = left if part == "lag" else round(findings * table.num_rows / of_all)
        left -= wanted
        counted = _write(to / part / "findings.parquet", _repeated(table, wanted, earlier=earlier))
        _summarize(to / part / "summary.parquet", counted)
    for name in ("group_partitions", "group_slas"):
        table = ds.dataset(sealed / "lag" / f"{name}.parquet", format="parquet").to_table()
        _write(to / "lag" / f"{name}.parquet", _repeated(table, math.ceil(table.num_rows * findings / of_all), earlier=False))


def _repeated(table: pa.Table, rows: int, *, earlier: bool) -> Iterator[pa.Table]:
    """The table again and again, each time with other names and evidence, until ``rows`` rows."""
    waiting: list[pa.Table] = []
    for number in range(-(-rows // table.num_rows)):
        copy = _renamed(table, number).slice(0, rows - number * table.num_rows)
        waiting.append(_before(copy, number) if earlier else copy)
        if len(waiting) * table.num_rows >= _ROWS_AT_ONCE:
            yield pa.concat_tables(waiting).combine_chunks()
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting).combine_chunks()


def _renamed(table: pa.Table, number: int) -> pa.Table:
    for name in (name for name in _NAMES if name in table.schema.names):
        table = _with(table, name, pc.binary_join_element_wise(f"{number:06}.", table[name], ""))
    if "evidence" in table.schema.names:
        table = _with(table, "evidence", pc.replace_substring_regex(table["evidence"], r"^\{", f'{{"copy":{number},'))
    return table


def _before(table: pa.Table, number: int) -> pa.Table:
    """A copy of the findings as they were in the earlier audit."""
    failed, passed = (pc.equal(table["status"], status.value) for status in (Status.FAIL, Status.PASS))
    change = number % _PER_CHANGE
    if change in (0, 2):
        was = Status.PASS if change == 0 else Status.NOT_ASSESSED
        table = _with(table, "status", pc.if_else(failed, was.value, table["status"]))
    if change == 1:
        table = _with(table, "severity", pc.if_else(failed, "low", table["severity"]))
    if number % _PER_RESOLVED == 3:
        table = _with(table, "status", pc.if_else(passed, Status.FAIL.value, table["status"]))
    return table


def _with(table: pa.Table, name: str, values: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.schema.get_field_index(name), table.schema.field(name), values)


def _write(folder: Path, tables: Iterator[pa.Table]) -> Counter[tuple[str, str]]:
    """Write a Parquet folder; returns the number of findings by control and status."""
    shutil.rmtree(folder)
    folder.mkdir()
    counted: Counter[tuple[str, str]] = Counter()
    for number, table in enumerate(tables):
        pq.write_table(table, folder / f"part-{number:05}.parquet", compression="zstd")
        if {"control_id", "status"} <= set(table.schema.names):
            for row in table.group_by(["control_id", "status"]).aggregate([([], "count_all")]).to_pylist():
                counted[row["control_id"], row["status"]] += row["count_all"]
    return counted


def _summarize(path: Path, counted: Counter[tuple[str, str]]) -> None:
    """Write the summary that fits the repeated findings."""
    summary = ds.dataset(path, format="parquet").to_table()
    made = []
    for row in summary.to_pylist():
        counts = {column: counted[row["control_id"], status.value] for status, column in COUNTED_AS.items()}
        all_of_it = dict.fromkeys(("population", "findings", "distinct_resources"), sum(counts.values()))
        made.append({**row, **counts, **all_of_it})
    _write(path, iter([pa.Table.from_pylist(made, schema=summary.schema)]))
