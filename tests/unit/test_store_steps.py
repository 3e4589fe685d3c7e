"""The steps of an audit on a root in an object store, each as on a machine of its own, with an empty mirror; without a run of Airflow."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path

import pyarrow as pa
import pytest
from object_store import EVERYWHERE, Store
from test_audit_check import said

from kafka_audit.airflow.step import audit_step, clock_of
from kafka_audit.audit.inputs import keep_rules, keep_used, rules_record
from kafka_audit.audit.outcome import ERROR, PASSED, audit_outcome
from kafka_audit.audit.request import AuditPlan, AuditRequest, make_plan
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.errors import IntegrityError
from kafka_audit.index.told import Told, told_record
from kafka_audit.policy import load_policy
from kafka_audit.store.durable_files import write_json
from kafka_audit.store.layout import EvidenceRoot, seal_audit
from kafka_audit.store.mirrors import root_folder
from kafka_audit.store.objects import Objects
from kafka_audit.store.sealed import Sealed

WHEN = datetime(2026, 11, 20, 12, 0, tzinfo=timezone.utc)
STEPS = dict.fromkeys(("snapshot", "evidence_gate", "verify", "findings_gate", "report"), "success")


class Run:
    """One run of the audit DAG: every step, and every look at the audit, is on a new machine."""

    def __init__(self, url: str, machines: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.url, self.machines, self.monkeypatch, self.number = url, machines, monkeypatch, 0
        self.controls = machines / "controls"
        self.controls.mkdir(parents=True)
        for name in ("log_dirs_healthy.yaml", "declared_groups_alive.yaml"):
            shutil.copy(shipped_controls() / name, self.controls)

    def machine(self) -> AuditPlan:
        """The plan as a new machine makes it, and the audit's folder as the task's beginning brings it."""
        self.number += 1
        self.monkeypatch.setenv("KAFKA_AUDIT_MIRROR", str(self.machines / str(self.number)))
        plan = make_plan(AuditRequest(), root=root_folder(self.url), dag_id="kafka_reliability_audit", run_id="manual", run_after=WHEN)
        plan.evidence_root.bring_audit(plan.cluster, plan.audit_id)
        return plan

    @contextmanager
    def step(self, name: str) -> Iterator[AuditPlan]:
        """One step; the work of the block is skipped by an exception, as a task's would be."""
        plan = self.machine()
        with audit_step(plan, name) as due:
            assert due
            yield plan

    def plan_and_snapshot(self) -> None:
        plan = self.machine()
        assert (plan.root, str(self.machines) in str(plan.model_dump())) == (self.url, False)
        write_json(plan.audit.run_file, {"audit_id": plan.audit_id, "snapshot_id": plan.snapshot_id, "dag_id": plan.dag_id, "params": {}})
        assert plan.evidence_root.remote is not None
        plan.evidence_root.remote.send_audit(plan.audit.path)
        with self.step("snapshot") as made, made.evidence_root.snapshot_writer(made.cluster, made.snapshot_id) as writer:
            writer.write("topics", pa.table({"topic": ["orders"]}))
            writer.seal({"cluster_id": "one", "started_at": WHEN.isoformat(), "finished_at": WHEN.isoformat(), "errors": {}})

    def judge(self) -> None:
        for gate in ("evidence", "findings"):
            with self.step(f"{gate}_gate") as made:
                clock_of(made)
                assert made.snapshot is not None
                assert made.snapshot.dataset("topics").is_file()
                passed = {"gate": gate, "verdict": "PASS", "exit_code": 0, "reasons": [], "results": []}
                write_json(made.audit.gate / f"{gate}.json", passed)
            if gate == "evidence":
                with self.step("verify") as made:
                    for part in (made.audit.settings, made.audit.lag):
                        write_json(part / "rules.json", rules_record(load_policy(), load_catalogue([self.controls])))

    def report(self) -> str:
        with self.step("report") as made:
            policy, catalogue = load_policy(), load_catalogue([self.controls])
            keep_used(made.audit, made.evidence_root, made.cluster)
            keep_rules(made.audit, policy, catalogue, [self.controls])
            write_json(made.audit.report / "report.json", {"verdict": PASSED, "exit_code": 0, "generated_at": clock_of(made).isoformat()})
            assert made.snapshot is not None
            named = {"snapshot_id": made.snapshot.snapshot_id, "manifest_sha256": made.snapshot.manifest_sha256}
            about = {**rules_record(policy, catalogue), "snapshot": named, "not_written": []}
            return seal_audit(made.evidence_root, made.cluster, made.audit_id, about).manifest_sha256


@pytest.fixture
def run(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    return Run(store.new_root(), tmp_path / "machines", monkeypatch)


@EVERYWHERE
def test_steps_on_different_machines_make_one_sealed_audit(run: Run) -> None:
    run.plan_and_snapshot()
    run.judge()
    head = run.report()
    plan = run.machine()
    outcome = audit_outcome(plan.audit, plan.snapshot, STEPS)
    assert (outcome.verdict, outcome.reasons) == (PASSED, ())
    assert plan.audit.run()["judged_at"]
    assert Sealed.verified(plan.audit.path).manifest["sequence"] == 1
    assert list(Objects(url=run.url).names("work")) == []
    assert "intact   witness" in said("verify", "--chain", plan.cluster, "--root", run.url, "--head", head)


def test_a_failure_is_told_on_another_machine_until_the_step_succeeds(run: Run) -> None:
    run.plan_and_snapshot()
    with pytest.raises(Exception, match="a dataset is broken"), run.step("evidence_gate"):
        raise IntegrityError("a dataset is broken")
    plan = run.machine()
    outcome = audit_outcome(plan.audit, plan.snapshot, {**STEPS, "evidence_gate": "failed"})
    assert outcome.verdict == ERROR
    assert "a dataset is broken" in str(outcome)
    run.judge()
    assert not (run.machine().audit.path / "failures").exists()


def test_a_step_of_a_sealed_audit_leaves_it_as_it_is(run: Run) -> None:
    run.plan_and_snapshot()
    run.judge()
    run.report()
    before = list(Objects(url=run.url).names("manifests"))
    plan = run.machine()
    with audit_step(plan, "verify") as due:
        assert not due
    assert list(Objects(url=run.url).names("manifests")) == before
    assert Sealed.verified(plan.audit.path).manifest["sequence"] == 1


@EVERYWHERE
def test_what_was_told_is_known_on_another_machine(run: Run) -> None:
    root = EvidenceRoot.at(run.machine().root)
    with told_record(root, "kafka") as record:
        record.keep("mail", Told(audit_id="x"))
    with told_record(EvidenceRoot.at(run.machine().root), "kafka") as record:
        assert record.told("mail").audit_id == "x"
