"""The findings gate on healthy summaries, and on summaries with one damage each."""

import json

import pyarrow as pa
import pytest
from gate_samples import CATALOGUE, HEALTHY, Case, findings_of, judge, lagging, statuses, write_spark_folder

from expectations.suites import SHIPPED, load_suite
from kafka_audit.errors import IntegrityError
from kafka_audit.findings import Severity, Verdict

pytestmark = pytest.mark.usefixtures("without_data_docs")


def with_statuses(**changes):
    return lambda: Case({**HEALTHY, **changes})


def changed(change):
    def case():
        found = Case()
        change(found)
        return found

    case.change = change
    return case


def removed(path):
    def remove(audit):
        folder = audit.path / path
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()

    return remove


TWO_WORDS = {"durable_topics": ["pass"] * 7 + ["waived"]}
# rule -> (what makes it fail, exit code, part of the reason)
MUTATIONS = {
    "GAT-01": (with_statuses(lag_within_sla=["pass", "pass", "fail"]), 3, "CON-01 lag_within_sla (blocking_fails=1)"),
    "GAT-02": (with_statuses(durable_topics=["pass"] * 7 + ["not_assessed"]), 4, "TOP-01 durable_topics (critical_unassessed=1)"),
    "GAT-03": (with_statuses(racks_are_set=["pass", "error"]), 0, "BRK-03 racks_are_set (errored=1)"),
    "GAT-04": (changed(lambda c: c.row("durable_topics").update(population=9)), 1, "findings=8"),
    "GAT-05": (changed(lambda c: c.row("durable_topics").update(distinct_resources=7)), 1, "distinct_resources=7"),
    "GAT-06": (changed(lambda c: c.row("durable_topics").update(passed=9)), 1, "counted=9"),
    "GAT-07": (changed(lambda c: c.findings.pop(0)), 1, "recount_difference=1"),
    "GAT-08": (Case, 4, "settings/findings"),
    "GAT-09": (changed(lambda c: setattr(c, "controls", {**CATALOGUE, "left_out": Severity.LOW})), 4, "missing_controls=left_out"),
    "GAT-10": (changed(lambda c: setattr(c, "controls", {"durable_topics": Severity.CRITICAL})), 1, "lag_within_sla, racks_are_set"),
    "GAT-11": (changed(lambda c: c.row("lag_within_sla").update(severity="low")), 1, "low where the catalogue says high"),
    "GAT-12": (with_statuses(**TWO_WORDS), 1, "unknown_words=waived"),
    "GAT-13": (changed(lambda c: c.findings[0].update(snapshot_id="other")), 1, "foreign_findings=1"),
    "GAT-14": (with_statuses(lag_within_sla=["pass", "not_assessed", "not_assessed"]), 4, "coverage_ratio=0.8333"),
    "GAT-15": (changed(lambda c: setattr(c, "evidence", {"exit_code": 4, "verdict": "FAIL"})), 4, "evidence_verdict=FAIL (void)"),
    "GAT-16": (lambda: lagging().waive(), 0, "CON-01 lag_within_sla (waived_fails=1)"),
    "GAT-17": (lambda: Case({**HEALTHY, "racks_are_set": ["pass", "fail"]}).waive(id="W-2"), 1, "unfounded_waivers=W-1 on BRK-03"),
    "GAT-18": (lambda: lagging().knowing(counts={("lag_within_sla", "high"): 1}), 0, "CON-01 lag_within_sla (old_fails=1)"),
    "GAT-19": (lambda: Case().knowing(why_none="no earlier audit judged this cluster"), 0, "not_compared=no earlier audit judged"),
    "GAT-20": (
        lambda: Case().knowing(baseline="A-1", not_previous="it was blocked"),
        0,
        "older_baseline=audit A-1, not the previous audit",
    ),
}


def test_healthy_findings_pass_and_their_files_say_so(tmp_path):
    case = Case()
    result = judge(tmp_path, case)
    assert (result.verdict, result.exit_code, result.reasons) == (Verdict.PASS, 0, ())
    assert result.coverage.model_dump() == {"assessed": 12, "applicable": 12, "ratio": 1.0}
    [stored] = [json.loads(path.read_text()) for path in tmp_path.rglob("gate/findings.json")]
    assert stored == result.model_dump(mode="json")
    assert stored["parameters"] == {"fail_on": "high", "min_coverage": 0.9}


def test_every_rule_has_a_mutation():
    assert list(MUTATIONS) == [rule.meta.rule_id for rule in load_suite(SHIPPED / "findings_pass.json").expectations]


@pytest.mark.parametrize("rule_id", MUTATIONS)
def test_a_mutation_fails_its_rule_and_sets_the_exit_code(tmp_path, rule_id):
    make, exit_code, part = MUTATIONS[rule_id]
    result = judge(tmp_path, make(), after=removed("settings/findings.parquet") if rule_id == "GAT-08" else None)
    row = next(row for row in result.results if row.rule_id == rule_id)
    assert row.status is Verdict.FAIL
    assert part in row.detail
    assert row.reason in result.reasons
    assert row.exit_code == (exit_code or {"GAT-03": 4, "GAT-16": 3, "GAT-18": 3, "GAT-19": 4, "GAT-20": 4}[rule_id])
    if rule_id != "GAT-08":
        assert result.exit_code == exit_code


