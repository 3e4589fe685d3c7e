"""The policy in the report: severities by tier, loosened requirements, waivers, frameworks, and the history that was used."""

import json
from dataclasses import astuple, replace
from datetime import date
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from report_audit import FakeAudit, control, finding
from test_report_html import Page

from kafka_audit.errors import IntegrityError
from kafka_audit.findings import Severity
from kafka_audit.policy.attestations import Attestation
from kafka_audit.policy.frameworks import Framework
from kafka_audit.policy.waivers import Waiver
from kafka_audit.report import Report, read_report
from kafka_audit.report.html import render
from kafka_audit.report.json_report import render as render_json
from kafka_audit.report.junit import render as render_junit
from kafka_audit.report.pdf import content
from kafka_audit.report.words import summary
from kafka_audit.store.durable_files import write_json

TOPIC = control("replication_factor_sufficient", "TOP-01")
RACKS = control("replicas_span_racks", "TOP-10", severity=Severity.HIGH)
BEST_EFFORT = {"tier": "best_effort", "severity": "medium", "loosened": "replication_factor 2 (strict: 3)"}

ATTESTATION = {
    "id": "A-1",
    "control": "OPS-01",
    "attested_by": "Ada <script>",
    "attested_on": "2026-10-20",
    "expires": "2027-04-20T00:00:00Z",
    "statement": "orders was restored in 40 minutes",
    "file": "proofs/restore.txt",
    "sha256": "ab" * 32,
}


def waiver(waiver_id: str, **changes: object) -> Waiver:
    fields = {
        "id": waiver_id,
        "control": "TOP-10",
        "resource": "legacy",
        "owner": "Ada",
        "approver": "Bob",
        "ticket": "OPS-1",
        "justification": "the second rack comes in January",
        "approved_on": date(2026, 11, 1),
        "expires": "2027-01-31T00:00:00Z",
    }
    return Waiver.model_validate({**fields, **changes})


def framework(strict: bool = True, codes: tuple[str, ...] = ("TOP-01", "TOP-10")) -> Framework:
    requirement = {
        "id": "A.1",
        "title": "Redundancy",
        "supported_by": list(codes),
        "rationale": "Copies of a record stand apart.",
        "strict": strict,
    }
    about = {"version": 1, "id": "fw", "title": "A framework", "edition": "1", "source": "somewhere"}
    return Framework.model_validate({**about, "requirements": [requirement]})


def audit(root: Path, rows: list[dict[str, object]], *waivers: Waiver, frameworks: tuple[Framework, ...] = ()) -> FakeAudit:
    fake = FakeAudit(root, (TOPIC, RACKS))
    fake.policy = replace(fake.policy, waivers=list(waivers), frameworks=frameworks)
    fake.settings(rows)
    fake.lag([])
    fake.gates(findings=("PASS", 0))
    return fake


def read(fake: FakeAudit, **options: int) -> Report:
    return read_report(*fake.inputs.args, **fake.inputs.kwargs, **options)


def as_json(report: Report) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(render_json(report))
    return value


def text_of(report: Report) -> str:
    return Page(render(report)).text


def test_a_failure_counts_by_its_tiers_severity_and_shows_the_catalogues(tmp_path: Path) -> None:
    rows = [finding(TOPIC, "cache", **BEST_EFFORT), finding(TOPIC, "orders", "pass")]
    report = read(audit(tmp_path, rows))
    assert [(one.name, one.failed, one.controls) for one in report.by_severity()][:3] == [
        ("critical", 0, 1),
        ("high", 0, 1),
        ("medium", 1, 1),
    ]
    assert report.failing[0].worst == "medium"
    failing = "1 of 2 controls fails (1 medium), and only 1 judged at least one result"
    assert summary(report) == f"The policy is met, although {failing}; 100.0% of what applies was assessed."
    text = text_of(report)
    assert "medium in place of the catalogue's critical" in text
    assert "loosened: replication_factor 2 (strict: 3)" in text
    assert "severity: medium (catalogue: critical)" in render_junit(report)
    listed = as_json(report)["findings"][0]
    assert (listed["severity"], listed["catalogue_severity"], listed["loosened"]) == ("medium", "critical", BEST_EFFORT["loosened"])


def test_the_worst_failures_are_listed_first_when_not_all_can_be(tmp_path: Path) -> None:
    rows = [finding(TOPIC, f"a{number:02}", **BEST_EFFORT) for number in range(30)] + [finding(TOPIC, "z")]
    result = next(one for one in read(audit(tmp_path, rows), limit=5).results if one.code == "TOP-01")
    assert [one.resource for one in result.failures] == ["z", "a00", "a01", "a02", "a03"]
    assert (result.worst, {name: results.failed for name, results in result.failing_severities.items()}) == (
        "critical",
        {"critical": 1, "medium": 30},
    )


