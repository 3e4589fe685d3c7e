"""One part of a verification, settings or lag: its findings, how many they must be, and the folder of the audit that it replaces."""

import shutil
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TypeVar

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from kafka_audit.audit.inputs import RULES, rules_record
from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import Catalogue
from kafka_audit.catalogue.rows import LAG, SUBJECTS
from kafka_audit.errors import CollectionError
from kafka_audit.policy import Policy
from kafka_audit.store.behaviour_tables import RECORD
from kafka_audit.store.durable_files import replaced_folder, write_json
from spark_jobs.engine.evidence import Evidence
from spark_jobs.engine.session import whole_stages
from spark_jobs.judge.controls import COLUMNS, check_rules, judge, results, summarise, with_verdicts
from spark_jobs.judge.policy_columns import PolicyColumns
from spark_jobs.judge.population import populations
from spark_jobs.lag.positions import KEYS
from spark_jobs.lag.series import lag_series, partition_figures, worst_groups
from spark_jobs.rows.build import wide_rows
from spark_jobs.rows.group.commit_behaviour import group_table
from spark_jobs.rows.group.group_sla import group_burns, judged_samples, lag_window

T = TypeVar("T")

_MANY = 2_500
_ROWS_OF_A_PART = 50_000
"""Wide rows whose findings are one file: the same on every machine, so that a repeated step gives equal files."""

_ALSO_WRITTEN = ("group_partition", "group_sla")
"""Subjects whose wide rows are judged and written: they are computed once."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """What a part of a verification works on: verified evidence, checked policy and rules, and the audit its findings belong to."""

    name: str
    evidence: Evidence
    policy: Policy
    catalogue: Catalogue
    identity: Mapping[str, str]
    policy_columns: PolicyColumns

    @property
    def controls(self) -> tuple[Control, ...]:
        return self.catalogue.of_part(self.name)

    @property
    def subjects(self) -> list[str]:
        """The subjects that the part has controls for, in the order of SUBJECTS."""
        judged = {control.subject for control in self.controls}
        return [name for name in SUBJECTS if name in judged]

    @property
    def first_audit(self) -> Column | None:
        """The column that says that this is the cluster's first audit; None when it is a later one."""
        return F.lit(True) if self.evidence.history.first_audit else None

    @property
    def populations(self) -> dict[str, int]:
        """How many resources the subjects of the part's controls have."""
        return self._memo("populations", lambda: populations(self.subjects, self.evidence, self.policy))

    @property
    def wide_rows(self) -> dict[str, DataFrame]:
        """The wide rows of every subject that the part has controls for."""
        return self._memo("wide rows", self._wide_rows)

    def _wide_rows(self) -> dict[str, DataFrame]:
        tables = self.evidence.tables
        rows = {name: wide_rows(name, self.evidence, self.policy) for name in self.subjects}
        return {name: (tables.checkpoint if name in _ALSO_WRITTEN else tables.shorten)(each) for name, each in rows.items()}

    def _memo(self, name: str, make: Callable[[], T]) -> T:
        # Not a cached_property: before Python 3.12 it lets only one thread at a time compute it, of whichever object.
        return self.evidence.memo(f"part {self.name}: {name}", make)

    @property
    def large(self) -> bool:
        """Whether findings are too many to be sorted together."""
        return many_findings(self.evidence)


def many_findings(evidence: Evidence) -> bool:
    """Whether partitions and committed offsets, of which controls make some twenty findings each, are more than 2,500."""
    return not evidence.small_cluster and evidence.rows("partitions") + evidence.rows("committed_offsets") > _MANY


def judge_part(part: Part, target: Path) -> None:
    """Replace the folder of a part of the audit: findings, their summary, what they were made of, and the tables of lag."""
    with replaced_folder(target) as folder:
        write_json(folder / "history.json", part.evidence.history.record())
        write_json(folder / RULES, rules_record(part.policy, part.catalogue))
        if part.name == LAG and part.evidence.behaviour is not None:
            write_json(folder / RECORD, part.evidence.behaviour.record())
        _write_findings(part, folder)
        _write_summary(part, folder)
        if part.name == LAG:
            _write_lag_tables(part, folder)