def test_a_failure_below_the_limit_passes_and_at_the_limit_does_not(tmp_path):
    case = Case({**HEALTHY, "racks_are_set": ["fail", "fail"]})
    assert judge(tmp_path / "high", case).exit_code == 0
    result = judge(tmp_path / "medium", case, fail_on=Severity.MEDIUM)
    assert (result.verdict, result.exit_code) == (Verdict.FAIL, 3)


def test_a_failure_outranks_thin_coverage_and_the_reasons_list_both(tmp_path):
    result = judge(tmp_path, Case({**HEALTHY, "durable_topics": ["fail"] + ["not_assessed"] * 7}))
    assert (result.verdict, result.exit_code) == (Verdict.FAIL, 3)
    assert {"GAT-01", "GAT-02", "GAT-14"} <= {reason.split()[0] for reason in result.reasons}


def test_a_finding_counts_by_its_own_severity_when_a_tier_raised_it(tmp_path):
    case = Case({**HEALTHY, "racks_are_set": ["fail", "pass"]})
    next(row for row in case.findings if row["status"] == "fail")["severity"] = "critical"
    assert judge(tmp_path, case).exit_code == 3


def test_a_severity_outside_the_set_cannot_slip_below_the_limit(tmp_path):
    case = Case({**HEALTHY, "racks_are_set": ["fail", "pass"]})
    next(row for row in case.findings if row["status"] == "fail")["severity"] = "none"
    assert judge(tmp_path, case).exit_code == 3


def test_a_control_without_resources_is_not_applicable_and_does_not_block(tmp_path):
    result = judge(tmp_path, Case({**HEALTHY, "lag_within_sla": []}))
    assert (result.exit_code, result.reasons) == (0, ())


def test_findings_where_nothing_applies_are_vacuous_and_not_passed(tmp_path):
    result = judge(tmp_path, Case({name: ["not_applicable"] for name in HEALTHY}))
    assert (result.verdict, result.exit_code) == (Verdict.VACUOUS, 4)
    assert result.coverage.ratio is None


def test_an_audit_without_any_control_is_vacuous_in_every_rule_on_controls(tmp_path):
    case = Case({})
    result = judge(
        tmp_path,
        case,
        after=lambda audit: [removed(f"{job}/{t}.parquet")(audit) for job in ("settings", "lag") for t in ("summary", "findings")],
    )
    assert result.exit_code == 4
    found = statuses(result)
    assert {found[f"GAT-0{number}"] for number in (1, 2)} == {Verdict.VACUOUS}
    assert found["GAT-08"] is found["GAT-09"] is Verdict.FAIL


def test_a_summary_without_a_column_is_an_error_and_not_a_pass(tmp_path):
    case = Case()
    for row in case.summary:
        del row["errored"]
    result = judge(tmp_path, case)
    found = statuses(result)
    assert found["GAT-03"] is found["GAT-06"] is found["GAT-07"] is Verdict.ERROR
    assert (result.verdict, result.exit_code) == (Verdict.ERROR, 1)


def test_findings_without_a_column_are_an_error_in_the_rule_that_decides(tmp_path):
    case = Case()
    for row in case.findings:
        del row["severity"]
    result = judge(tmp_path, case)
    assert statuses(result)["GAT-01"] is Verdict.ERROR
    assert result.exit_code == 1


def test_a_control_that_stands_only_in_the_findings_is_noticed(tmp_path):
    case = Case()
    case.findings += findings_of({"stowaway": ["fail"]})
    result = judge(tmp_path, case)
    assert statuses(result)["GAT-10"] is Verdict.FAIL
    assert result.exit_code == 1


def test_a_control_that_is_there_twice_is_noticed(tmp_path):
    case = Case()
    case.summary.append(case.row("racks_are_set"))
    result = judge(tmp_path, case)
    assert "racks_are_set (2 times)" in next(row for row in result.results if row.rule_id == "GAT-10").detail


def test_an_evidence_gate_that_did_not_run_or_judged_another_snapshot_blocks(tmp_path):
    case = Case()
    case.evidence = None
    assert "evidence_verdict=not judged" in judge(tmp_path / "none", case).reasons[0]

    def swap(audit):
        about = {"snapshot_id": "another", "manifest_sha256": ""}
        said = {"gate": "evidence", "verdict": "PASS", "exit_code": 0, "results": [], "snapshot": about}
        (audit.gate / "evidence.json").write_text(json.dumps(said))

    assert "given to another snapshot" in judge(tmp_path / "other", case, after=swap).reasons[0]


def test_a_table_that_is_no_parquet_is_an_integrity_error(tmp_path):
    def spoil(audit):
        next((audit.lag / "summary.parquet").glob("part-*")).write_bytes(b"PAR1 nothing")

    with pytest.raises(IntegrityError, match="run the verification job again"):
        judge(tmp_path, Case(), after=spoil)
    assert not list(tmp_path.rglob("gate/findings.json"))


def test_a_count_that_is_text_is_an_integrity_error(tmp_path):
    def spoil(audit):
        removed("lag/summary.parquet")(audit)
        write_spark_folder(audit.lag / "summary.parquet", pa.table({"control_id": ["lag_within_sla"], "failed": ["0"]}))

    with pytest.raises(IntegrityError, match="failed should be whole numbers"):
        judge(tmp_path, Case(), after=spoil)
