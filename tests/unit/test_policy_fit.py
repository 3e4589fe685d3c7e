"""Waivers, frameworks and overrides: their files, the controls that they may name, and the times at which they are valid."""

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
import yaml
from test_policy import SLAS, TIERS, folder
from typer.testing import CliRunner

from kafka_audit.audit.policy_fit import check_dates, check_policy
from kafka_audit.catalogue.load import Catalogue, load_catalogue
from kafka_audit.cli.main import app, main
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.policy import Policy, load_policy
from kafka_audit.policy.waivers import Waiver, WaiverState, began

WAIVER = {
    "id": "W-1",
    "control": "TOP-06",
    "resource": "legacy-*",
    "owner": "Ada",
    "approver": "Bob",
    "ticket": "OPS-1",
    "justification": "until the disks are replaced",
    "approved_on": "2026-11-01",
    "expires": "2027-01-31T00:00:00Z",
}
REQUIREMENT = {"id": "A.1", "title": "Redundancy", "supported_by": ["TOP-01"], "rationale": "Copies stand on several brokers."}
FRAMEWORK = {"version": 1, "id": "fw", "title": "F", "edition": "1", "source": "s", "requirements": [REQUIREMENT]}
CLIENT = {
    "name": "billing",
    "kind": "producer",
    "implementation": "java",
    "owner": "Ada",
    "declared_on": "2026-11-01",
    "source": "repository",
    "topics": ["a"],
}
AT = datetime(2026, 11, 20, 12, tzinfo=timezone.utc)


def changed(base: dict[str, object], **changes: object) -> dict[str, object]:
    """The fields with changes; None takes one out."""
    return {name: value for name, value in {**base, **changes}.items() if value is not None}


def waivers(tmp_path: Path, *listed: dict[str, object]) -> Path:
    place = folder(tmp_path)
    (place / "waivers.yaml").write_text(yaml.safe_dump({"version": 1, "waivers": list(listed)}))
    return place


def frameworks(tmp_path: Path, **changes: object) -> Path:
    place = folder(tmp_path)
    (place / "frameworks").mkdir()
    (place / "frameworks" / "fw.yaml").write_text(yaml.safe_dump(changed(FRAMEWORK, **changes)))
    return place


def refusal(place: Path, catalogue: Catalogue | None = None) -> str:
    with pytest.raises(ConfigurationError) as caught:
        policy = load_policy(place)
        if catalogue:
            check_policy(policy, catalogue)
    assert caught.value.exit_code == 2
    return str(caught.value)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"expires": None}, "waivers.0.expires: is missing: add it"),
        ({"expires": "2027-01-31"}, "waivers.0.expires: Input should have timezone info"),
        ({"expires": "2027-01-31T00:00:00"}, "waivers.0.expires: Input should have timezone info"),
        ({"expires": "soon"}, "waivers.0.expires: is not a date: write it like 2026-12-31T00:00:00Z"),
        ({"expires": "2026-11-01T10:00:00Z"}, "expires is not after approved_on: write a date after the approval"),
        ({"approver": " ada "}, "approver is the owner: another person must approve it"),
        ({"approver": None}, "waivers.0.approver: is missing: add it"),
        ({"ticket": ""}, "waivers.0.ticket: String should have at least 1 character"),
        ({"justification": "because"}, "waivers.0.justification: String should have at least 10 characters"),
        ({"control": "retention"}, "waivers.0.control: String should match pattern"),
        ({"reason": "x"}, "waivers.0.reason: is not a known field"),
    ],
)
def test_a_bad_waiver_is_refused_with_file_field_and_fix(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    message = refusal(waivers(tmp_path, changed(WAIVER, **changes)))
    assert "waivers.yaml: " in message
    assert said in message


RESOURCES = {
    "billing [payments]": ({"billing [payments]"}, {"billing p", "billing payments"}),
    "billing [*": ({"billing [payments]", "billing ["}, {"billing p"}),
    "[a-c]": ({"[a-c]"}, {"a", "b"}),
    "all [*]": ({"all *"}, {"all [*]", "all x"}),
    "[[]x]": ({"[x]"}, {"[[]x]"}),
    "legacy-?": ({"legacy-1"}, {"legacy-12"}),
}


@pytest.mark.parametrize("resource", RESOURCES)
def test_a_resource_that_is_copied_from_a_report_into_a_waiver_names_itself(resource: str) -> None:
    covered, others = RESOURCES[resource]
    waiver = Waiver.model_validate(WAIVER | {"resource": resource}, strict=False)
    assert {one for one in covered | others if waiver.covers("TOP-06", one)} == covered


def test_two_waivers_of_one_id_are_refused(tmp_path: Path) -> None:
    assert "waivers: ['W-1'] appear twice: give each its own id" in refusal(waivers(tmp_path, WAIVER, WAIVER))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"requirements": []}, "requirements: List should have at least 1 item"),
        ({"requirements": [REQUIREMENT, REQUIREMENT]}, "requirements: ['A.1'] appear twice"),
        ({"requirements": [changed(REQUIREMENT, supported_by=[])]}, "requirements.0.supported_by: List should have at least 1 item"),
        ({"requirements": [changed(REQUIREMENT, rationale=None)]}, "requirements.0.rationale: is missing: add it"),
        ({"requirements": [changed(REQUIREMENT, strict="no")]}, "requirements.0.strict: Input should be a valid boolean"),
        ({"id": "other"}, "fw.yaml: id: is 'other'; write 'fw', the file's name, or rename the file"),
        ({"edition": 2022}, "edition: Input should be a valid string"),
    ],
)
def test_a_bad_framework_is_refused_with_file_field_and_fix(tmp_path: Path, changes: dict[str, object], said: str) -> None:
    message = refusal(frameworks(tmp_path, **changes))
    assert "frameworks/fw.yaml: " in message
    assert said in message


