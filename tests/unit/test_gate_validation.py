"""Great Expectations' fail-open results never count as a pass."""

import logging
import subprocess
import sys
from contextlib import nullcontext

import pytest

from expectations.gate import decide
from expectations.suites import Suite, Table
from expectations.validation import exception_messages, library, validate
from kafka_audit.audit.gate_result import RuleResult
from kafka_audit.errors import ConfigurationError
from kafka_audit.findings import Verdict

ZERO = {"min_value": 0, "max_value": 0}
BETWEEN = "expect_column_values_to_be_between"


def suite_of(*rules, severity="critical", error_exit_code=1) -> Suite:
    expectations = [
        {
            "type": kind,
            "kwargs": kwargs,
            "severity": severity,
            "description": f"Rule {number}.",
            "notes": "-",
            "meta": {"rule_id": f"TST-{number:02d}", "table": "things", "exit_code": 3},
        }
        for number, (kind, kwargs) in enumerate(rules, start=1)
    ]
    meta = {"about": "-", "rule_prefix": "TST", "rule_count": len(rules), "error_exit_code": error_exit_code}
    return Suite(name="tested", meta=meta, expectations=expectations, sha256="0" * 64)


def things(*counts) -> Table:
    rows = [{"name": f"n{index}", "bad": count} for index, count in enumerate(counts)]
    return Table(name="things", key="name", columns={"name": "text", "bad": "count"}, rows=rows)


def judge(table, kind=BETWEEN, severity="critical", **kwargs) -> RuleResult:
    (result,) = validate(suite_of((kind, kwargs), severity=severity), [table], {}).results
    return result


def test_rows_within_the_limit_pass():
    result = judge(things(0, 0), column="bad", **ZERO)
    assert (result.status, result.observed, result.detail) == (Verdict.PASS, "0 of 2 break this rule", "")
    assert decide([result]) == (Verdict.PASS, 0)


def test_rows_outside_the_limit_fail_and_are_named():
    result = judge(things(0, 7, 0), column="bad", **ZERO)
    assert (result.status, result.exit_code) == (Verdict.FAIL, 3)
    assert result.detail == "Found: n1 (bad=7)."
    assert result.expected == "column=bad, max_value=0, min_value=0"


def test_long_lists_of_rows_are_cut_and_counted():
    assert judge(things(*[1] * 30), column="bad", **ZERO).reason.endswith(
        "30 of 30 break this rule: " + ", ".join(f"n{n}" for n in range(20)) + " and 10 more"
    )
    assert judge(things(*[1] * 30), column="bad", **ZERO).detail.endswith("n19 (bad=1) and 10 more.")


def test_an_empty_table_is_vacuous_and_not_passed():
    result = judge(things(), column="bad", **ZERO)
    assert result.status is Verdict.VACUOUS
    assert decide([result]) == (Verdict.VACUOUS, 4)


def test_a_row_condition_that_matches_nothing_is_vacuous():
    condition = {"type": "comparison", "column": {"name": "name"}, "operator": "==", "parameter": "nobody"}
    result = judge(things(1, 1), column="bad", row_condition=condition, **ZERO)
    assert (result.status, result.detail) == (Verdict.VACUOUS, "Nothing was tested: there was no row.")
    assert result.expected.endswith(", where name == nobody")


def test_a_value_that_is_not_known_is_vacuous():
    assert judge(things(None), column="bad", **ZERO).status is Verdict.VACUOUS


def test_one_unknown_value_among_good_ones_fails_and_is_named():
    result = judge(things(0, None), column="bad", **ZERO)
    assert (result.status, result.detail) == (Verdict.FAIL, "Not known for: n1.")


@pytest.mark.parametrize("severity", ["critical", "warning", "info"])
def test_a_missing_column_is_an_error_that_blocks_at_every_severity(severity):
    result = judge(things(0), severity=severity, column="gone", **ZERO)
    assert result.status is Verdict.ERROR
    assert "gone" in result.detail
    assert decide([result]) == (Verdict.ERROR, 1)


def test_a_failing_warning_is_a_reason_that_does_not_block():
    result = judge(things(1), severity="warning", column="bad", **ZERO)
    assert decide([result]) == (Verdict.PASS, 0)
    assert "(does not block)" in result.reason