def test_results_are_counted_by_tier_and_by_what_was_loosened(tmp_path: Path) -> None:
    rows = [
        finding(TOPIC, "a", **BEST_EFFORT),
        finding(TOPIC, "b", "pass", **BEST_EFFORT),
        finding(TOPIC, "c", "not_applicable", **BEST_EFFORT),
    ]
    report = read(audit(tmp_path, [*rows, finding(TOPIC, "d", "not_assessed")]))
    assert [(tier, results.passed, results.failed, results.not_assessed, results.loosened) for tier, results in report.tiers] == [
        ("no_loss", 0, 0, 1, 0),
        ("standard", 0, 0, 0, 0),
        ("best_effort", 1, 1, 0, 2),
    ]
    assert [astuple(one) for one in report.loosened] == [("TOP-01", "best_effort", "replication_factor 2 (strict: 3)", 1, 1)]
    assert (report.counts.loosened, report.counts.waived) == (2, 0)


def test_a_waived_failure_stays_a_failure_and_says_who_answers_for_it(tmp_path: Path) -> None:
    report = read(audit(tmp_path, [finding(RACKS, "legacy", waiver="W-1"), finding(RACKS, "orders")], waiver("W-1")))
    assert (report.counts.failed, report.counts.waived) == (2, 1)
    assert "1 of 2 failing results waived" in summary(report)
    text = text_of(report)
    assert "waived by W-1 until 2027-01-31 00:00:00 UTC owner Ada, approved by Bob, ticket OPS-1" in text
    case = ET.fromstring(render_junit(report)).find(".//testcase[@name='legacy']/failure")
    assert case is not None
    assert case.get("type") == "waived high"
    assert str(case.get("message")).startswith("TOP-10 high, waived by W-1 until 2027-01-31T00:00:00+00:00: observed")
    assert "the second rack comes in January" in str(case.text)
    value = as_json(report)
    assert [(one["status"], one["waiver"] and one["waiver"]["id"]) for one in value["findings"]] == [("fail", "W-1"), ("fail", None)]
    assert value["totals"]["failed_by_severity"]["high"] == {"controls": 1, "results": 2, "waived": 1, "assessed": 2}


def test_used_unused_expired_and_unapproved_waivers_are_all_listed(tmp_path: Path) -> None:
    listed = (
        waiver("W-1"),
        waiver("W-2", resource="gone"),
        waiver("W-3", expires="2026-11-20T23:16:00Z"),
        waiver("W-4", approved_on=date(2026, 12, 1)),
    )
    report = read(audit(tmp_path, [finding(RACKS, "legacy", waiver="W-1")], *listed))
    assert [(one.id, one.status, one.covered) for one in report.waivers.listed] == [
        ("W-1", "used", 1),
        ("W-2", "unused", 0),
        ("W-3", "expired", 0),
        ("W-4", "not yet approved", 0),
    ]


@pytest.mark.parametrize("held", [(), (waiver("W-1", expires="2026-11-20T00:00:00Z"),)], ids=["unknown", "expired"])
def test_a_waiver_that_was_not_in_force_waives_nothing_and_is_named(tmp_path: Path, held: tuple[Waiver, ...]) -> None:
    report = read(audit(tmp_path, [finding(RACKS, "legacy", waiver="W-1")], *held))
    assert (report.counts.waived, report.waivers.unfounded) == (0, (("W-1", 1),))
    text = text_of(report)
    assert "waiver W-1 was not in force" in text
    assert "1 finding names waiver W-1, which covers nothing" in text
    assert as_json(report)["findings"][0]["waiver"] is None


PASSING = [finding(TOPIC, "a", "pass"), finding(RACKS, "a", "pass")]
LOOSENED = [finding(TOPIC, "a", "pass", **BEST_EFFORT), finding(RACKS, "a", "pass")]
WAIVED = [finding(TOPIC, "a", "pass"), finding(RACKS, "a", "pass"), finding(RACKS, "legacy", waiver="W-1")]