def test_a_misnamed_framework_file_is_not_passed_over(tmp_path: Path) -> None:
    place = frameworks(tmp_path)
    (place / "frameworks" / "fw.yaml").rename(place / "frameworks" / "fw.yml")
    assert "fw.yml: is not a policy file" in refusal(place)
    assert "frameworks/*.yaml" in refusal(place)


def test_one_bad_file_is_told_with_all_the_others(tmp_path: Path) -> None:
    place = waivers(tmp_path, changed(WAIVER, expires=None))
    (place / "slas.yaml").write_text("version: 9\n")
    message = refusal(place)
    assert "slas.yaml: version" in message
    assert "waivers.yaml: waivers.0.expires" in message


@pytest.mark.parametrize(
    ("tier", "said"),
    [
        ("severities: {XXX-01: low}", "tiers.yaml: tiers.no_loss.severities: XXX-01 is not a control of the catalogue"),
        ("parameters: {XXX-01: {a: 1}}", "tiers.yaml: tiers.no_loss.parameters: XXX-01 is not a control of the catalogue"),
        ("parameters: {TOP-01: {a: 1}}", "parameters.TOP-01: a is not one of its parameters; this control has none"),
        ("parameters: {AUD-01: {gaps: 1}}", "parameters.AUD-01: gaps is not one of its parameters; write one of max_gap_intervals"),
        ("parameters: {AUD-01: {max_gap_intervals: 2.5}}", "max_gap_intervals: write a whole number (found 2.5)"),
        # Every number is below not-a-number, so nothing would fail, and nothing would be printed as loosened.
        (
            "parameters: {REP-05: {max_leader_changes_per_hour: .nan}}",
            "max_leader_changes_per_hour.float: Input should be a valid number (found '.nan')",
        ),
        ("parameters: {AUD-01: {max_gap_intervals: 9223372036854775808}}", "a number is beyond 64 bits"),
    ],
)
def test_a_tier_may_set_only_what_the_catalogue_has(tmp_path: Path, catalogue: Catalogue, tier: str, said: str) -> None:
    place = folder(tmp_path, TIERS.replace("86400000}", f"86400000, {tier}}}"), SLAS)
    assert said in refusal(place, catalogue)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"control": "XXX-01"}, "waivers.yaml: W-1: control XXX-01 is not in the catalogue"),
        ({"control": "TOP-01"}, "waivers.yaml: W-1: resource: TOP-01 is critical, so 'legacy-*' must name one thing"),
        ({"control": "TOP-01", "resource": "a?"}, "must name one thing"),
        ({"control": "TOP-01", "resource": "[!*]"}, "must name one thing"),
    ],
)
def test_a_waiver_names_a_control_and_on_a_critical_one_a_single_thing(
    tmp_path: Path, catalogue: Catalogue, changes: dict[str, object], said: str
) -> None:
    assert said in refusal(waivers(tmp_path, changed(WAIVER, **changes)), catalogue)


def test_a_control_that_a_tier_makes_critical_takes_no_wildcard_either(tmp_path: Path, catalogue: Catalogue) -> None:
    place = waivers(tmp_path, WAIVER)
    check_policy(load_policy(place), catalogue)
    (place / "tiers.yaml").write_text(TIERS.replace("86400000}", "86400000, severities: {TOP-06: critical}}"))
    assert "TOP-06 is critical" in refusal(place, catalogue)


@pytest.mark.parametrize("resource", ["legacy", "a[*]b", "[[]x]", "[x]"])
def test_a_waiver_on_a_critical_control_may_name_any_one_thing(tmp_path: Path, catalogue: Catalogue, resource: str) -> None:
    check_policy(load_policy(waivers(tmp_path, changed(WAIVER, control="TOP-01", resource=resource))), catalogue)