def findings(part: Part, broken: Mapping[str, str] | None = None) -> DataFrame:
    """All findings of the part, one for each row and control.

    Those of a small cluster are in the order of control code and resource; those of a large one lie in parts, each in the order of its
    resources: wide rows are sorted then, because sorting their findings would move ten times as much.
    """
    said = []
    for subject, each in part.wide_rows.items():
        parts = 1 + part.populations[subject] // _ROWS_OF_A_PART
        ordered = each.repartition(parts, "resource").sortWithinPartitions("resource") if part.large else each
        said.append(results(ordered, part.catalogue.of_subject(subject), broken, part.policy_columns, first_audit=part.first_audit))
    judged = with_verdicts(reduce(DataFrame.union, said), part.policy_columns)
    columns = {field: F.lit(value) for field, value in {**part.identity, "rule_set_sha256": part.catalogue.rule_set_sha256}.items()}
    return judged.select(*[columns.get(name, F.col(name)).alias(name) for name in COLUMNS])


def _write_findings(part: Part, folder: Path) -> None:
    target = folder / "findings.parquet"
    try:
        _write(part, findings(part), target)
    except PySparkException:
        check_rules(part.wide_rows, part.controls, part.policy_columns)
        broken = _raising(part)
        if not broken:
            raise
        shutil.rmtree(target, ignore_errors=True)
        _write(part, findings(part, broken), target)


def _write(part: Part, rows: DataFrame, target: Path) -> None:
    part.evidence.tables.write(rows, target, () if part.large else ("code", "resource"))


def _raising(part: Part) -> dict[str, str]:
    """The controls whose SQL raises on some row, each tried alone, with the message; rows are computed once for all of them."""
    broken = {}
    for subject, computed in part.wide_rows.items():
        rows = part.evidence.tables.checkpoint(computed)
        for control in part.catalogue.of_subject(subject):
            try:
                judge(rows, [control], None, part.policy_columns, first_audit=part.first_audit).write.format("noop").mode(
                    "overwrite"
                ).save()
            except PySparkException as problem:
                broken[control.id] = " ".join(str(problem).split())[:500]
    return broken


def _write_summary(part: Part, folder: Path) -> None:
    tables = part.evidence.tables
    written = tables.read_whole(folder / "findings.parquet")
    tables.write(summarise(part.evidence.spark, written, part.controls, part.populations), folder / "summary.parquet", ["code"])
    # One row a control: small whatever the cluster's size.
    for row in pq.read_table(folder / "summary.parquet").to_pylist():
        if not row["population"] == row["findings"] == row["distinct_resources"]:
            counts = f"{row['findings']} findings on {row['distinct_resources']} resources"
            raise CollectionError(
                f"{row['code']}: {counts}, but the snapshot has {row['population']} of subject {row['subject']}. "
                f"These findings were not kept; report this with snapshot {part.identity['snapshot_id']}"
            )


def _write_lag_tables(part: Part, folder: Path) -> None:
    """Write what the report shows of groups and their partitions, as Parquet folders.

    group_partitions and group_slas: the wide rows, ordered and with ``errors`` as JSON text. lag_series: the lag of the worst groups over
    time. partition_windows: what the window says of each group partition. sla_burns: how much of the newest hours was outside of SLAs with
    a target. lag_history.json lists what these were made of. group_behaviour: what groups did, where a commit history was used.
    """
    evidence, policy, tables = part.evidence, part.policy, part.evidence.tables
    for subject, order in (("group_partition", ["group_id", "topic", "partition"]), ("group_sla", ["resource"])):
        flat = part.wide_rows[subject].withColumn("errors", F.to_json(F.map_from_entries(F.array_sort(F.map_entries("errors")))))
        tables.write(flat, folder / f"{subject}s.parquet", order)
    window = lag_window(evidence, policy)
    written = [tables.read_whole(folder / f"{name}.parquet") for name in ("group_slas", "group_partitions")]
    worst = worst_groups(*written)
    with whole_stages(evidence.spark) if window.samples.days else nullcontext():
        series, figures = lag_series(window, judged_samples(evidence, policy), worst), partition_figures(window)
        tables.write(series, folder / "lag_series.parquet", ["group_id", "bucket_ms"])
        tables.write(figures, folder / "partition_windows.parquet", KEYS)
        tables.write(group_burns(evidence, policy), folder / "sla_burns.parquet", ["group_id", "sla"])
    write_json(folder / "lag_history.json", window.samples.record)
    did = group_table(evidence)
    if did is not None:
        tables.write(did, folder / "group_behaviour.parquet", ["group_id"])
