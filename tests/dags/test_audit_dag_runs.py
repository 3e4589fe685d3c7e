"""Complete runs of the audit DAG with fake steps: which run turns red, what its gate says, and what is in the folders afterwards."""

from datetime import date
from pathlib import Path

import pytest
import yaml
from dag_run import WHEN, Run
from steps import Steps, spark_failure

from kafka_audit.audit.check import check_audit
from kafka_audit.audit.inputs import rule_hashes
from kafka_audit.errors import CollectionError, IntegrityError
from kafka_audit.store.durable_files import read_json, sha256_of, write_json
from kafka_audit.store.layout import Audit, EvidenceRoot
from kafka_audit.store.sealed import Sealed
from kafka_audit.store.signing import new_key, read_public_key, signature_problems
from kafka_audit.store.unfinished import hidden_name

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
    manifest = Sealed.verified(audit).manifest
    assert {"run.json", "gate/evidence.json", "gate/findings.json", "report/report.html", "settings/done", "lag/done"} <= set(
        manifest["files"]
    )
    assert manifest["snapshot"]["snapshot_id"] == read_json(audit / "run.json")["snapshot_id"]
    assert all(manifest[name] for name in ("catalogue_sha256", "policy_sha256", "rule_set_sha256"))


def test_a_run_sweeps_what_a_killed_one_of_its_cluster_left(dag, root: Path, steps: Steps) -> None:
    left = [hidden_name(root / place / "kafka" / "20261119T120000Z-ab12cd34ab12cd34") for place in ("audits", "evidence", "history")]
    other = hidden_name(root / "evidence" / "payments" / "20261119T120000Z-ab12cd34ab12cd34")
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
    assert Sealed.open(only_audit(root)).problems() == []


def test_unfit_evidence_makes_the_audit_void_and_it_is_reported_and_sealed(dag, root: Path, steps: Steps) -> None:
    steps.evidence = ("FAIL", 4)
    run = Run(dag)
    assert (run.state, run.failed) == ("failed", {"gate"})
    assert "The audit ended VOID (exit code 4)" in run.gate
    assert (only_audit(root) / "report" / "report.html").read_text() == "<p>VOID</p>"
    assert Sealed.open(only_audit(root)).problems() == []


def test_low_coverage_ends_incomplete(dag, root: Path, steps: Steps) -> None:
    steps.findings = ("FAIL", 4)
    assert "The audit ended INCOMPLETE (exit code 4)" in Run(dag).gate


def test_a_crashed_spark_job_leaves_the_run_red_with_a_report_that_is_not_passed(dag, root: Path, steps: Steps) -> None:
    steps.raises["verify"] = spark_failure(1)
    run = Run(dag)
    assert run.state == "failed"
    assert run.failed == {"verify", "gate"}
    assert run.states["findings_gate"] == "upstream_failed"
    assert "Step verify failed" in run.gate
    assert "exit code 1" in run.gate
    assert "PASSED" not in (only_audit(root) / "report" / "report.html").read_text()


def test_a_refused_control_or_policy_in_a_spark_job_comes_back_as_invalid_input(dag, root: Path, steps: Steps) -> None:
    steps.raises["verify"] = spark_failure(2)
    run = Run(dag)
    assert "(exit code 2)" in run.gate
    assert read_json(only_audit(root) / "failures" / "verify.json")["exit_code"] == 2


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
    assert steps.calls.count("verify") == 2


def test_what_an_earlier_try_left_is_never_taken_for_the_result_of_one_that_crashed(dag, root: Path, steps: Steps) -> None:
    Run(dag)
    steps.raises["verify"] = spark_failure(1)
    run = Run(dag)
    audit = only_audit(root)
    assert run.state == "failed"
    assert not (audit / "gate" / "findings.json").exists()
    assert not (audit / "settings").exists()
    assert not (audit / "lag").exists()
    steps.raises.clear()
    assert Run(dag).state == "success"
    assert not (audit / "failures").exists()
    assert Sealed.open(audit).problems() == []


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
    assert Sealed.open(second).problems() == []


def test_only_a_whole_audit_whose_parts_agree_can_pass(dag, root: Path, steps: Steps) -> None:
    from kafka_audit.audit.outcome import audit_outcome

    Run(dag)
    audit = EvidenceRoot(path=root).audit("kafka", only_audit(root).name)
    snapshot = EvidenceRoot(path=root).snapshot("kafka", audit.run()["snapshot_id"])
    states = dict.fromkeys(("snapshot", "evidence_gate", "verify", "findings_gate", "report"), "success")
    assert audit_outcome(audit, snapshot, states).exit_code == 0
    assert audit_outcome(audit, snapshot, {**states, "verify": "failed"}).exit_code == 1
    assert audit_outcome(audit, snapshot, {}).exit_code == 1
    assert audit_outcome(audit, None, states).exit_code == 1
    report = read_json(audit.report / "report.json")
    write_json(audit.report / "report.json", {**report, "exit_code": 3})
    assert audit_outcome(audit, snapshot, states).exit_code == 1
    write_json(audit.report / "report.json", report)
    (audit.path / "manifest.json").unlink()
    assert audit_outcome(audit, snapshot, states).exit_code == 1


