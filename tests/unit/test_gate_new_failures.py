"""The findings gate with fail_on_new: what it lets through, what blocks all the same, and that it says so."""

import pytest
from gate_samples import HEALTHY, Case, judge, lagging, statuses

from kafka_audit.findings import Severity, Verdict

pytestmark = pytest.mark.usefixtures("without_data_docs")

PREVIOUS = "20261119T231500Z-ab12cd34ab12cd34"
THROUGH = {"previous": PREVIOUS, "baseline": PREVIOUS, "not_previous": None, "failures": 0, "why_none": None}
OLD = {("lag_within_sla", "high"): 1}


def test_a_failure_that_the_previous_audit_had_does_not_block_and_is_counted(tmp_path):
    result = judge(tmp_path, lagging().knowing(counts=OLD))
    assert (result.verdict, result.exit_code) == (Verdict.PASS, 0)
    assert result.let_through.model_dump() == {**THROUGH, "failures": 1}
    assert result.parameters["fail_on_new"] is True
    [reason] = result.reasons
    assert reason.startswith("GAT-18 FAIL (does not block)")


def test_without_fail_on_new_every_failure_blocks(tmp_path):
    result = judge(tmp_path, lagging())
    assert (result.verdict, result.exit_code, result.let_through) == (Verdict.FAIL, 3, None)
    assert "fail_on_new" not in result.parameters


def test_a_new_failure_beside_an_old_one_blocks(tmp_path):
    case = Case({**HEALTHY, "lag_within_sla": ["pass", "fail", "fail"]}).knowing(counts=OLD)
    result = judge(tmp_path, case)
    assert result.exit_code == 3
    assert "CON-01 lag_within_sla (blocking_fails=1)" in result.reasons[0]
    assert result.let_through.failures == 1


def test_without_a_previous_audit_every_failure_blocks_and_the_reason_is_told(tmp_path):
    result = judge(tmp_path, lagging().knowing(previous=None, why_none="no earlier audit judged this cluster"))
    assert result.exit_code == 3
    assert {reason.split()[0] for reason in result.reasons} == {"GAT-01", "GAT-19"}
    why = "no earlier audit judged this cluster"
    assert result.let_through.model_dump() == {**THROUGH, "previous": None, "baseline": None, "why_none": why}


@pytest.mark.parametrize("counts", [{("durable_topics", "high"): 1}, {("lag_within_sla", "low"): 9}, {("lag_within_sla", "unheard_of"): 9}])
def test_an_old_failure_of_another_control_or_severity_lets_nothing_through(tmp_path, counts):
    assert judge(tmp_path, lagging().knowing(counts=counts)).exit_code == 3


def test_a_failure_of_an_unknown_severity_blocks(tmp_path):
    case = lagging().knowing(counts={("lag_within_sla", "unheard_of"): 1})
    next(row for row in case.findings if row["status"] == "fail")["severity"] = "unheard_of"
    assert statuses(judge(tmp_path, case))["GAT-01"] is Verdict.FAIL


def test_more_old_failures_than_there_are_let_no_other_through(tmp_path):
    result = judge(tmp_path, lagging().knowing(counts={("lag_within_sla", "high"): 50}))
    assert (result.exit_code, result.let_through.failures) == (0, 1)


def test_a_waived_failure_is_not_counted_as_let_through(tmp_path):
    result = judge(tmp_path, lagging().waive().knowing())
    assert (result.exit_code, result.let_through.failures) == (0, 0)


@pytest.mark.parametrize(
    ("changes", "exit_code"),
    [
        ({"durable_topics": ["pass"] * 7 + ["not_assessed"]}, 4),
        ({"lag_within_sla": ["fail", "not_assessed", "not_assessed"]}, 4),
    ],
    ids=["critical not assessed", "coverage"],
)
def test_coverage_and_critical_questions_are_judged_as_ever(tmp_path, changes, exit_code):
    assert judge(tmp_path, Case({**HEALTHY, **changes}).knowing(counts=OLD)).exit_code == exit_code


def test_an_audit_that_contradicts_itself_does_not_pass(tmp_path):
    case = lagging().knowing(counts=OLD)
    case.row("durable_topics")["passed"] = 9
    assert judge(tmp_path, case).exit_code == 1


def test_without_findings_nothing_passes(tmp_path):
    case = Case({}).knowing(counts=OLD)
    assert judge(tmp_path, case, fail_on=Severity.INFO).exit_code != 0
