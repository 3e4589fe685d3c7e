"""OCSF: statuses, waivers, coverage and uids of the events; tests/formats checks that they are valid."""

import json
import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from report_documents import complete, cut_short, passing, without_controls

from kafka_audit.report import Report
from kafka_audit.report.ocsf import render
from kafka_audit.report.sarif import as_sarif


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return complete(tmp_path_factory.mktemp("audit"))


def events(report: Report, code: str) -> list[Any]:
    return [one for one in json.loads(render(report)) if one["metadata"]["event_code"] == code]


def result_of(report: Report, resource: str) -> Any:
    return next(one for one in (*events(report, "result"), *events(report, "resolved")) if one["resources"][0]["name"] == resource)


def status(event: Any) -> tuple[int, str]:
    return event["compliance"]["status_id"], event["compliance"]["status"]


def state(event: Any) -> tuple[int, str, int]:
    return event["status_id"], event["status"], event["activity_id"]


def test_every_result_has_the_status_that_ocsf_has_for_it(report: Report) -> None:
    assert status(result_of(report, "t000")) == (3, "Fail")
    assert status(result_of(report, "denied")) == (2, "Warning")
    assert status(result_of(report, "odd")) == (99, "Error")
    assert result_of(report, "odd")["compliance"]["status_details"][0].startswith("The rule raised an error: two")
    assert result_of(report, "t000")["compliance"]["status_details"] == ["Observed: 1. Expected: at least 3."]


def test_a_waived_failure_is_suppressed_and_still_fails(report: Report) -> None:
    waived = result_of(report, "legacy")
    assert (status(waived), state(waived)[:2]) == ((3, "Fail"), (3, "Suppressed"))
    assert "Waived: W-1 until 2027-01-31" in waived["status_detail"]
    assert waived["unmapped"]["waiver"]["approver"] == "platform team"


def test_the_state_says_what_changed_since_the_previous_audit(report: Report) -> None:
    assert state(result_of(report, "t000")) == (1, "New", 1)
    assert state(result_of(report, "t001")) == (99, "Unchanged", 2)
    assert state(result_of(report, "t002")) == (99, "Worse", 2)
    assert state(result_of(report, "t003")) == (99, "Incomparable", 1)
    assert state(result_of(report, "mended")) == (4, "Resolved", 3)
    assert {one["type_uid"] for one in json.loads(render(report))} == {200301, 200302, 200303}


def test_every_control_has_an_event_with_its_coverage(report: Report) -> None:
    coverage = {one["compliance"]["checks"][0]["uid"]: one for one in events(report, "coverage")}
    assert set(coverage) == {result.control_id for result in report.results}
    assert status(coverage["unclean_leader_election_disabled"]) == (1, "Pass")
    assert status(coverage["replication_factor_sufficient"]) == (3, "Fail")
    assert status(coverage["replicas_spread_over_racks"]) == (99, "Error")
    assert status(coverage["clocks_agree"]) == (99, "Not Applicable")
    assert status(coverage["restore_was_tried"]) == (2, "Warning")
    assert status(coverage["log_dirs_healthy"]) == (2, "Warning")
    assert coverage["log_dirs_healthy"]["unmapped"]["ran"] is False
    for result in report.results:
        counts = coverage[result.control_id]["unmapped"]["counts"]
        assert (counts["assessed"], counts["applicable"]) == (result.counted.assessed, result.counted.applicable)


def test_the_first_event_is_the_verdict_with_coverage_and_hashes(report: Report) -> None:
    first = json.loads(render(report))[0]
    assert (first["metadata"]["event_code"], first["status_code"], status(first)) == ("verdict", "FAILED", (3, "Fail"))
    assert first["unmapped"]["counts"]["applicable"] == report.counts.applicable
    assert first["unmapped"]["sha256_of_catalogue"] == "ca" * 32
    assert first["unmapped"]["compared_with_audit"] == "20261119T231600Z-0badcafe0badcafe"


def test_times_are_milliseconds_and_the_event_was_when_the_snapshot_ended(report: Report) -> None:
    event = result_of(report, "t000")
    assert event["time"] == event["end_time"] == 1000 * int(datetime(2026, 11, 20, 23, 15, 4, tzinfo=timezone.utc).timestamp())
    assert event["metadata"]["logged_time"] == 1000 * int(datetime(2026, 11, 20, 23, 20, tzinfo=timezone.utc).timestamp())


def test_a_finding_has_the_uid_that_sarif_has_for_it_and_its_resource_the_same_name(report: Report) -> None:
    in_sarif = {
        one["partialFingerprints"]["kafkaAuditResource/v1"]: one["locations"][0]["logicalLocations"][0]["fullyQualifiedName"]
        for one in as_sarif(report)["runs"][0]["results"]
    }
    for event in events(report, "result"):
        assert in_sarif[event["finding_info"]["uid"]] == event["resources"][0]["uid"]
    uids = [one["metadata"]["uid"] for one in json.loads(render(report))]
    assert len(set(uids)) == len(uids)


def test_severity_evidence_and_requirements_are_those_of_the_finding(report: Report) -> None:
    event = next(one for one in events(report, "result") if one["unmapped"].get("loosened"))
    assert (event["severity_id"], event["severity"], event["unmapped"]["catalogue_severity"]) == (2, "Low", "critical")
    assert "tier best_effort loosened" in event["status_detail"]
    assert event["unmapped"]["evidence_class"] == "observed"
    assert any(one.startswith("NIST SP 800-53") for one in event["compliance"]["requirements"])
    assert json.loads(event["evidences"][0]["data"]) == {"replicas": [1], "partition": 0}


def test_a_file_is_an_array_with_one_event_on_each_line_in_printable_ascii(report: Report) -> None:
    text = render(report)
    lines = text.splitlines()
    assert (lines[0], lines[-1]) == ("[", "]")
    assert [json.loads(line.removesuffix(",")) for line in lines[1:-1]] == json.loads(text)
    assert re.fullmatch(r"[\n -~]*", text)
    assert not re.search(r"\\u(00[01]|007f|008|009|202|206[6-9]|d[89a-f])", text.replace("\\\\u", ""))


def test_nothing_passes_in_an_audit_that_is_void_or_was_cut_short(tmp_path: Path) -> None:
    void, short = passing(tmp_path / "void", evidence=("FAIL", 4)), cut_short(tmp_path / "cut")
    empty, failed = without_controls(tmp_path / "none"), passing(tmp_path / "error", findings=("ERROR", 1))
    for report in (void, short, empty):
        assert 1 not in {status(one)[0] for one in json.loads(render(report))}
    assert status(json.loads(render(void))[0]) == (0, "Unknown")
    assert all("not fit to judge" in one["compliance"]["status_details"][-1] for one in events(void, "coverage"))
    assert {status(one) for one in events(short, "coverage")} == {(2, "Warning")}
    assert status(json.loads(render(failed))[0]) != (1, "Pass")


def test_an_audit_that_passed_passes(tmp_path: Path) -> None:
    report = passing(tmp_path)
    assert {status(one) for one in json.loads(render(report))} == {(1, "Pass")}
    assert {one["severity_id"] for one in json.loads(render(report))} == {1}


def test_the_same_audit_gives_the_same_bytes(report: Report, tmp_path: Path) -> None:
    assert render(report) == render(complete(tmp_path))
