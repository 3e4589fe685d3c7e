"""Whole runs of the audit DAG with stand-in steps: which run turns red, what its gate says, and what is left in the folders."""

from pathlib import Path

import pytest
from dag_run import WHEN, Run
from steps import Steps, spark_failure

from kafka_audit.errors import CollectionError, IntegrityError
from kafka_audit.evidence import EvidenceRoot, problems_of, read_json, verify, write_json
from kafka_audit.unfinished import hidden_name

pytestmark = [pytest.mark.airflow, pytest.mark.usefixtures("airflow_db")]


@pytest.fixture
def dag(load_dag):
    return load_dag("kafka_reliability_audit")


def only_audit(root: Path) -> Path:
    found = list(root.glob("audits/kafka/*/run.json"))
    assert len(found) == 1
    return found[0].parent


def test_a_healthy_cluster_ends_green_with_a_sealed_audit(dag, root: Path, steps: Steps) -> None:
    run = Run(dag)
    assert (run.state, run.failed) == ("success", set())
    audit = only_audit(root)
    manifest = verify(audit)
    assert {"run.json", "gate/evidence.json", "gate/findings.json", "report/report.html", "settings/done", "lag/done"} <= set(
        manifest["files"]
    )
    assert manifest["snapshot"]["snapshot_id"] == read_json(audit / "run.json")["snapshot_id"]
    assert manifest["catalogue_sha256"] and manifest["policy_sha256"]


def test_a_run_sweeps_what_a_killed_one_of_its_cluster_left(dag, root: Path, steps: Steps) -> None:
    left = [hidden_name(root / place / "kafka" / "20261119T120000Z-ab12cd34") for place in ("audits", "evidence", "history")]
    other = hidden_name(root / "evidence" / "payments" / "20261119T120000Z-ab12cd34")
    for folder in (*left, other):
        folder.mkdir(parents=True)
    assert Run(dag).state == "success"
    assert [folder for folder in left if folder.exists()] == []
    assert other.is_dir()


@pytest.mark.usefixtures("folders_allowed")
def test_the_snapshot_asks_about_the_slas_of_the_runs_policy(dag, root: Path, steps: Steps, policy_copy: Path) -> None:
    Run(dag, policy_dir=str(policy_copy))
    assert steps.policies == [policy_copy]


def test_failing_findings_turn_only_the_gate_red_after_the_report_was_written(dag, root: Path, steps: Steps) -> None:
    steps.findings = ("FAIL", 3)
    run = Run(dag)
    assert (run.state, run.failed) == ("failed", {"gate"})
    assert "The audit ended FAILED (exit code 3)" in run.gate
    assert "the findings gate says FAIL" in run.gate
    assert str(only_audit(root) / "report" / "report.html") in run.gate
    assert problems_of(only_audit(root)) == []


def test_unfit_evidence_makes_the_audit_void_and_it_is_reported_and_sealed(dag, root: Path, steps: Steps) -> None:
    steps.evidence = ("FAIL", 4)
    run = Run(dag)
    assert (run.state, run.failed) == ("failed", {"gate"})
    assert "The audit ended VOID (exit code 4)" in run.gate
    assert (only_audit(root) / "report" / "report.html").read_text() == "<p>VOID</p>"
    assert problems_of(only_audit(root)) == []


def test_low_coverage_ends_incomplete(dag, root: Path, steps: Steps) -> None:
    steps.findings = ("FAIL", 4)
    assert "The audit ended INCOMPLETE (exit code 4)" in Run(dag).gate


def test_a_crashed_spark_job_leaves_the_run_red_with_a_report_that_is_not_passed(dag, root: Path, steps: Steps) -> None:
    steps.raises["verify_lag"] = spark_failure(1)
    run = Run(dag)
    assert run.state == "failed"
    assert run.failed == {"verify_lag", "gate"}
    assert run.states["findings_gate"] == "upstream_failed"
    assert "Step verify_lag failed" in run.gate
    assert "exit code 1" in run.gate
    assert "PASSED" not in (only_audit(root) / "report" / "report.html").read_text()


def test_a_refused_control_or_policy_in_a_spark_job_comes_back_as_invalid_input(dag, root: Path, steps: Steps) -> None:
    steps.raises["verify_settings"] = spark_failure(2)
    run = Run(dag)
    assert "(exit code 2)" in run.gate
    assert read_json(only_audit(root) / "failures" / "verify_settings.json")["exit_code"] == 2


