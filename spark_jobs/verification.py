"""One verification job from its arguments to its Parquet folders: what verify_settings and verify_lag share."""

import argparse
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from kafka_audit.audit.inputs import RULES, keep_used, rules_record
from kafka_audit.audit.policy_fit import check_policy
from kafka_audit.behaviour_folders import RECORD, Behaviour, find_behaviour
from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import Catalogue, load_catalogue, shipped_controls
from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.errors import CollectionError, ConfigurationError, IntegrityError
from kafka_audit.history import read_history
from kafka_audit.policy import Policy, load_policy
from kafka_audit.policy.waivers import began
from kafka_audit.store.durable_files import read_json, replaced_folder, write_json
from kafka_audit.store.layout import SNAPSHOT, Audit, EvidenceRoot, Snapshot, open_snapshot, unseal_audit
from kafka_audit.store.manifest import verify
from spark_jobs import subjects
from spark_jobs.datasets import Evidence
from spark_jobs.evaluate import COLUMNS, check_rules, judge, summarise
from spark_jobs.exit_code import exit_code_of
from spark_jobs.overlay import Overlay
from spark_jobs.parquet_folder import write_parquet
from spark_jobs.population import population
from spark_jobs.session import spark_session
from spark_jobs.subjects.commit_behaviour import remember_behaviour

_LARGE = 50_000
"""From so many findings on, a cluster is large."""
_ROWS_OF_A_PART = 50_000
"""Wide rows whose findings are one file: the same on every machine, so that a repeated step gives equal files."""

_ALSO_WRITTEN = ("group_partition", "group_sla")
"""Subjects whose wide rows are judged and written (spark_jobs/verify_lag.py): they are computed once."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a job works on: verified evidence, checked policy and rules, and the audit its findings belong to."""

    name: str
    evidence: Evidence
    policy: Policy
    catalogue: Catalogue
    identity: Mapping[str, str]
    overlay: Overlay

    @property
    def controls(self) -> tuple[Control, ...]:
        return self.catalogue.of_job(self.name)

    @cached_property
    def populations(self) -> dict[str, int]:
        """How many resources the subjects of the job's controls have."""
        return {subject: population(subject, self.evidence, self.policy) for subject in {control.subject for control in self.controls}}

    @cached_property
    def wide_rows(self) -> dict[str, DataFrame]:
        """The wide rows of every subject that the job has controls for."""
        judged = {control.subject for control in self.controls}
        rows = {name: subjects.build(name, self.evidence, self.policy) for name in SUBJECTS if name in judged}
        return {name: each.localCheckpoint(eager=False) if name in _ALSO_WRITTEN else each for name, each in rows.items()}

    @property
    def large(self) -> bool:
        return sum(self.populations[control.subject] for control in self.controls) > _LARGE


Extra = Callable[[Job, Path], None]
"""What a job writes into its folder beside its findings."""


def main(name: str, target: Callable[[Audit], Path], extra: Extra | None = None, argv: Sequence[str] | None = None) -> int:
    """Run the job and return its exit code; a failure is one line on stderr. ``target`` is the folder of the audit it replaces."""
    arguments = _arguments(name, argv)
    return exit_code_of(name, lambda: _run(name, arguments, target, extra))


def _arguments(name: str, argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=name, description="Judge one snapshot by the controls of the catalogue.")
    parser.add_argument("--snapshot", type=Path, required=True, help="folder of a sealed snapshot")
    parser.add_argument("--audit", type=Path, required=True, help="folder of the audit, with its run.json")
    parser.add_argument("--policy", type=Path, help="folder with tiers.yaml and slas.yaml (default: the shipped one)")
    parser.add_argument("--controls", type=Path, action="append", nargs="+", default=[], help="folders of further controls")
    return parser.parse_args(argv)


