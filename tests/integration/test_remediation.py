"""The commands that ``kafka-audit fix`` prints repair a real cluster: they are run as printed, with Kafka's own tools, and it is audited again.

It is the faulty cluster after its audit (faulty_shop.py), with a topic whose name looks like an option. No later test looks at the cluster.
"""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from faulty_shop import CLUSTER, OF_OUR_TOPIC, POLICY
from judged_here import judged, now, snapshot_of
from kafka_tools import scripts

from kafka_audit.audit.inputs import keep_rules
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.findings import Status
from kafka_audit.policy import load_policy
from kafka_audit.report.fix_plan import Plan, Step, read_plan
from kafka_audit.report.fix_script import render
from kafka_audit.sandbox.lifecycle import Sandbox
from kafka_audit.sandbox.seeded_findings import Pair, found
from kafka_audit.store.layout import Audit, EvidenceRoot, Snapshot, seal_audit

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

REPAIRED = {
    ("TOP-02", "__remote_log_metadata"),
    ("TOP-02", "inventory"),
    ("TOP-04", "sessions"),
    ("TOP-05", "email-sender:email-outbox-0"),
    ("TOP-06", "access-log"),
    ("TOP-11", "__remote_log_metadata"),
    *OF_OUR_TOPIC,
}
"""Failures whose commands are not commented out."""
DECIDED = {("TOP-07", "audit-trail"), ("TOP-09", "gps"), ("TOP-12", "ledger"), ("TXN-01", "refund-requests-0")}
"""Failures whose commands are, and which go once a person has decided for them."""
DRY_RUNS = {("CON-05", "month-end:customers-0")}
OLDER = {("CON-09", "month-end:customers-0")}
"""Failures that time alone brings: the demo's policy lets offsets of a group without members grow two seconds old."""


@dataclass(frozen=True)
class Story:
    """The plan of the first audit, what its script and the decided commands printed, and what failed before and after."""

    plan: Plan
    script: str
    dry_run: str
    failing: tuple[set[Pair], ...]
    unknown: tuple[set[Pair], ...]


def _run(script: Path, tools: Path, bootstrap: str) -> str:
    environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "BOOTSTRAP": bootstrap, "OPTIONS": ""}
    done = subprocess.run(["sh", "-eu", str(script)], capture_output=True, text=True, env=environment, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def _snapshot(sandbox: Sandbox, root: Path) -> Snapshot:
    time.sleep(1.1)  # ids sort by the second
    return snapshot_of(sandbox, root, CLUSTER, when=now())


def _audit(snapshot: Snapshot, root: Path) -> Audit:
    """Judge a snapshot, and seal the audit with the rules that it used."""
    audit = judged(snapshot, CLUSTER, "--policy", str(POLICY))
    keep_rules(audit, load_policy(POLICY), load_catalogue(), [shipped_controls()])
    seal_audit(EvidenceRoot(path=root), CLUSTER, audit.path.name, {"snapshot": {"snapshot_id": snapshot.snapshot_id}})
    return audit


def _repairs(step: Step, wanted: set[Pair]) -> bool:
    return any((reason.code, reason.resource) in wanted for reason in step.reasons)


@pytest.fixture(scope="module")
def story(faulty_cluster: Sandbox, faulty_audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Story:
    from spark_jobs.engine.session import spark_session

    folder = tmp_path_factory.mktemp("repaired")
    root, tools = folder / "root", folder / "tools"
    shutil.copytree(faulty_audit.path.parents[2], root)  # later audits would follow it in its chain
    first = EvidenceRoot(path=root).audit(CLUSTER, faulty_audit.path.name)
    command = [sys.executable, "-m", "kafka_audit.cli", "fix", str(first.path)]
    printed = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600).stdout
    (folder / "fix.sh").write_text(printed)
    plan = read_plan(first)
    decided = [step.command for step in plan.steps if step.decide and _repairs(step, DECIDED | DRY_RUNS)]
    (folder / "decided.sh").write_text("\n".join(decided) + "\n")
    with scripts(tools):
        _run(folder / "fix.sh", tools, faulty_cluster.bootstrap)
        dry_run = _run(folder / "decided.sh", tools, faulty_cluster.bootstrap)
    repaired = _snapshot(faulty_cluster, root)
    session = spark_session("kafka_audit repaired cluster")
    try:
        audits = [first, _audit(repaired, root)]
    finally:
        session.stop()
    return Story(
        plan=plan,
        script=printed,
        dry_run=dry_run,
        failing=tuple(found(audit, Status.FAIL) for audit in audits),
        unknown=tuple(found(audit, Status.NOT_ASSESSED) | found(audit, Status.ERROR) for audit in audits),
    )


def _pairs(plan: Plan, *, decide: bool) -> set[Pair]:
    return {(reason.code, reason.resource) for step in plan.steps if (step.decide is not None) is decide for reason in step.reasons}


def test_the_command_prints_the_plan_of_the_audit(story: Story) -> None:
    assert story.script == render(story.plan)
    assert _pairs(story.plan, decide=False) >= REPAIRED
    assert _pairs(story.plan, decide=True) >= DECIDED | DRY_RUNS


def test_every_failure_whose_command_was_run_is_gone(story: Story) -> None:
    before, after = story.failing
    assert _pairs(story.plan, decide=False) <= before
    assert _pairs(story.plan, decide=False) & after == set()
    assert _pairs(story.plan, decide=False) & story.unknown[1] == set()


def test_nothing_else_is_worse_than_before(story: Story) -> None:
    assert story.failing[1] - story.failing[0] == OLDER
    assert story.unknown[1] - story.unknown[0] == set()


def test_commands_that_a_person_decides_for_are_accepted_and_do_what_they_say(story: Story) -> None:
    assert story.failing[0] >= DECIDED
    assert DECIDED & (story.failing[1] | story.unknown[1]) == set()


def test_the_dry_run_of_a_rewound_group_shows_the_offset_that_it_had_committed(story: Story) -> None:
    (step,) = [step for step in story.plan.steps if _repairs(step, DRY_RUNS)]
    offset = step.command.split("--to-offset ")[1].split()[0]
    lines = [line.split() for line in story.dry_run.splitlines() if "month-end" in line]
    assert [line[:4] for line in lines if line] == [["month-end", "customers", "0", offset]]
    assert ("CON-05", "month-end:customers-0") in story.failing[1], "a dry run changes nothing"
