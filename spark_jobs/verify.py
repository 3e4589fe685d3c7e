"""Judges one snapshot by every control, in one Spark application.

It has two parts: ``settings`` (topics, partitions, brokers, the cluster, producers) and ``lag`` (groups, what they read, consumers).
Each replaces its folder of the audit as a whole. A part that fails leaves its folder as it was and does not stop the other.
"""

import argparse
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from functools import partial
from itertools import chain
from pathlib import Path

from kafka_audit.audit.inputs import keep_used
from kafka_audit.audit.policy_fit import check_policy
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.catalogue.rows import LAG, SETTINGS, SUBJECTS
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.policy import Policy, load_policy
from kafka_audit.policy.slas import WINDOW_DAYS
from kafka_audit.policy.waivers import began
from kafka_audit.store.behaviour_tables import RECORD, Behaviour, find_behaviour
from kafka_audit.store.durable_files import read_json
from kafka_audit.store.history import History, read_history
from kafka_audit.store.layout import Audit, Snapshot, unseal_audit
from kafka_audit.store.sealed import SNAPSHOT
from spark_jobs.engine.evidence import Evidence, files_read
from spark_jobs.engine.exit_code import exit_code_of, failure_of
from spark_jobs.engine.session import in_threads, spark_session, whole_stages
from spark_jobs.engine.tables import SMALL_ROWS, at_most
from spark_jobs.judge.part import Part, judge_part, many_findings
from spark_jobs.judge.policy_columns import PolicyColumns

NAME = "verify"
PARTS = (SETTINGS, LAG)
"""They run at the same time."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the job and return its exit code; a failure is one line on stderr."""
    parser = argparse.ArgumentParser(prog=NAME, description="Judge one snapshot by the controls of the catalogue.")
    parser.add_argument("--snapshot", type=Path, required=True, help="folder of a sealed snapshot")
    parser.add_argument("--audit", type=Path, required=True, help="folder of the audit, with its run.json")
    parser.add_argument("--policy", type=Path, help="folder with tiers.yaml and slas.yaml (default: the shipped one)")
    parser.add_argument("--controls", type=Path, action="append", nargs="+", default=[], help="folders of further controls")
    parser.add_argument("--parts", choices=PARTS, nargs="+", default=PARTS, help="what is judged (default: all)")
    arguments = parser.parse_args(argv)
    return exit_code_of(NAME, lambda: _run(arguments))


def _run(arguments: argparse.Namespace) -> None:
    # Everything that can be wrong with the input is found before Spark starts.
    snapshot = Snapshot.verified(arguments.snapshot)
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
    asked = [name for name in PARTS if name in arguments.parts]
    for name in asked:
        if not catalogue.of_part(name):
            raise ConfigurationError(f"no control belongs to the part {name}: the catalogue is incomplete; name a folder that has some")
    history = read_history(snapshot, policy.history.snapshots, audit.path.name)
    reads_behaviour = any("behaviour" in SUBJECTS[control.subject].columns for control in catalogue.of_part(LAG))
    chosen = audit.path / LAG / RECORD  # what an earlier run of the audit read
    behaviour = None
    if LAG in asked and reads_behaviour:
        behaviour = find_behaviour(snapshot, read_json(chosen) if chosen.is_file() else None)
    if not unseal_audit(audit):
        raise IntegrityError(f"{audit.path} is sealed and a later audit is chained to it: it stays as it is; start a new audit")
    evidence = _evidence(snapshot, history, behaviour, policy, audit.path)
    identity = {field: str(run.get(field)) for field in ("audit_id", "snapshot_id", "cluster")}
    policy_columns = PolicyColumns(policy=policy, at=began(run))
    parts = [
        Part(name=name, evidence=evidence, policy=policy, catalogue=catalogue, identity=identity, policy_columns=policy_columns)
        for name in asked
    ]
    calls = [partial(failure_of, NAME, partial(judge_part, part, audit.path / part.name)) for part in parts]
    # Of many findings, compiling whole stages costs less than it saves.
    compiled = whole_stages(evidence.spark) if many_findings(evidence) else nullcontext()
    with evidence.tables.settings(), compiled:
        # Planning keeps only one core busy: of a small cluster it takes nearly all of the time, of a large one a third.
        outcomes = in_threads(evidence.spark, calls)
    ended = dict(zip(asked, outcomes, strict=True))
    failures = {name: failed for name, failed in ended.items() if failed is not None}
    if len(failures) < len(parts):
        keep_used(audit, snapshot.root, identity["cluster"])
    if failures:  # the gravest decides the exit code: evidence that was changed is not an error to try again after
        worst = max(failures.values(), key=lambda one: one.exit_code)
        raise type(worst)("; ".join(f"{name}: {one}" for name, one in failures.items())) from worst


def _evidence(snapshot: Snapshot, history: History, behaviour: Behaviour | None, policy: Policy, scratch: Path) -> Evidence:
    """The evidence in a new Spark session; as that of a small cluster where its files hold few rows."""
    window_days = max((sla.window_days for sla in policy.slas), default=WINDOW_DAYS)
    commits = behaviour.path.rglob("*.parquet") if behaviour is not None and behaviour.path is not None else ()
    small = at_most(SMALL_ROWS, chain(files_read(snapshot, history, window_days), (file for file in commits if file.is_file())))
    session = spark_session(f"kafka_audit {NAME}")
    return Evidence(spark=session, snapshot=snapshot, history=history, behaviour=behaviour, small_cluster=small, scratch=scratch)


if __name__ == "__main__":
    sys.exit(main())
