"""The findings gate and waivers: which failures they keep from blocking, and all cases in which they do not."""

import pytest
from gate_samples import Case, judge, lagging, statuses, waiver

from kafka_audit.errors import IntegrityError
from kafka_audit.findings import Verdict

pytestmark = pytest.mark.usefixtures("without_data_docs")


def test_a_waived_failure_does_not_block_and_is_named(tmp_path):
    result = judge(tmp_path, lagging().waive())
    assert (result.verdict, result.exit_code) == (Verdict.PASS, 0)
    [reason] = result.reasons
    assert reason.startswith("GAT-16 FAIL (does not block)")
    assert "CON-01 lag_within_sla (waived_fails=1)" in reason
    assert result.coverage.assessed == 12


@pytest.mark.parametrize(
    "changes",
    [
        {"id": "W-2"},
        {"control": "CON-02"},
        {"resource": "another"},
        {"expires": "2026-11-20T23:15:04Z"},
        {"approved_on": "2026-11-22"},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_a_waiver_that_does_not_cover_the_failure_keeps_nothing_from_blocking(tmp_path, changes):
    result = judge(tmp_path, lagging().waive(**changes))
    assert (result.verdict, result.exit_code) == (Verdict.FAIL, 3)
    assert {"GAT-01", "GAT-07", "GAT-17"} <= {reason.split()[0] for reason in result.reasons}


@pytest.mark.parametrize("column", ["waiver", "code", "resource"])
def test_without_the_columns_of_waivers_nothing_is_waived(tmp_path, column):
    case = lagging().waive()
    for row in case.findings:
        del row[column]
    assert judge(tmp_path, case).exit_code == 3


def test_a_waiver_on_a_finding_that_does_not_fail_is_noticed(tmp_path):
    case = Case()
    case.findings[0]["waiver"] = "W-1"
    case.waivers = [waiver(control="TOP-01")]
    assert statuses(judge(tmp_path, case))["GAT-17"] is Verdict.FAIL


def test_a_summary_that_claims_more_waived_failures_than_there_are_is_noticed(tmp_path):
    case = lagging().waive()
    case.row("lag_within_sla")["waived"] = 2
    assert statuses(judge(tmp_path, case))["GAT-07"] is Verdict.FAIL


def test_an_audit_without_a_start_has_no_waivers_to_go_by(tmp_path):
    with pytest.raises(IntegrityError, match="no usable started_at"):
        judge(tmp_path, lagging().waive(), after=lambda audit: audit.run_file.write_text("{}"))