def test_an_unreachable_cluster_leaves_no_snapshot_and_no_report_and_says_why(dag, root: Path, steps: Steps) -> None:
    steps.raises["snapshot"] = CollectionError("no bootstrap server could be reached (127.0.0.1:1: refused)")
    run = Run(dag)
    assert run.failed == {"snapshot", "gate"}
    assert run.states["report"] == "skipped"
    assert "The audit ended ERROR (exit code 1)" in run.gate
    assert "no bootstrap server could be reached" in run.gate
    assert not list(root.glob("evidence/*/*"))


def test_an_edited_snapshot_stops_the_audit_with_the_integrity_code(dag, root: Path, steps: Steps) -> None:
    steps.raises["evidence_gate"] = IntegrityError("topics.parquet: its sha256 differs from the manifest's")
    run = Run(dag)
    assert "(exit code 5)" in run.gate
    assert "its sha256 differs" in run.gate
    assert steps.calls == ["snapshot", "evidence_gate", "report"]


def test_a_mistyped_parameter_is_refused_before_the_cluster_is_touched(dag, root: Path, steps: Steps) -> None:
    run = Run(dag, fail_onn="low")
    assert run.failed == {"plan", "gate"}
    assert "fail_onn: is not a parameter" in str(run.errors["plan"])
    assert "refused before it began" in run.gate
    assert steps.calls == []


@pytest.mark.usefixtures("folders_allowed")
def test_an_invalid_policy_is_refused_before_the_cluster_is_touched(dag, root: Path, steps: Steps, tmp_path: Path) -> None:
    (tmp_path / "tiers.yaml").write_text("version: 1\ndefault_tier: nowhere\ntiers: {}\n")
    (tmp_path / "slas.yaml").write_text("version: 1\n")
    run = Run(dag, policy_dir=str(tmp_path))
    assert "tiers.yaml" in str(run.errors["plan"])
    assert steps.calls == []


def test_a_repeated_run_reads_the_cluster_once_and_gives_the_same_bytes(dag, root: Path, steps: Steps) -> None:
    Run(dag)
    before = (only_audit(root) / "manifest.json").read_bytes()
    Run(dag)
    assert (only_audit(root) / "manifest.json").read_bytes() == before
    assert steps.calls.count("snapshot") == 1
    assert steps.calls.count("verify_lag") == 2


def test_what_an_earlier_try_left_is_never_taken_for_the_result_of_one_that_crashed(dag, root: Path, steps: Steps) -> None:
    Run(dag)
    steps.raises["verify_lag"] = spark_failure(1)
    run = Run(dag)
    audit = only_audit(root)
    assert run.state == "failed"
    assert not (audit / "gate" / "findings.json").exists()
    assert not (audit / "lag").exists()
    steps.raises.clear()
    assert Run(dag).state == "success"
    assert not (audit / "failures").exists()
    assert problems_of(audit) == []


def test_audits_are_chained_and_a_chained_one_is_kept_when_its_run_is_cleared(dag, root: Path, steps: Steps) -> None:
    Run(dag)
    first = only_audit(root)
    later = Run(dag, when=WHEN.replace(hour=13))
    second = max(root.glob("audits/kafka/*"))
    assert later.state == "success"
    assert read_json(second / "manifest.json")["previous"]["audit_id"] == first.name
    calls = list(steps.calls)
    steps.findings = ("FAIL", 3)
    assert Run(dag).state == "success"
    assert steps.calls == calls
    assert problems_of(second) == []


def test_only_a_whole_audit_whose_parts_agree_can_pass(dag, root: Path, steps: Steps) -> None:
    from kafka_audit.airflow.outcome import audit_result

    Run(dag)
    audit = EvidenceRoot(path=root).audit("kafka", only_audit(root).name)
    snapshot = EvidenceRoot(path=root).snapshot("kafka", audit.run()["snapshot_id"])
    states = dict.fromkeys(("snapshot", "evidence_gate", "verify_settings", "verify_lag", "findings_gate", "report"), "success")
    assert audit_result(audit, snapshot, states).exit_code == 0
    assert audit_result(audit, snapshot, {**states, "verify_lag": "failed"}).exit_code == 1
    assert audit_result(audit, snapshot, {}).exit_code == 1
    assert audit_result(audit, None, states).exit_code == 1
    report = read_json(audit.report / "report.json")
    write_json(audit.report / "report.json", {**report, "exit_code": 3})
    assert audit_result(audit, snapshot, states).exit_code == 1
    write_json(audit.report / "report.json", report)
    (audit.path / "manifest.json").unlink()
    assert audit_result(audit, snapshot, states).exit_code == 1
