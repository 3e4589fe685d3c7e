"""What an audit asked: the rules of controls as they were loaded, and as they are read from an audit's copies."""

import json

import pytest

from kafka_audit.audit.inputs import keep_rules
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.errors import IntegrityError
from kafka_audit.policy import load_policy
from kafka_audit.report.asked import asked_of, changes_verdicts, differences, lost_in, policy_hashes, read_rules, rules_of
from kafka_audit.store.layout import Audit


def test_the_copies_of_controls_and_policy_ask_what_the_originals_ask(tmp_path):
    policy, catalogue, audit = load_policy(), load_catalogue(), Audit(path=tmp_path)
    keep_rules(audit, policy, catalogue, [shipped_controls()])
    assert read_rules(audit.inputs / "controls") == rules_of(catalogue.controls)
    assert policy_hashes(audit.inputs / "policy") == policy_hashes(policy)


def test_controls_that_depend_on_the_policy_beyond_the_evidence_are_known():
    rules = rules_of(load_catalogue().controls)
    codes = {rule.code for rule in rules.values() if rule.reads_policy_itself}
    assert {"SEC-01", "PRD-05", "OPS-01"} <= codes
    assert "TOP-01" not in codes
    assert {rule.code for rule in rules.values() if rule.counts_loss} == {"CON-03"}


def test_a_copy_that_is_no_control_cannot_be_compared(tmp_path):
    (tmp_path / "broken.yaml").write_text("- one\n- two\n")
    with pytest.raises(IntegrityError, match=r"broken\.yaml: is not a control"):
        read_rules(tmp_path)
    assert read_rules(tmp_path / "nothing") is None


def test_a_rule_has_a_hash_of_what_it_asks():
    rules = list(rules_of(load_catalogue().controls).values())
    assert len({rule.sha256 for rule in rules}) == len(rules)


@pytest.mark.parametrize("evidence", [None, "", "[1]", "no JSON", "[" * 100_000])
def test_evidence_that_does_not_say_what_was_asked_is_not_known(evidence):
    assert asked_of(evidence) is None
    assert lost_in(evidence) is None


def test_only_policy_and_parameters_are_what_was_asked():
    evidence = json.dumps({"lag": 3, "policy.max_lag": 1, "parameters.days": 2, "policyholder": 4, "lost": True})
    assert asked_of(evidence) == '{"parameters.days": 2, "policy.max_lag": 1}'
    assert lost_in(evidence) is None


def test_differences_name_what_was_not_asked_before():
    assert differences('{"policy.a": 1}', '{"policy.a": 1, "policy.b": "x"}') == ['policy.b was not asked and is "x"']


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        *(("waivers.yaml", False), ("frameworks/dora.yaml", False), ("tiers.yaml", True), ("shop.properties", True)),
        *(("waivers.yaml.properties", True), ("frameworks/shop.properties", True), ("frameworks/x/y.yaml", True)),
    ],
)
def test_only_waivers_and_frameworks_change_no_verdict_and_no_settings_file_can_look_like_one(name: str, changes: bool) -> None:
    assert changes_verdicts(name) is changes