@pytest.mark.parametrize(
    ("rows", "strict", "support", "why"),
    [
        (PASSING, True, "supports", ""),
        ([finding(TOPIC, "a", "pass")], True, "supports", "nothing to judge"),
        ([*PASSING, finding(RACKS, "b")], True, "does not support", "1 failing"),
        ([*PASSING, finding(RACKS, "b", "not_assessed")], True, "not known", "1 not assessed"),
        ([*PASSING, finding(RACKS, "b", "error")], True, "not known", "1 not assessed"),
        ([finding(TOPIC, "a", "not_applicable")], True, "not known", "nothing to judge"),
        (
            [*PASSING, finding(RACKS, "b", "not_applicable", reason="baseline taken")],
            True,
            "not known",
            "1 without a past to compare with, not declared, or hidden by the managed service",
        ),
        (LOOSENED, True, "not known", "1 judged by a loosened requirement"),
        (LOOSENED, False, "supports", ""),
        (WAIVED, True, "does not support", "1 failing, 1 of them waived"),
        (WAIVED, False, "supports", "1 failing, and waived"),
        ([finding(TOPIC, "a", "pass"), finding(RACKS, "legacy", waiver="W-1")], False, "not known", "all failing, and waived"),
    ],
)
def test_a_requirement_is_supported_only_where_nothing_speaks_against_it(
    tmp_path: Path, rows: list[dict[str, object]], strict: bool, support: str, why: str
) -> None:
    (found,) = read(audit(tmp_path, rows, waiver("W-1"), frameworks=(framework(strict),))).frameworks
    (requirement,) = found.requirements
    assert requirement.support.value == support
    assert why in [control.why for control in requirement.controls]


def test_a_control_that_did_not_run_leaves_its_requirements_open(tmp_path: Path) -> None:
    (found,) = read(audit(tmp_path, PASSING, frameworks=(framework(codes=("TOP-01", "CON-01")),))).frameworks
    assert [(one.code, one.support.value) for one in found.requirements[0].controls] == [("TOP-01", "supports"), ("CON-01", "not known")]
    assert found.counts == {"does not support": 0, "not known": 1, "supports": 0, "not applicable": 0}


def test_void_evidence_supports_nothing(tmp_path: Path) -> None:
    fake = audit(tmp_path, PASSING, frameworks=(framework(),))
    fake.gates(("FAIL", 4))
    (found,) = read(fake).frameworks
    assert {one.support.value for one in found.requirements[0].controls} == {"not known"}
    assert "not known (the evidence is not fit to judge): TOP-01, TOP-10" in text_of(read(fake))
    printed: Any = content(read(fake))["frameworks"]
    (group,) = printed[0]["requirements"][0]["controls"]
    assert (group["said"], group["codes"]) == ("not known (the evidence is not fit to judge)", "TOP-01, TOP-10")


def test_frameworks_are_said_to_be_supported_and_never_complied_with(tmp_path: Path) -> None:
    text = text_of(read(audit(tmp_path, PASSING, frameworks=(framework(),))))
    assert "0 not supported 0 not known 1 supported" in text
    assert "support it: TOP-01, TOP-10" in text
    assert "compl" not in text.split("The requirements that these results support")[1].split("Evidence gate")[0].lower()


def test_each_requirement_is_shown_with_title_verdict_coverage_controls_and_what_they_cannot_show(tmp_path: Path) -> None:
    asked = framework()
    (requirement,) = asked.requirements
    asked = asked.model_copy(update={"requirements": [requirement.model_copy(update={"cannot_show": "Sites and power."})]})
    found = read(audit(tmp_path, [finding(TOPIC, "a"), *PASSING, finding(RACKS, "b", "not_assessed")], frameworks=(asked,)))
    text, page = text_of(found), render(found)
    shown = (
        "A.1",
        "Redundancy",
        "not supported",
        "75.0% assessed (3 of 4)",
        "do not support it: TOP-01 (1 failing)",
        "not known: TOP-10 (1 not assessed)",
    )
    assert [one for one in (*shown, "Copies of a record stand apart.", "Cannot show: Sites and power.") if one not in text] == []
    assert '<a class="code" href="#failure-1">TOP-01</a>' in page
    assert 'id="failure-1"' in page
    found_in_pdf: Any = content(found)["frameworks"]
    (printed,) = found_in_pdf
    assert [one["word"] for one in printed["counts"] if one["count"] == "1"] == ["not supported"]
    (one,) = printed["requirements"]
    assert (one["id"], one["title"], one["support"]) == ("A.1", "Redundancy", "not supported")
    assert (one["coverage"], one["cannot_show"]) == ("75.0% assessed (3 of 4)", "Sites and power.")
    assert [(group["kind"], group["codes"]) for group in one["controls"]] == [
        ("fail", "TOP-01 (1 failing)"),
        ("gap", "TOP-10 (1 not assessed)"),
    ]


