"""What an audit asked: what its copies of controls and policy say, and what the evidence of a finding says."""

import json

import pytest

from kafka_audit.audit.inputs import keep_rules
from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.catalogue.rule import read_rules
from kafka_audit.policy import load_policy
from kafka_audit.report.asked import asked_of, changes_verdicts, differences, lost_in, policy_hashes
from kafka_audit.store.layout import Audit


def test_the_copies_of_controls_and_policy_ask_what_the_originals_ask(tmp_path):
    policy, catalogue, audit = load_policy(), load_catalogue(), Audit(path=tmp_path)
    keep_rules(audit, policy, catalogue, [shipped_controls()])
    kept = read_rules(audit.inputs / "controls")
    assert kept == catalogue.rules
    assert {name: rule.sha256 for name, rule in kept.items()} == {name: rule.sha256 for name, rule in catalogue.rules.items()}
    assert policy_hashes(audit.inputs / "policy") == policy_hashes(policy)


@pytest.mark.parametrize("evidence", [None, "", "[1]", "no JSON", "[" * 100_000])
def test_evidence_that_does_not_say_what_was_asked_is_not_known(evidence):
    assert asked_of(evidence) is None
    assert lost_in(evidence) is None


def test_only_policy_and_parameters_are_what_was_asked():
    evidence = json.dumps({"lag": 3, "policy.max_lag": 1, "parameters.days": 2, "policyholder": 4, "lost": True, "isolation": None})
    assert asked_of(evidence) == '{"isolation": null, "parameters.days": 2, "policy.max_lag": 1}'
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
