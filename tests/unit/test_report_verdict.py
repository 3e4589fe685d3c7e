"""The verdict that follows from the gates; a missing gate is never a pass."""

from pathlib import Path

import pytest
from report_audit import FakeAudit, control, finding, gate

from kafka_audit.errors import IntegrityError
from kafka_audit.report import Report, html, read_report
from kafka_audit.report.words import summary
from kafka_audit.store.durable_files import write_json

TOPIC = control("replication_factor_sufficient", "TOP-01")
GROUP = control("lag_within_sla", "CON-01", subject="group")
BEFORE = "20261119T231500Z-ab12cd34ab12cd34"


def audit(root: Path) -> FakeAudit:
    fake = FakeAudit(root, (GROUP, TOPIC))
    fake.settings([finding(TOPIC, "orders", "pass"), finding(TOPIC, "clicks", "pass")])
    fake.lag([finding(GROUP, "billing", "pass")])
    return fake


def read(fake: FakeAudit, **options: int) -> Report:
    return read_report(*fake.inputs.args, **fake.inputs.kwargs, **options)


@pytest.mark.parametrize(
    ("evidence", "findings", "verdict", "exit_code"),
    [
        (("PASS", 0), ("PASS", 0), "PASSED", 0),
        (("PASS", 0), ("FAIL", 3), "FAILED", 3),
        (("PASS", 0), ("FAIL", 4), "INCOMPLETE", 4),
        (("PASS", 0), ("VACUOUS", 4), "INCOMPLETE", 4),
        (("PASS", 0), ("ERROR", 1), "INCOMPLETE", 1),
        (("PASS", 0), ("FAIL", 0), "INCOMPLETE", 4),
        (("FAIL", 4), ("PASS", 0), "VOID", 4),
        (("VACUOUS", 4), ("FAIL", 3), "VOID", 4),
        (("FAIL", 0), ("PASS", 0), "VOID", 4),
        (("PASS", 5), ("PASS", 0), "VOID", 5),
    ],
)
def test_the_verdict_follows_from_the_gates(
    tmp_path: Path, evidence: tuple[str, int], findings: tuple[str, int], verdict: str, exit_code: int
) -> None:
    fake = audit(tmp_path)
    fake.gates(evidence, findings)
    outcome = read(fake).outcome
    assert (outcome.verdict, outcome.exit_code) == (verdict, exit_code)


def test_without_an_evidence_gate_the_audit_is_void(tmp_path: Path) -> None:
    fake = audit(tmp_path)
    write_json(fake.audit.gate / "findings.json", gate("findings", "PASS", 0))
    report = read(fake)
    assert (report.outcome.verdict, report.outcome.exit_code) == ("VOID", 4)
    assert report.outcome.reasons == ("The evidence gate did not run.",)


def test_without_a_findings_gate_nothing_has_passed(tmp_path: Path) -> None:
    fake = audit(tmp_path)
    write_json(fake.audit.gate / "evidence.json", gate("evidence", "PASS", 0))
    report = read(fake)
    assert (report.outcome.verdict, report.outcome.exit_code) == ("INCOMPLETE", 4)
    assert not report.gates[1].ran


def test_a_gate_that_judged_another_snapshot_counts_as_not_run(tmp_path: Path) -> None:
    fake = audit(tmp_path)
    fake.gates(findings=("PASS", 0), snapshot={"snapshot_id": "20261119T000000Z-0000000000000000", "manifest_sha256": "0" * 64})
    report = read(fake)
    assert (report.outcome.verdict, report.outcome.exit_code) == ("INCOMPLETE", 4)
    assert report.outcome.reasons == (
        "The findings gate's result is about other evidence (20261119T000000Z-0000000000000000): run it again.",
    )


def test_a_gate_that_judged_this_snapshot_counts(tmp_path: Path) -> None:
    fake = audit(tmp_path)
    about = {"snapshot_id": fake.snapshot.snapshot_id, "manifest_sha256": fake.snapshot.manifest_sha256}
    fake.gates(findings=("PASS", 0), snapshot=about)
    assert read(fake).outcome.verdict == "PASSED"


def test_a_passing_gate_over_a_step_that_left_no_results_is_incomplete(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (GROUP, TOPIC))
    fake.settings([finding(TOPIC, "orders", "pass")])
    fake.gates(findings=("PASS", 0))
    report = read(fake)
    assert (report.outcome.verdict, report.outcome.exit_code) == ("INCOMPLETE", 4)
    assert report.missing == ("verify left no lag results: nothing was judged about consumer groups.",)
    assert [result.code for result in report.results if result.counts is None] == ["CON-01"]
    assert not report.lag.ran


def test_the_reasons_of_the_gate_are_the_reasons_of_the_verdict(tmp_path: Path) -> None:
    fake = audit(tmp_path)
    fake.gates(findings=("FAIL", 3), reasons=["TOP-01 fails on clicks"])
    assert read(fake).outcome.reasons == ("TOP-01 fails on clicks",)


@pytest.mark.parametrize(
    "content", ["not json", "[]", '{"verdict": "PASS"}', '{"exit_code": true, "results": []}', '{"exit_code": 0, "results": {}}']
)
def test_a_broken_gate_file_stops_the_report_instead_of_passing(tmp_path: Path, content: str) -> None:
    fake = audit(tmp_path)
    fake.gates(findings=("PASS", 0))
    (fake.audit.gate / "findings.json").write_text(content)
    with pytest.raises(IntegrityError, match=r"findings\.json"):
        read(fake)


def test_the_sentence_of_a_pass_says_how_much_was_assessed(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (TOPIC,))
    fake.settings([finding(TOPIC, "a", "pass"), finding(TOPIC, "b", "pass"), finding(TOPIC, "c", "not_assessed", reason="denied")])
    fake.lag([])
    fake.gates(findings=("PASS", 0))
    assert summary(read(fake)) == "The policy is met: none of 1 control fails; 66.6% of what applies was assessed."


def test_the_sentence_of_an_empty_audit_claims_no_coverage(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, ())
    fake.settings([])
    fake.lag([])
    fake.gates(findings=("VACUOUS", 4))
    assert summary(read(fake)) == "There is no verdict yet: nothing that applies was assessed; no control ran."


@pytest.mark.parametrize(
    ("through", "said"),
    [
        ({"failures": 12}, f"12 failures that audit {BEFORE} had, too, were let through and still fail."),
        (
            {"previous": None, "baseline": None, "why_none": "no earlier audit judged this cluster"},
            "counts every failure as new: no earlier audit judged this cluster.",
        ),
        ({}, "had, too, was let through."),
        (
            {"baseline": "20261118T231500Z-ab12cd34ab12cd34", "not_previous": "it was blocked"},
            "none that audit 20261118T231500Z-ab12cd34ab12cd34 had, too, was let through. "
            "Failures of the previous audit do not count as old: it was blocked.",
        ),
    ],
)
def test_a_report_says_what_a_gate_on_new_failures_only_let_through(tmp_path: Path, through: dict[str, object], said: str) -> None:
    fake = audit(tmp_path)
    given = {"previous": BEFORE, "baseline": BEFORE, "not_previous": None, "failures": 0, "why_none": None, **through}
    fake.gates(findings=("PASS", 0), let_through=given, parameters={"fail_on": "high", "fail_on_new": True})
    report = read(fake)
    assert summary(report).endswith(said)
    page = html.render(report)
    assert said in page
    assert "fails on new failures only" in page