def test_the_history_that_was_used_and_what_was_left_out_are_printed(tmp_path: Path) -> None:
    fake = FakeAudit(tmp_path, (TOPIC,))
    fake.history = [{"snapshot_id": f"2026111{day}T231500Z-ab12cd34ab12cd34", "manifest_sha256": f"{day}" * 64} for day in (8, 9)]
    fake.left_out = ["20261117T231500Z-ab12cd34ab12cd34: topics.parquet: its sha256 differs from the manifest's"]
    fake.settings(PASSING[:1])
    fake.lag([])
    text = text_of(read(fake))
    assert (
        "compared this snapshot with 2 earlier ones, taken from 20261118T231500Z-ab12cd34ab12cd34 to 20261119T231500Z-ab12cd34ab12cd34"
        in text
    )
    assert "1 earlier snapshot could not be used as evidence" in text
    assert [one["parts"] for one in as_json(read(fake))["history"]] == [["settings", "lag"]]


def test_the_first_audit_of_a_cluster_says_that_it_took_the_baseline(tmp_path: Path) -> None:
    fake = audit(tmp_path, PASSING)
    assert "their history is too short" in text_of(read(fake))
    for part in ("settings", "lag"):
        write_json(fake.audit.path / part / "history.json", {"used": [], "left_out": [], "first_audit": True})
    assert "This is the cluster's first audit" in text_of(read(fake)).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    assert [one["first_audit"] for one in as_json(read(fake))["history"]] == [True]


def test_the_report_lists_who_attests_what_until_when_and_whether_it_counts(tmp_path: Path) -> None:
    fake = audit(tmp_path, PASSING)
    assert "Nobody has attested anything" in text_of(read(fake))
    others = {
        "A-0": {"attested_on": "2026-10-01"},
        "A-2": {"attested_on": "2026-12-01"},
        "A-3": {"control": "OPS-02", "expires": "2026-11-01T00:00:00Z"},
    }
    listed = [ATTESTATION, *({**ATTESTATION, "id": name, **other} for name, other in others.items())]
    fake.policy = replace(fake.policy, attestations=[Attestation.model_validate(one) for one in listed])
    report = as_json(read(fake))
    assert report["attestations"][0] == {**ATTESTATION, "expires": "2027-04-20T00:00:00+00:00", "outcome": "passed", "status": "counts"}
    assert {one["id"]: one["status"] for one in report["attestations"]} == {
        "A-1": "counts",
        "A-0": "superseded",
        "A-2": "not yet given",
        "A-3": "expired",
    }
    page = render(read(fake))
    assert "<script>" not in page
    text = Page(page).text
    for said in ("Ada <script>", "orders was restored in 40 minutes", "2027-04-20", "proofs/restore.txt", "ab" * 32):
        assert said in text


def test_the_report_says_why_results_do_not_apply(tmp_path: Path) -> None:
    fake = audit(tmp_path, [finding(TOPIC, "t0", "not_applicable", reason="baseline taken")])
    assert as_json(read(fake))["set_aside"] == {
        "kinds": 1,
        "listed": [{"status": "not_applicable", "reason": "baseline taken", "count": 1, "codes": ["TOP-01"], "resources": ["t0"]}],
    }
    assert "Why results do not apply" in text_of(read(fake))


def test_parts_that_used_different_histories_are_told_apart_and_a_missing_record_is_said(tmp_path: Path) -> None:
    fake = audit(tmp_path, PASSING)
    (fake.audit.lag / "history.json").unlink()
    report = read(fake)
    assert [(one.parts, one.recorded) for one in report.history] == [(("settings",), True), (("lag",), False)]
    assert "verify (lag) left no record of the earlier snapshots" in text_of(report)


@pytest.mark.parametrize("record", [{}, {"used": [{}], "left_out": []}, {"used": 3, "left_out": []}])
def test_a_broken_record_of_the_history_stops_the_report(tmp_path: Path, record: dict[str, object]) -> None:
    fake = audit(tmp_path, PASSING)
    write_json(fake.audit.settings / "history.json", record)
    with pytest.raises(IntegrityError, match=r"history\.json"):
        read(fake)


def test_the_json_with_all_of_it_is_valid_against_its_schema(tmp_path: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    from kafka_audit import report as package

    schema = json.loads((Path(package.__path__[0]) / "report.schema.json").read_text())
    fake = audit(
        tmp_path, [*WAIVED, finding(RACKS, "x", waiver="W-9"), *LOOSENED[:1]], waiver("W-1"), frameworks=(framework(), framework(False))
    )
    fake.policy = replace(fake.policy, attestations=[Attestation.model_validate(ATTESTATION)])
    assert [error.message for error in jsonschema.Draft202012Validator(schema).iter_errors(as_json(read(fake)))] == []
