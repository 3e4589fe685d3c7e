"""Suite files are loaded completely or refused."""

import json
from pathlib import Path

import pytest

from expectations.suites import SHIPPED, load_suite
from kafka_audit.errors import ConfigurationError

FILES = ["evidence_fit.json", "findings_pass.json"]
RULES = [(name, index) for name in FILES for index in range(len(json.loads((SHIPPED / name).read_text())["expectations"]))]


def altered(tmp_path: Path, name: str, change) -> Path:
    suite = json.loads((SHIPPED / name).read_text())
    change(suite)
    path = tmp_path / name
    path.write_text(json.dumps(suite))
    return path


@pytest.mark.parametrize("name", FILES)
def test_a_shipped_suite_is_named_like_its_file_and_explains_every_rule(name):
    suite = load_suite(SHIPPED / name)
    assert f"{suite.name}.json" == name
    assert len(suite.expectations) == suite.meta.rule_count
    assert len({rule.description for rule in suite.expectations}) == len(suite.expectations)


@pytest.mark.parametrize(("name", "index"), RULES)
def test_a_suite_with_one_rule_deleted_is_refused(tmp_path, name, index):
    path = altered(tmp_path, name, lambda suite: suite["expectations"].pop(index))
    with pytest.raises(ConfigurationError, match="the file promises the rules"):
        load_suite(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s["expectations"].clear(), "holds none"),
        (lambda s: s["expectations"][0].update(severity="severe"), "expectations.0.severity"),
        (lambda s: s["expectations"][0].pop("severity"), "expectations.0.severity: Field required"),
        (lambda s: s["expectations"][0]["meta"].pop("rule_id"), "expectations.0.meta.rule_id: Field required"),
        (lambda s: s["expectations"][0]["meta"].update(exit_code=0), "expectations.0.meta.exit_code"),
        (lambda s: s["expectations"][0].update(enabled=False), "expectations.0.enabled"),
        (lambda s: s["expectations"][0]["kwargs"].update(mostly=0.5), "would let rows fail in silence"),
        (lambda s: s["expectations"].append(s["expectations"][0]), "the file promises the rules"),
        (lambda s: s["meta"].update(rule_count=0), "meta.rule_count"),
    ],
)
def test_a_weakened_suite_is_refused_with_field_and_reason(tmp_path, change, message):
    path = altered(tmp_path, "evidence_fit.json", change)
    with pytest.raises(ConfigurationError, match=message) as caught:
        load_suite(path)
    assert str(path) in str(caught.value)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("text", ["", "[]", "3", "{"])
def test_a_suite_that_is_no_json_object_is_refused(tmp_path, text):
    path = tmp_path / "suite.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="is not a JSON object"):
        load_suite(path)


def test_a_missing_suite_is_refused(tmp_path):
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_suite(tmp_path / "gone.json")


def test_the_hash_changes_with_the_file(tmp_path):
    path = altered(tmp_path, "evidence_fit.json", lambda suite: suite["expectations"][0].update(notes="other"))
    assert load_suite(path).sha256 != load_suite(SHIPPED / "evidence_fit.json").sha256