def test_a_framework_may_name_only_controls_of_the_catalogue(tmp_path: Path, catalogue: Catalogue) -> None:
    place = frameworks(tmp_path, requirements=[changed(REQUIREMENT, supported_by=["TOP-01", "TOP-99"])])
    assert "frameworks/fw.yaml: A.1: supported_by: TOP-99 not in the catalogue: correct the code" in refusal(place, catalogue)


def test_the_shipped_policy_fits_the_shipped_catalogue_and_maps_every_control(catalogue: Catalogue) -> None:
    policy = load_policy()
    check_policy(policy, catalogue)
    shipped = ["dora_2022_2554", "hipaa_security_rule", "iso_27001_2022", "nist_800_53_r5", "pci_dss_4_0_1", "soc2_2017"]
    assert [framework.id for framework in policy.frameworks] == shipped
    mapped = {code for framework in policy.frameworks for one in framework.requirements for code in one.supported_by}
    assert mapped == {control.code for control in catalogue.controls}
    assert [one.id for framework in policy.frameworks for one in framework.requirements if len(one.cannot_show) < 20] == []


@pytest.mark.parametrize(
    ("approved_on", "expires", "state"),
    [
        ("2026-11-01", "2026-11-20T12:00:00Z", WaiverState.EXPIRED),
        ("2026-11-01", "2026-11-20T14:00:00+02:00", WaiverState.EXPIRED),
        ("2026-11-01", "2026-11-20T12:00:01Z", WaiverState.IN_FORCE),
        ("2026-11-21", "2027-01-01T00:00:00Z", WaiverState.IN_FORCE),  # the 21st has begun in Kiribati
        ("2026-11-22", "2027-01-01T00:00:00Z", WaiverState.NOT_YET_APPROVED),
    ],
)
def test_a_waiver_holds_from_its_approval_until_it_expires(tmp_path: Path, approved_on: str, expires: str, state: WaiverState) -> None:
    policy = load_policy(waivers(tmp_path, changed(WAIVER, approved_on=approved_on, expires=expires)))
    assert policy.waivers[0].state(AT) is state


def with_client(tmp_path: Path, declared_on: str) -> Policy:
    place = folder(tmp_path)
    (place / "clients.yaml").write_text(yaml.safe_dump({"version": 1, "clients": [changed(CLIENT, declared_on=declared_on)]}))
    return load_policy(place)


def test_a_policy_that_is_handed_in_has_no_expired_waiver_and_no_date_that_lies_ahead(tmp_path: Path) -> None:
    check_dates(load_policy(waivers(tmp_path, WAIVER)), AT)
    with pytest.raises(ConfigurationError, match=r"waivers\.yaml: W-1: expires: 2027-01-31T00:00:00\+00:00 is past: remove the waiver"):
        check_dates(load_policy(tmp_path), AT + timedelta(days=90))
    with pytest.raises(ConfigurationError, match=r"waivers\.yaml: W-1: approved_on: 2026-11-01 is in the future: write the day"):
        check_dates(load_policy(tmp_path), AT - timedelta(days=30))
    with pytest.raises(ConfigurationError, match=r"clients\.yaml: billing: declared_on: 2026-12-01 is in the future"):
        check_dates(with_client(tmp_path, "2026-12-01"), AT)


@pytest.mark.parametrize("run", [{}, {"started_at": None}, {"started_at": "yesterday"}, {"started_at": "2026-11-20T12:00:00"}])
def test_an_audit_whose_start_is_not_known_has_no_time_to_judge_waivers_at(run: dict[str, object]) -> None:
    with pytest.raises(IntegrityError, match="started_at"):
        began(run)


def test_the_start_of_an_audit_is_read_with_its_time_zone() -> None:
    assert began({"started_at": "2026-11-20T12:00:00Z"}) == began({"started_at": "2026-11-20T14:00:00+02:00"}) == AT


def test_policy_check_says_what_the_policy_has(tmp_path: Path) -> None:
    place = waivers(tmp_path, changed(WAIVER, approved_on="2020-01-01", expires="2999-01-01T00:00:00Z"))
    done = CliRunner().invoke(app, ["policy", "check", str(place)])
    assert done.exit_code == 0, done.output
    assert re.fullmatch(r"the policy is valid: 1 tiers, 1 SLAs, 0 clients, 1 waivers, 6 frameworks; sha256 [0-9a-f]{64}\n", done.output)


@pytest.mark.parametrize(
    "changes", [{"expires": "2020-01-01T00:00:00Z", "approved_on": "2019-01-01"}, {"control": "XXX-01"}, {"approver": "Ada"}]
)
def test_policy_check_refuses_with_exit_code_2(tmp_path: Path, changes: dict[str, object], capsys: pytest.CaptureFixture[str]) -> None:
    place = waivers(tmp_path, changed(WAIVER, **changes))
    with pytest.raises(SystemExit) as ended:
        main(lambda: app(["policy", "check", str(place)], standalone_mode=False))
    assert ended.value.code == 2
    assert "waivers.yaml" in capsys.readouterr().err
