"""The waivers that an accepted risk proposes: valid for a policy, exact or no wider than what failed, and inert whatever a resource is called."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_audit import HOSTILE_GROUPS, control, finding
from reviewed_audits import ELECTION, REPLICAS, FailedAudit, answer

from kafka_audit.audit.review_settings import ReviewSettings
from kafka_audit.findings import Severity
from kafka_audit.input_files.strict_yaml import parse_yaml
from kafka_audit.policy.waivers import Waiver, WaiverFile
from kafka_audit.report.proposed_waivers import Proposed, literal, propose
from kafka_audit.report.review_request import ask

REVIEW_ID = "20261121T083000Z-0123456789abcdef"
GROUPS = control("no_lag", "CON-01", subject="group", severity=Severity.MEDIUM)


def proposed(path: Path, rows: list[dict[str, object]], **changes: Any) -> tuple[Proposed, list[Waiver]]:
    failed = FailedAudit(path, rows)
    made = propose(failed.audit, answer(**changes), REVIEW_ID, failed.seal)
    return made, WaiverFile.model_validate(parse_yaml(made.text.encode())).waivers


def test_each_failure_without_a_waiver_gets_one_and_nothing_else_does(tmp_path: Path) -> None:
    rows = [
        finding(REPLICAS, "orders"),
        finding(REPLICAS, "billing", "pass"),
        finding(REPLICAS, "stock", "not_assessed"),
        finding(REPLICAS, "old", waiver="W-1"),
        finding(ELECTION, "orders", severity="high"),
    ]
    made, waivers = proposed(tmp_path, rows)
    assert [(one.control, one.resource) for one in waivers] == [("TOP-01", "orders"), ("TOP-04", "orders")]
    assert (made.count, made.left_out) == (2, ())
    one = waivers[0]
    assert (one.owner, one.approver, one.ticket, one.justification) == (
        "Olga Owner",
        "Rita Reviewer (7)",
        "OPS-7",
        "Replicas come with the new rack.",
    )
    assert (str(one.approved_on), one.expires.isoformat()) == ("2026-11-21", "2026-12-31T00:00:00+00:00")
    assert "2 waivers for 2 failures that had none" in made.text


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40) | st.text("[]*?!ab\\", min_size=1, max_size=9))
def test_a_resource_names_itself_alone_whatever_characters_it_has(resource: str) -> None:
    pattern = literal(resource)
    waiver = Waiver.model_construct(control="TOP-01", resource=pattern)
    assert waiver.covers("TOP-01", resource)
    for other in (
        resource + "x",
        "x" + resource,
        resource[1:],
        resource.replace("*", "x"),
        resource.replace("?", "x"),
        resource.swapcase(),
    ):
        assert waiver.covers("TOP-01", other) == (other == resource)


def test_hostile_names_stay_text_in_the_file(tmp_path: Path) -> None:
    names = [*HOSTILE_GROUPS, "*", "no", "1e5", "2027-01-31", "[*]", "null", "# comment", "- id: x", "\U0001f600", "a\nwaivers: []"]
    made, waivers = proposed(tmp_path, [finding(GROUPS, name, severity="medium") for name in names])
    assert made.text.isascii()
    assert {name for name in names for one in waivers if one.covers("CON-01", name)} == set(names)
    assert len(waivers) == len(names)
    other = "another group"
    assert not any(one.covers("CON-01", other) for one in waivers)


def test_what_the_reviewer_wrote_stays_text_in_the_file(tmp_path: Path) -> None:
    texts = {"reason": "x\n- id: evil\n  control: '*' \u202e", "ticket": "#1: {a}", "owner": "&anchor *alias !tag"}
    _, waivers = proposed(tmp_path, [finding(REPLICAS, "orders")], **texts)
    assert (waivers[0].justification, waivers[0].ticket, waivers[0].owner) == tuple(texts.values())


def test_more_than_two_hundred_failures_of_a_control_get_one_glob_if_it_names_no_other_resource(tmp_path: Path) -> None:
    rows = [finding(REPLICAS, f"log*[1].{number:04}") for number in range(300)]
    rows += [finding(REPLICAS, "log.other", "pass"), finding(ELECTION, "orders", severity="high")]
    made, waivers = proposed(tmp_path, rows)
    assert [(one.control, one.covers(one.control, "log*[1].0299")) for one in waivers] == [("TOP-01", True), ("TOP-04", False)]
    assert not waivers[0].covers("TOP-01", "log.other")
    assert (made.count, made.left_out) == (2, ())


@pytest.mark.parametrize(
    "other",
    [
        {"resource": "log.healthy", "status": "pass"},
        {"resource": "log.x", "status": "not_assessed"},
        {"resource": "log.w", "waiver": "W-1"},
    ],
)
def test_a_glob_that_would_name_another_resource_is_left_out_and_said(tmp_path: Path, other: dict[str, Any]) -> None:
    rows = [finding(REPLICAS, f"log.{number}0") for number in range(300)]
    made, waivers = proposed(tmp_path, [*rows, finding(REPLICAS, **other), finding(ELECTION, "orders", severity="high")])
    assert [one.control for one in waivers] == ["TOP-04"]
    assert made.left_out == ("TOP-01: 300 failures are more than fit here, and no glob names these and no other resource",)
    assert "# Left out: TOP-01: 300 failures" in made.text


def test_names_with_nothing_in_common_get_no_glob_for_everything(tmp_path: Path) -> None:
    made, waivers = proposed(tmp_path, [finding(REPLICAS, f"{number}") for number in range(300)])
    assert waivers == []
    assert len(made.left_out) == 1


def test_two_hundred_failures_are_named_one_by_one(tmp_path: Path) -> None:
    made, waivers = proposed(tmp_path, [finding(REPLICAS, f"log.{number}") for number in range(200)])
    assert (len(waivers), made.left_out) == (200, ())


def test_a_name_that_no_waiver_can_hold_is_left_out_and_said(tmp_path: Path) -> None:
    made, waivers = proposed(tmp_path, [finding(GROUPS, "g" * 1001), finding(GROUPS, "short")])
    assert [one.resource for one in waivers] == ["short"]
    assert made.left_out == ("CON-01: 1 resources whose names are too long for a waiver",)


def test_with_all_admins_the_file_says_that_nobody_is_known_to_have_approved(tmp_path: Path) -> None:
    made, _ = proposed(tmp_path, [finding(REPLICAS, "orders")], responded_by_user={"id": "Anonymous", "name": "Anonymous"})
    assert "SIMPLE_AUTH_MANAGER_ALL_ADMINS" in made.text
    assert "SIMPLE_AUTH_MANAGER_ALL_ADMINS" not in proposed(tmp_path / "known", [finding(REPLICAS, "orders")])[0].text


def test_the_question_counts_by_severity_shows_the_worst_and_says_that_the_verdict_stays(tmp_path: Path) -> None:
    rows = [finding(REPLICAS, f"t{number:02}") for number in range(12)] + [finding(ELECTION, "a", severity="high")]
    failed = FailedAudit(tmp_path, [*rows, finding(REPLICAS, "waived", waiver="W-1"), finding(REPLICAS, "fine", "pass")])
    question = ask(failed.audit, "orders-prod", failed.seal, ReviewSettings(hours=8, max_days=30))
    assert "FAILED" in question.subject and "orders\\-prod" in question.subject
    for said in ("**12 critical, 1 high**", failed.seal.manifest_sha256, "| t00 |", "3 more in the report", "verdict stays FAILED"):
        assert said in question.body, said
    assert "within 8 hours" in question.body and "30 days" in question.body
    assert "waived" not in question.body.replace("without a waiver", "") and "fine" not in question.body


def test_names_from_the_cluster_are_no_markdown_in_the_question(tmp_path: Path) -> None:
    names = ["[click](https://198.51.100.9/)", "a|b\n| critical | x |", "<img src=x>", "{{ 7*7 }}", "pay\u202egnp\u034f", "`x`", "x" * 5000]
    failed = FailedAudit(tmp_path, [finding(REPLICAS, name) for name in names])
    body = ask(failed.audit, "orders-prod", failed.seal, ReviewSettings()).body
    for markup in ("[click](", " <img", "\u202e", "\u034f", "a|b", "\n| critical | x |", "{{ 7*7", " `x`"):
        assert markup not in body, markup
    assert "\\<img" in body
    assert len(body) < 4000