def _run(name: str, arguments: argparse.Namespace, target: Callable[[Audit], Path], extra: Extra | None) -> None:
    # Everything that can be wrong with the input is found before Spark starts.
    verify(arguments.snapshot)
    snapshot = open_snapshot(arguments.snapshot)
    if snapshot.kind != SNAPSHOT:
        raise ConfigurationError(f"{snapshot.path} is an {snapshot.kind} snapshot, which shows no settings: name the folder of a whole one")
    audit = Audit(path=arguments.audit)
    run = audit.run()
    if run.get("snapshot_id") != snapshot.snapshot_id:
        raise ConfigurationError(
            f"{audit.run_file} is for snapshot {run.get('snapshot_id')!r}, not {snapshot.snapshot_id!r}: name the one it is for"
        )
    policy = load_policy(arguments.policy)
    catalogue = load_catalogue([shipped_controls(), *(folder for group in arguments.controls for folder in group)])
    check_policy(policy, catalogue)
    identity = {field: str(run.get(field)) for field in ("audit_id", "snapshot_id", "cluster")}
    history = read_history(snapshot, policy.history.snapshots)
    behaviour = _behaviour(name, catalogue, snapshot, target(audit))
    spark = spark_session(f"kafka_audit {name}")
    evidence = Evidence(spark=spark, snapshot=snapshot, history=history)
    if behaviour is not None:
        remember_behaviour(evidence, behaviour)
    overlay = Overlay(policy=policy, at=began(run))
    job = Job(name=name, evidence=evidence, policy=policy, catalogue=catalogue, identity=identity, overlay=overlay)
    if not unseal_audit(audit):
        raise IntegrityError(f"{audit.path} is sealed and a later audit is chained to it: it stays as it is; start a new audit")
    with replaced_folder(target(audit)) as folder:
        write_json(folder / "history.json", history.record())
        write_json(folder / RULES, rules_record(policy, catalogue))
        if behaviour is not None:
            write_json(folder / RECORD, behaviour.record())
        if job.large:  # then compiling whole stages costs less than it saves
            spark.conf.set("spark.sql.codegen.wholeStage", "true")
        _write_findings(job, folder)
        _write_summary(job, folder)
        if extra is not None:
            extra(job, folder)
    keep_used(audit, EvidenceRoot(path=snapshot.path.parents[2]), identity["cluster"])


def _behaviour(name: str, catalogue: Catalogue, snapshot: Snapshot, folder: Path) -> Behaviour | None:
    """What the job may read of the commit history; None when none of its controls could. ``folder`` may hold an earlier run's choice."""
    if not any("behaviour" in SUBJECTS[control.subject].columns for control in catalogue.of_job(name)):
        return None
    return find_behaviour(snapshot, read_json(folder / RECORD) if (folder / RECORD).is_file() else None)


def findings(job: Job, broken: Mapping[str, str] | None = None) -> DataFrame:
    """All findings of the job, one for each row and control.

    Those of a small cluster are in the order of control code and resource; those of a large one lie in parts, each in the order of its
    resources: wide rows are sorted then, because sorting their findings would move ten times as much.
    """
    judged = []
    for subject, each in job.wide_rows.items():
        parts = 1 + job.populations[subject] // _ROWS_OF_A_PART
        ordered = each.repartition(parts, "resource").sortWithinPartitions("resource") if job.large else each
        judged.append(judge(ordered, job.catalogue.of_subject(subject), broken, job.overlay))
    union = judged[0]
    for more in judged[1:]:
        union = union.unionByName(more)
    named = union.select(*[F.lit(value).alias(field) for field, value in job.identity.items()], "*").select(*COLUMNS)
    return named if job.large else named.repartition(1).sortWithinPartitions("code", "resource")


def _write_findings(job: Job, folder: Path) -> None:
    if not job.controls:
        raise ConfigurationError(f"no control belongs to {job.name}: the catalogue is incomplete; name a folder that has some")
    target = folder / "findings.parquet"
    try:
        write_parquet(findings(job), target)
    except PySparkException:
        check_rules(job.wide_rows, job.controls, job.overlay)
        broken = _raising(job)
        if not broken:
            raise
        shutil.rmtree(target, ignore_errors=True)
        write_parquet(findings(job, broken), target)


def _raising(job: Job) -> dict[str, str]:
    """The controls whose SQL raises on some row, each tried alone, with the message."""
    broken = {}
    for control in job.controls:
        try:
            judge(job.wide_rows[control.subject], [control], None, job.overlay).write.format("noop").mode("overwrite").save()
        except PySparkException as problem:
            broken[control.id] = " ".join(str(problem).split())[:500]
    return broken


def _write_summary(job: Job, folder: Path) -> None:
    written = job.evidence.spark.read.parquet(str(folder / "findings.parquet"))
    summary = summarise(job.evidence.spark, written, job.controls, job.populations)
    write_parquet(summary.repartition(1).sortWithinPartitions("code"), folder / "summary.parquet")
    # One row a control: small whatever the cluster's size.
    for row in pq.read_table(folder / "summary.parquet").to_pylist():
        if not row["population"] == row["findings"] == row["distinct_resources"]:
            counts = f"{row['findings']} findings on {row['distinct_resources']} resources"
            raise CollectionError(
                f"{row['code']}: {counts}, but the snapshot has {row['population']} of subject {row['subject']}. "
                f"These findings were not kept; report this with snapshot {job.identity['snapshot_id']}"
            )