def test_the_seal_is_in_the_log_and_in_the_xcom_of_report_and_gate(dag, root: Path, steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    run = Run(dag)
    audit = only_audit(root)
    seal = {"audit_id": audit.name, "sequence": 1, "manifest_sha256": sha256_of(audit / "manifest.json")}
    assert run.returned("report") == {"report": str(audit / "report" / "report.html"), **seal}
    assert seal.items() <= run.returned("gate").items()
    told = [record for record in caplog.records if seal["manifest_sha256"] in record.getMessage()]
    assert {record.name.rsplit(".", 1)[-1] for record in told} >= {"results", "gate"}


def test_a_format_that_is_missing_keeps_the_run_green_and_is_named_by_the_seal_and_as_a_warning_of_the_gate(
    dag, root: Path, steps: Steps, caplog: pytest.LogCaptureFixture
) -> None:
    steps.not_written = [{"format": "pdf", "file": "report.pdf", "reason": "CollectionError: no font"}]
    run = Run(dag)
    assert (run.state, run.failed) == ("success", set())
    audit = only_audit(root)
    assert Sealed.verified(audit).manifest["not_written"] == steps.not_written
    (told,) = [record for record in caplog.records if "report.pdf could not be written" in record.getMessage()]
    assert (told.levelname, f"kafka-audit report {audit} --formats pdf" in told.getMessage()) == ("WARNING", True)


def test_a_red_gate_has_told_the_seal_in_its_log(dag, root: Path, steps: Steps, caplog: pytest.LogCaptureFixture) -> None:
    steps.findings = ("FAIL", 3)
    Run(dag)
    sha256 = sha256_of(only_audit(root) / "manifest.json")
    assert any(record.name.endswith(".gate") and sha256 in record.getMessage() for record in caplog.records)


def test_a_gate_on_new_failures_only_is_told_what_is_old(dag, root: Path, steps: Steps) -> None:
    Run(dag)
    assert steps.old is None
    Run(dag, fail_on_new=True)
    assert steps.old.why_none == "no earlier audit judged this cluster"


def test_the_folder_of_another_run_is_refused_and_left_as_it_is(dag, root: Path, steps: Steps) -> None:
    Run(dag)
    audit = only_audit(root)
    write_json(audit / "run.json", {**read_json(audit / "run.json"), "run_id": "manual__somebody_else"})
    before = {path: path.read_bytes() for path in audit.rglob("*") if path.is_file()}
    calls = list(steps.calls)
    run = Run(dag, min_coverage=0.5)
    assert run.failed == {"plan", "gate"}
    assert "belongs to run 'manual__somebody_else'" in str(run.errors["plan"])
    assert steps.calls == calls
    assert {path: path.read_bytes() for path in audit.rglob("*") if path.is_file()} == before


def test_a_signing_key_that_cannot_be_read_is_refused_before_the_cluster_is_touched(
    dag, root: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KAFKA_AUDIT_SIGNING_KEY", str(tmp_path / "missing.key"))
    run = Run(dag)
    assert run.failed == {"plan", "gate"}
    assert "KAFKA_AUDIT_SIGNING_KEY" in str(run.errors["plan"])
    assert steps.calls == []


def test_a_signed_audit_is_signed_again_when_its_run_is_cleared(
    dag, root: Path, steps: Steps, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    public = read_public_key(new_key(tmp_path / "seal.key"))
    monkeypatch.setenv("KAFKA_AUDIT_SIGNING_KEY", str(tmp_path / "seal.key"))
    for findings in (("PASS", 0), ("FAIL", 3)):
        steps.findings = findings
        Run(dag)
        assert signature_problems(only_audit(root), [public]) == []
    assert len(read_json(only_audit(root) / "manifest.json")["replaces"]) == 1


@pytest.mark.usefixtures("folders_allowed")
def test_the_rules_are_kept_in_the_audit_as_they_were_loaded(dag, root: Path, steps: Steps, policy_copy: Path) -> None:
    Run(dag, policy_dir=str(policy_copy))
    audit = Audit(path=only_audit(root))
    manifest = read_json(audit.path / "manifest.json")
    assert rule_hashes(audit) == (manifest["policy_sha256"], manifest["catalogue_sha256"])
    assert check_audit(audit.path, EvidenceRoot(path=root)).problems == []


@pytest.mark.usefixtures("folders_allowed")
def test_a_policy_that_no_audit_could_keep_whole_is_refused_before_the_cluster_is_touched(
    dag, root: Path, steps: Steps, policy_copy: Path
) -> None:
    (policy_copy.parent / "app.properties").write_text("acks=all\n")
    client = {"name": "a", "kind": "producer", "implementation": "java", "owner": "o", "declared_on": date(2026, 1, 1), "source": "s"}
    client |= {"topics": ["*"], "settings_file": "../app.properties"}
    (policy_copy / "clients.yaml").write_text(yaml.safe_dump({"version": 1, "clients": [client]}))
    run = Run(dag, policy_dir=str(policy_copy))
    assert "clients.a.settings_file" in str(run.errors["plan"])
    assert steps.calls == []