def test_no_rule_at_all_is_vacuous():
    assert decide([]) == (Verdict.VACUOUS, 4)


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([(Verdict.FAIL, 4), (Verdict.FAIL, 3), (Verdict.ERROR, 1)], (Verdict.FAIL, 3)),
        ([(Verdict.FAIL, 4), (Verdict.ERROR, 1), (Verdict.VACUOUS, 4)], (Verdict.ERROR, 1)),
        ([(Verdict.VACUOUS, 4), (Verdict.FAIL, 4)], (Verdict.FAIL, 4)),
    ],
)
def test_a_known_failure_outranks_an_error_and_an_error_a_gap(codes, expected):
    words = {"severity": "critical", "description": "", "expected": "", "observed": "", "detail": ""}
    assert decide([RuleResult(rule_id="TST-01", status=status, exit_code=code, **words) for status, code in codes]) == expected


def test_a_rule_of_unknown_type_is_refused_instead_of_dropped():
    with pytest.raises(ConfigurationError, match=r"dropped TST-02 \(expect_the_best\)"):
        validate(suite_of((BETWEEN, {"column": "bad", **ZERO}), ("expect_the_best", {"column": "bad"})), [things(0)], {})


def test_a_parameter_that_was_not_given_is_refused():
    with pytest.raises(ConfigurationError, match="limit"):
        validate(suite_of((BETWEEN, {"column": "bad", "max_value": {"$PARAMETER": "limit"}})), [things(0)], {})


def test_a_suite_for_other_tables_is_refused():
    with pytest.raises(ConfigurationError, match="has rules for the tables"):
        validate(suite_of((BETWEEN, {"column": "bad", **ZERO})), [], {})


def test_results_come_in_the_order_of_the_suite_and_none_is_lost():
    rules = [(BETWEEN, {"column": "bad", "max_value": limit}) for limit in range(6)]
    results = validate(suite_of(*rules), [things(3)], {}).results
    assert [result.rule_id for result in results] == [f"TST-{number:02d}" for number in range(1, 7)]
    assert [result.status.value for result in results] == ["FAIL"] * 3 + ["PASS"] * 3


@pytest.mark.parametrize(
    ("info", "messages"),
    [
        (None, []),
        ({}, []),
        ({"raised_exception": False, "exception_message": None}, []),
        ({"raised_exception": True, "exception_message": "flat"}, ["flat"]),
        ({"metric": {"raised_exception": True, "exception_message": "nested"}}, ["nested"]),
    ],
)
def test_both_shapes_of_an_exception_are_read(info, messages):
    assert exception_messages(info) == messages


def test_configurations_that_are_made_once_change_no_answer(monkeypatch):
    expectation = library().gx.expectations.ExpectColumnValuesToBeBetween
    original = expectation.configuration
    rules = [
        (BETWEEN, {"column": "bad", **ZERO}),
        (BETWEEN, {"column": "bad", "min_value": 0, "max_value": {"$PARAMETER": "most"}}),
        (BETWEEN, {"column": "absent", **ZERO}),
        ("expect_column_values_to_not_be_null", {"column": "bad"}),
        ("expect_table_row_count_to_be_between", {"min_value": 1}),
    ]
    once = validate(suite_of(*rules), [things(0, 7, None)], {"most": 9})
    assert expectation.configuration is original
    monkeypatch.setattr(library(), "configurations_made_once", nullcontext)
    assert validate(suite_of(*rules), [things(0, 7, None)], {"most": 9}) == once
    assert {Verdict.PASS, Verdict.FAIL, Verdict.ERROR} <= {result.status for result in once.results}


def test_validation_prints_nothing(capfd, caplog):
    with caplog.at_level(logging.WARNING):
        judge(things(0, 1), column="bad", **ZERO)
    captured = capfd.readouterr()
    assert (captured.out, captured.err, caplog.messages) == ("", "", [])


def test_importing_great_expectations_leaves_out_what_no_gate_uses_and_no_trace_of_it() -> None:
    script = """
import sys
from expectations import library
assert library.gx.__version__
assert "pyspark" not in sys.modules
assert "rfc3987_syntax" not in sys.modules
import pyspark
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
