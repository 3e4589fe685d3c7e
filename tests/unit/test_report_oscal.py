"""OSCAL: status and reason of findings, observations, waivers as risks, the missing plan; tests/formats checks that it is valid."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from report_documents import complete, cut_short, passing, without_controls

from kafka_audit.report import Report
from kafka_audit.report.oscal import render
from kafka_audit.report.sarif import as_sarif


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return complete(tmp_path_factory.mktemp("audit"))


def document(report: Report) -> Any:
    return json.loads(render(report))["assessment-results"]


def result(report: Report) -> Any:
    (one,) = document(report)["results"]
    return one


def props(of: Any) -> dict[str, str]:
    return {one["name"]: one["value"] for one in of["props"]}


def statuses(report: Report) -> dict[str, tuple[str, str, str]]:
    return {
        one["target"]["target-id"]: (one["target"]["status"]["state"], one["target"]["status"]["reason"], props(one)["status"])
        for one in result(report).get("findings", [])
    }


def test_only_a_control_that_passed_is_satisfied_and_the_reason_says_why_others_are_not(report: Report) -> None:
    assert statuses(report) == {
        "unclean_leader_election_disabled": ("satisfied", "pass", "pass"),
        "replication_factor_sufficient": ("not-satisfied", "fail", "fail"),
        "partition_has_live_leader": ("not-satisfied", "fail", "fail"),
        "replicas_spread_over_racks": ("not-satisfied", "other", "error"),
        "lag_within_sla": ("not-satisfied", "fail", "fail"),
        "nothing_lost_unread": ("not-satisfied", "fail", "fail"),
        "restore_was_tried": ("not-satisfied", "other", "not_assessed"),
        "log_dirs_healthy": ("not-satisfied", "other", "did_not_run"),
        "clocks_agree": ("not-satisfied", "other", "not_applicable"),
    }


def test_findings_say_how_much_of_a_control_was_assessed(report: Report) -> None:
    finding = next(one for one in result(report)["findings"] if one["target"]["target-id"] == "replication_factor_sufficient")
    counted = next(one for one in report.results if one.code == "TOP-01").counted
    assert f"{counted.assessed} of {counted.applicable} applicable results were assessed" in finding["remarks"]
    assert any(one["value"].startswith("nist_800_53_r5: ") for one in finding["props"] if one["name"] == "supports-requirement")
    observations = {one["uuid"]: one for one in result(report)["observations"]}
    related = [observations[one["observation-uuid"]] for one in finding["related-observations"]]
    assert len(related) == 1 + counted.failed + counted.errored + counted.not_assessed
    assert props(related[0])["applicable"] == str(counted.applicable)


def test_methods_and_props_say_how_strong_the_evidence_is(report: Report) -> None:
    found = {(props(one)["evidence-class"], one["methods"][0]) for one in result(report)["observations"]}
    assert found == {("observed", "EXAMINE"), ("inferred", "EXAMINE"), ("manual", "UNKNOWN")}


def test_a_waiver_is_an_approved_deviation_with_a_deadline_and_its_failure_stays_one(report: Report) -> None:
    (risk,) = result(report)["risks"]
    assert (risk["status"], risk["deadline"], props(risk)["approver"]) == (
        "deviation-approved",
        "2027-01-31T00:00:00.000Z",
        "platform team",
    )
    assert risk["statement"] == "The topic is &lt;b&gt;deleted&lt;/b&gt; [soon] (http://198.51.100.9/)."
    waived = [one for one in result(report)["observations"] if props(one).get("waiver")]
    assert [(props(one)["status"], one["uuid"]) for one in waived] == [("fail", risk["related-observations"][0]["observation-uuid"])]
    finding = next(one for one in result(report)["findings"] if one.get("related-risks"))
    assert finding["related-risks"] == [{"risk-uuid": risk["uuid"]}]


def test_there_is_no_plan_and_the_document_says_so(report: Report) -> None:
    made = document(report)
    resources = {one["uuid"]: one for one in made["back-matter"]["resources"]}
    assert resources[made["import-ap"]["href"].removeprefix("#")]["title"] == "No assessment plan"


def test_evidence_catalogue_and_policy_are_there_with_their_hashes(report: Report) -> None:
    resources = {one["title"]: one for one in document(report)["back-matter"]["resources"]}
    assert resources["Snapshot of the cluster"]["rlinks"][0]["hashes"] == [
        {"algorithm": "SHA-256", "value": report.collection.manifest_sha256}
    ]
    assert resources["Rule catalogue"]["props"][0]["value"] == "ca" * 32
    assert resources["Policy"]["props"][0]["value"] == report.policy.sha256
    files = {one["href"]: one["hashes"][0]["value"] for one in resources["Files of the audit"]["rlinks"]}
    assert len(files) == len(report.audit_files) > 5
    assert props(result(report))["snapshot-manifest-sha256"] == report.collection.manifest_sha256


def test_reviewed_controls_are_the_requirements_of_the_frameworks_and_the_rules_that_ran(report: Report) -> None:
    reviewed = result(report)["reviewed-controls"]
    ids = {one["control-id"] for selection in reviewed["control-selections"] for one in selection["include-controls"]}
    assert {"cp-10.2", "ca-7", "a.8.16", "art.9.3.b", "cc7.2"} <= ids
    ran = {one["objective-id"] for one in reviewed["control-objective-selections"][0]["include-objectives"]}
    assert ran == {one.control_id for one in report.results if one.counts is not None}


def _uuids(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from ([value["uuid"]] if "uuid" in value else [])
        yield from (found for one in value.values() for found in _uuids(one))
    elif isinstance(value, list):
        yield from (found for one in value for found in _uuids(one))


def test_every_reference_leads_to_something_and_no_identity_is_used_twice(report: Report) -> None:
    text = render(report)
    defined = list(_uuids(json.loads(text)))
    assert len(set(defined)) == len(defined)
    named = re.findall(r'"(?:[a-z-]+-uuid)": "([0-9a-f-]{36})"', text) + re.findall(r'"#([0-9a-f-]{36})"', text)
    assert named and set(named) <= set(defined)


def test_fingerprints_and_names_are_those_of_sarif(report: Report) -> None:
    in_sarif = {one["partialFingerprints"]["kafkaAuditResource/v1"] for one in as_sarif(report)["runs"][0]["results"]}
    observed = [props(one) for one in result(report)["observations"]]
    assert {one["fingerprint"] for one in observed if "fingerprint" in one} <= in_sarif
    items = {props(one)["kafka-name"] for one in result(report)["local-definitions"]["inventory-items"]}
    assert "kafka://mk5vR0-9Q1OaEwX7dA/topic/orders/partition/3" in items


def test_hostile_names_are_neither_html_nor_links_nor_control_characters(report: Report) -> None:
    text = render(report)
    assert re.fullmatch(r"[\n -~]*", text)
    for one in result(report)["observations"]:
        for prose in (one["title"], one["description"], *(each["description"] for each in one.get("relevant-evidence", []))):
            assert "<" not in prose and "](" not in prose
            assert not re.search("[\x00-\x1f\x7f-\x9f\u034f\U000e0100\u202a-\u202e\u2066-\u2069\ud800-\udfff]", prose)


def test_what_is_not_listed_is_said_in_the_finding(tmp_path: Path) -> None:
    limited = result(complete(tmp_path, limit=2))
    finding = next(one for one in limited["findings"] if one["target"]["target-id"] == "replication_factor_sufficient")
    assert re.search(
        r"TOP-01: \d+ more results with status fail are not listed here; all are in settings/findings.parquet", finding["remarks"]
    )
    assert int(props(limited)["results-not-listed"]) > 10


def test_nothing_is_satisfied_in_an_audit_that_is_void_or_was_cut_short(tmp_path: Path) -> None:
    void, short = passing(tmp_path / "void", evidence=("FAIL", 4)), cut_short(tmp_path / "cut")
    assert set(statuses(void).values()) == {("not-satisfied", "other", "unfit")}
    assert set(statuses(short).values()) == {("not-satisfied", "other", "did_not_run")}
    assert result(short)["reviewed-controls"]["remarks"] == "No rule ran: nothing was reviewed."
    assert "findings" not in result(without_controls(tmp_path / "none"))
    assert props(result(void))["verdict"] == "VOID"


def test_failures_of_a_void_audit_say_that_its_evidence_is_not_fit(tmp_path: Path) -> None:
    found = result(complete(tmp_path, evidence=("FAIL", 4)))["findings"]
    assert all("The evidence of this audit is not fit to judge" in one["remarks"] for one in found)
    assert "satisfied" not in {one["target"]["status"]["state"] for one in found}


def test_the_same_audit_gives_the_same_bytes(report: Report, tmp_path: Path) -> None:
    assert render(report) == render(complete(tmp_path))
