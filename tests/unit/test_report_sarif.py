"""SARIF: kinds, suppressions, coverage, fingerprints and baseline; tests/formats checks that it is valid."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from report_audit import HOSTILE_GROUPS
from report_documents import complete, cut_short, passing, without_controls

from kafka_audit.report import Report
from kafka_audit.report.sarif import as_sarif, render


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return complete(tmp_path_factory.mktemp("audit"))


def run_of(report: Report) -> Any:
    return json.loads(render(report))["runs"][0]


def results(run: Any, **properties: object) -> Iterator[Any]:
    wanted = properties.items()
    return (one for one in run["results"] if all(one["properties"].get(name) == value for name, value in wanted))


def test_every_status_has_its_kind_and_only_failures_have_a_level(report: Report) -> None:
    run = run_of(report)
    kinds = {(one["properties"]["status"], one["kind"]) for one in run["results"]}
    assert kinds == {
        ("fail", "fail"),
        ("resolved", "fail"),
        ("error", "open"),
        ("not_assessed", "open"),
        ("not_assessed", "review"),
        ("did_not_run", "open"),
        ("pass", "pass"),
        ("not_applicable", "notApplicable"),
    }
    assert {one["level"] for one in run["results"] if one["kind"] != "fail"} == {"none"}
    assert next(results(run, severity="low", status="fail"))["level"] == "note"
    assert next(results(run, status="not_assessed", evidenceClass="manual"))["kind"] == "review"


def test_a_waived_failure_is_a_suppressed_failure_and_every_other_result_says_that_it_is_not(report: Report) -> None:
    run = run_of(report)
    suppressed = [one for one in run["results"] if one["suppressions"]]
    assert [one["properties"]["resource"] for one in suppressed] == ["legacy"]
    (one,) = suppressed[0]["suppressions"]
    assert (one["kind"], one["status"], one["properties"]["id"], one["properties"]["approver"]) == (
        "external",
        "accepted",
        "W-1",
        "platform team",
    )
    assert "deleted" in one["justification"]
    assert all(isinstance(each["suppressions"], list) for each in run["results"])  # SARIF 3.27.23: all or none


def test_coverage_is_in_the_run_and_in_every_rule(report: Report) -> None:
    run = run_of(report)
    counts = report.counts
    assert run["properties"]["coverage"]["assessed"] == counts.assessed
    assert run["properties"]["coverage"]["applicable"] == counts.applicable
    rules = {one["id"]: one["properties"] for one in run["tool"]["driver"]["rules"]}
    assert set(rules) == {result.code for result in report.results}
    assert (rules["TOP-04"]["counts"]["passed"], rules["TOP-04"]["counts"]["coverage_ratio"]) == (2, 1.0)
    assert (rules["AUD-02"]["counts"]["coverage_ratio"], rules["REP-08"]["ran"]) == (None, False)
    assert "did not run" in rules["REP-08"]["coverage"]
    assert next(results(run, status="pass", controlId="unclean_leader_election_disabled"))["properties"]["count"] == 2


def test_rules_have_texts_severities_and_the_requirements_that_name_them(report: Report) -> None:
    rule = next(one for one in run_of(report)["tool"]["driver"]["rules"] if one["id"] == "TOP-01")
    assert rule["name"] == "ReplicationFactorSufficient"
    assert rule["helpUri"].startswith("https://cwiki.apache.org/")
    assert "What to do: Add replicas." in rule["help"]["text"]
    assert (rule["defaultConfiguration"]["level"], rule["properties"]["security-severity"]) == ("error", "9.5")
    assert any(one.startswith("nist_800_53_r5:") for one in rule["properties"]["requirements"])
    assert "security" in rule["properties"]["tags"] and len(rule["properties"]["tags"]) <= 10


def test_an_error_of_a_rule_means_that_the_run_is_not_complete(report: Report) -> None:
    invocation = run_of(report)["invocations"][0]
    errors = [one for one in invocation["toolExecutionNotifications"] if one["descriptor"]["id"] == "rule-error"]
    assert [one["associatedRule"]["id"] for one in errors] == ["REP-01", "TOP-01", "TOP-10", "TOP-10", "TOP-10"]
    assert {one["level"] for one in errors} == {"error"}
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 3)
    assert invocation["exitCodeDescription"].startswith("FAILED: The policy is not met")


def test_the_baseline_says_what_is_new_worse_unchanged_and_resolved_and_nothing_of_what_cannot_be_compared(report: Report) -> None:
    run = run_of(report)
    states = {one["properties"]["resource"]: one.get("baselineState") for one in run["results"] if one["properties"].get("resource")}
    named = {name: states[name] for name in ("t000", "t001", "t002", "t003", "legacy", "mended")}
    assert named == {"t000": "new", "t001": "unchanged", "t002": "updated", "t003": None, "legacy": None, "mended": "absent"}
    before = replace(report, audit_id="20261119T231600Z-0badcafe0badcafe", comparison=None)
    assert run["baselineGuid"] == run_of(before)["automationDetails"]["guid"]
    assert "baselineGuid" not in run_of(before)


def test_a_resource_keeps_its_fingerprint_in_every_audit_whatever_its_verdict_and_place(report: Report, tmp_path: Path) -> None:
    def prints(run: Any) -> dict[tuple[str, str], str]:
        return {
            (one["ruleId"], one["properties"]["resource"]): one["partialFingerprints"]["kafkaAuditResource/v1"]
            for one in run["results"]
            if "resource" in one["properties"]
        }

    first = prints(run_of(report))
    again = prints(
        run_of(replace(complete(tmp_path, limit=3), audit_id="20270101T000000Z-0badcafe0badcafe", started_at="2027-01-01T00:00:00Z"))
    )
    assert len(set(first.values())) == len(first)
    assert again and again.items() <= first.items()


def test_locations_are_kafka_names_and_paths_that_github_accepts(report: Report) -> None:
    run = run_of(report)
    places = {
        one["properties"]["resource"]: (
            one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"],
            one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        )
        for one in results(run, status="fail")
    }
    assert places["orders-3"] == ("kafka://mk5vR0-9Q1OaEwX7dA/topic/orders/partition/3", "mk5vR0-9Q1OaEwX7dA/topic/orders/partition/3")
    for uri, path in places.values():
        assert uri == f"kafka://{path}" and re.fullmatch(r"[A-Za-z0-9._~%/-]+", path) and ".." not in path.split("/")


def test_what_is_not_listed_is_said_with_its_number_and_file(tmp_path: Path) -> None:
    report = complete(tmp_path, limit=2)
    run = run_of(report)
    said = [one for one in run["invocations"][0]["toolExecutionNotifications"] if one["descriptor"]["id"] == "not-listed"]
    of_topics = next(one for one in said if one["associatedRule"]["id"] == "TOP-01" and one["properties"]["status"] == "fail")
    failed = next(result.counted.failed for result in report.results if result.code == "TOP-01")
    assert of_topics["properties"]["count"] == failed - 2
    assert f"TOP-01: {failed - 2} more results" in of_topics["message"]["text"]
    assert "settings/findings.parquet of audit 20261120T231600Z" in of_topics["message"]["text"]
    assert {(one["properties"]["status"], one["level"]) for one in said} == {("fail", "warning"), ("error", "error")}
    assert any("lag/findings.parquet" in one["message"]["text"] for one in said)
    listed = Counter(one["ruleId"] for one in results(run, status="fail"))
    assert max(listed.values()) == 2


def test_hostile_names_cannot_act_in_a_message_or_a_terminal(report: Report) -> None:
    text = render(report)
    assert re.fullmatch(r"[\n -~]*", text)
    messages = [one["message"]["text"] for one in json.loads(text)["runs"][0]["results"]]
    assert not any("](" in one or re.search(r"(?<!\{)\{\d", one) for one in messages)
    assert not any(
        re.search("[\x00-\x1f\x7f-\x9f\u034f\U000e0100\u202a-\u202e\u2066-\u2069\ud800-\udfff]", one) for one in _texts(json.loads(text))
    )
    assert any(r"two\nlines\tand\r\u001b[31mred\u0000\u0085" in one for one in messages)
    assert any("%3Cscript%3E" in one for one in text.splitlines()) and len(HOSTILE_GROUPS[-1]) > 900


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from (text for key, one in value.items() for text in (key, *_texts(one)) if key not in ("text", "markdown"))
    elif isinstance(value, list):
        yield from (text for one in value for text in _texts(one))
    elif isinstance(value, str):
        yield value


def test_nothing_passes_in_an_audit_that_is_void_or_was_cut_short(tmp_path: Path) -> None:
    void = run_of(passing(tmp_path / "void", evidence=("FAIL", 4)))
    short, empty = run_of(cut_short(tmp_path / "cut")), run_of(without_controls(tmp_path / "none"))
    for run in (void, short, empty):
        assert not [one for one in run["results"] if one["kind"] == "pass"]
        assert run["invocations"][0]["executionSuccessful"] is False
        assert run["invocations"][0]["exitCode"] != 0
        assert any(one["level"] == "error" for one in run["invocations"][0]["toolExecutionNotifications"])
    assert {one["properties"]["status"] for one in void["results"]} == {"unfit"}
    assert {one["properties"]["status"] for one in short["results"]} == {"did_not_run"}
    assert (empty["results"], empty["properties"]["coverage"]["coverage_ratio"]) == ([], None)


def test_failures_of_a_void_audit_say_that_its_evidence_is_not_fit(tmp_path: Path) -> None:
    run = run_of(complete(tmp_path, evidence=("FAIL", 4)))
    assert all("The evidence of this audit is not fit to judge" in one["message"]["text"] for one in results(run, status="fail"))
    assert run["invocations"][0]["exitCodeDescription"].startswith("VOID: The evidence is not fit to judge")


def test_an_audit_that_passed_is_a_run_that_succeeded(tmp_path: Path) -> None:
    run = run_of(passing(tmp_path))
    assert (run["invocations"][0]["executionSuccessful"], run["invocations"][0]["exitCode"], run["properties"]["verdict"]) == (
        True,
        0,
        "PASSED",
    )
    assert run["invocations"][0]["toolExecutionNotifications"] == []


def test_the_same_audit_gives_the_same_bytes(report: Report, tmp_path: Path) -> None:
    assert render(report) == render(complete(tmp_path))
    assert as_sarif(report)["version"] == "2.1.0"
