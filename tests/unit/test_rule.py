"""The rule of a control and its hash, which every result carries."""

import hashlib
import json
import shutil
from pathlib import Path

import pytest
import yaml

from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import Catalogue, load_catalogue, shipped_controls
from kafka_audit.catalogue.rule import ASKS, read_rules, rule_of, rule_set_sha256
from kafka_audit.errors import IntegrityError


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="module")
def with_parameters(catalogue: Catalogue) -> Control:
    return next(one for one in catalogue.controls if one.parameters)


def changed(control: Control, **fields: object) -> Control:
    return control.model_copy(update=fields)


def test_controls_that_depend_on_the_policy_beyond_the_evidence_are_known(catalogue: Catalogue) -> None:
    codes = {rule.code for rule in catalogue.rules.values() if rule.reads_policy_itself}
    assert {"SEC-01", "PRD-05", "OPS-01", "TOP-08", "CON-10"} <= codes
    assert "TOP-01" not in codes
    assert {rule.code for rule in catalogue.rules.values() if rule.counts_loss} == {"CON-03"}


def test_a_copy_that_is_no_control_cannot_be_compared(tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("- one\n- two\n")
    with pytest.raises(IntegrityError, match=r"broken\.yaml: is not a control"):
        read_rules(tmp_path)
    assert read_rules(tmp_path / "nothing") is None


@pytest.mark.parametrize("text", [b"[", b"\xff\xfe", b"{code: A, title: b, subject: c, parameters: [1]}"])
def test_a_copy_that_is_broken_is_said_and_no_traceback(tmp_path: Path, text: bytes) -> None:
    (tmp_path / "broken.yaml").write_bytes(text)
    with pytest.raises(IntegrityError, match=r"broken\.yaml: is not a control"):
        read_rules(tmp_path)


def test_no_two_shipped_controls_have_a_rule_of_the_same_hash(catalogue: Catalogue) -> None:
    assert len({rule.sha256 for rule in catalogue.rules.values()}) == len(catalogue.controls)


@pytest.mark.parametrize("field", ["pass_when", "applies_when", "baseline_when", "undeclared_when", "evidence_of_row"])
def test_another_sql_that_decides_is_another_rule(with_parameters: Control, field: str) -> None:
    sql = f"({getattr(with_parameters, field) or 'true'})"
    assert rule_of(changed(with_parameters, **{field: sql})).sha256 != rule_of(with_parameters).sha256


def test_another_subject_dataset_or_default_of_a_parameter_is_another_rule(with_parameters: Control) -> None:
    name, parameter = next(iter(with_parameters.parameters.items()))
    other = parameter.model_copy(update={"default": parameter.default + 1})
    variants = [
        changed(with_parameters, subject="producer"),
        changed(with_parameters, needs=(*with_parameters.needs, "acls")),
        changed(with_parameters, parameters={**with_parameters.parameters, name: other}),
    ]
    assert len({rule_of(one).sha256 for one in (with_parameters, *variants)}) == 4


def test_texts_severity_order_of_datasets_and_examples_are_no_part_of_the_rule(with_parameters: Control) -> None:
    texts = ("title", "observed", "expected", "rationale", "failure_scenario", "remediation_impact", "not_assessed_reason")
    others = changed(with_parameters, **dict.fromkeys(texts, "'x'"), severity="info", examples=(), needs=with_parameters.needs[::-1])
    assert rule_of(others).sha256 == rule_of(with_parameters).sha256


def test_a_rule_set_changes_with_one_rule_and_not_with_texts(tmp_path: Path) -> None:
    folder = tmp_path / "controls"
    folder.mkdir()
    for name in ("log_dirs_healthy", "declared_groups_alive"):
        shutil.copy(shipped_controls() / f"{name}.yaml", folder)
    file = folder / "log_dirs_healthy.yaml"
    before, text = load_catalogue([folder]), file.read_text()
    file.write_text(text + "# a note\n")
    noted = load_catalogue([folder])
    assert noted.sha256 != before.sha256
    assert noted.rule_set_sha256 == before.rule_set_sha256
    changed_rule = yaml.safe_load(text)
    changed_rule["pass_when"] = f"({changed_rule['pass_when']}) and true"
    file.write_text(json.dumps(changed_rule))
    ruled = load_catalogue([folder])
    assert ruled.rule_set_sha256 != before.rule_set_sha256
    assert [name for name, rule in ruled.rules.items() if rule.sha256 != before.rules[name].sha256] == ["log_dirs_healthy"]


def test_the_hashes_are_over_what_the_document_says(with_parameters: Control) -> None:
    written = with_parameters.model_dump(mode="json")
    asked = {name: sorted(written[name]) if name == "needs" else written[name] for name in ASKS}
    defaults = {name: one["default"] for name, one in written["parameters"].items()}
    assert rule_of(with_parameters).sha256 == hashlib.sha256(json.dumps([asked, defaults], sort_keys=True).encode()).hexdigest()
    rules = {"b": rule_of(with_parameters), "a": rule_of(changed(with_parameters, subject="producer"))}
    lines = "".join(f"{name} {rules[name].sha256}\n" for name in ("a", "b"))
    assert rule_set_sha256(rules) == hashlib.sha256(lines.encode()).hexdigest()
