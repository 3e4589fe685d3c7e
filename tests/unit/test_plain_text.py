"""Texts of controls and policies are data: placeholders that a program could replace with values of its environment are refused."""

import copy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from test_catalogue import GOOD, PARAMETERS, refusal, write

from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import load_catalogue
from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy
from kafka_audit.policy.load import shipped_policy_folder

SUBSTITUTIONS = ("${env:HOME}", "${system:user.name}", "${spark:spark.app.id}", "${hiveconf:x}", "${HOME}")


def texts_of(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The place of every text in a control."""
    if isinstance(value, str):
        yield place
    for key, part in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from texts_of(part, (*place, key))


FULL: dict[str, Any] = {
    **GOOD,
    "parameters": PARAMETERS,
    "evidence_of_row": "if(confirmed, 'observed', null)",
    "applies_when": "topic is not null",
    "not_assessed_reason": "'nothing is known of ' || topic",
    "baseline_when": "leader_changes is null and topic is not null",
    "undeclared_when": "policy.owner is null and topic is not null",
    "false_positives": ["none known"],
    "examples": [*GOOD["examples"], {"name": "first", "row": {}, "status": "not_applicable", "first_audit": True, "reason": "r"}],
}


def test_the_full_control_has_every_field_of_the_model_and_loads(tmp_path: Path) -> None:
    assert set(FULL) == set(Control.model_fields)
    (tmp_path / "isr_is_whole.yaml").write_text(yaml.safe_dump(FULL))
    assert load_catalogue([tmp_path]).controls[0].evidence_of_row


@pytest.mark.parametrize("place", texts_of(FULL), ids=lambda place: ".".join(map(str, place)))
def test_no_text_of_a_control_may_hold_a_substitution(place: tuple[Any, ...], tmp_path: Path) -> None:
    for substitution in SUBSTITUTIONS:
        changed = copy.deepcopy(FULL)
        part = changed
        for key in place[:-1]:
            part = part[key]
        part[place[-1]] = f"{part[place[-1]]} '{substitution}'"
        path = tmp_path / "isr_is_whole.yaml"
        path.write_text(yaml.safe_dump(changed))
        assert f"{path}: {'.'.join(map(str, place))}: holds ${{, which programs replace" in refusal(tmp_path)


def test_a_key_may_hold_no_substitution_either_and_its_value_is_not_repeated(tmp_path: Path) -> None:
    write(tmp_path, **{"${env:HOME}": "x", "examples": [{"name": "x", "row": {"errors": {"${env:HOME}": "y"}}, "status": "pass"}]})
    message = refusal(tmp_path)
    assert "(whole file): holds ${" in message
    assert "examples.0.row.errors: holds ${" in message
    assert "env:HOME" not in message


_PLACES = {
    "tiers.yaml": (
        "version: 1\ndefault_tier: a\ntiers:\n  a: {replication_factor: 3, min_insync_replicas: 2, retention_ms: 1, owner: '%s'}\n",
        "tiers.a.owner",
    ),
    "slas.yaml": ("version: 1\ngroups:\n  - {pattern: '%s', max_lag: 5}\n", "groups.0.pattern"),
    "waivers.yaml": ("version: 1\nwaivers:\n  - {justification: 'because of %s'}\n", "waivers.0.justification"),
    "clients.yaml": ("version: 1\nclients:\n  - {settings: {'acks': '%s'}}\n", "clients.0.settings.acks"),
    "frameworks/own.yaml": ("id: own\ntitle: '%s'\n", "title"),
}


@pytest.mark.parametrize("name", _PLACES)
def test_a_substitution_in_any_file_of_a_policy_is_refused_with_file_and_field(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "policy"
    shutil.copytree(shipped_policy_folder(), folder)
    text, field = _PLACES[name]
    (folder / name).write_text(text % "${env:HOME}")
    with pytest.raises(ConfigurationError) as problem:
        load_policy(folder)
    assert problem.value.exit_code == 2
    assert f"{folder / name}: {field}: holds ${{, which programs replace" in str(problem.value)
    assert "env:HOME" not in str(problem.value)


def test_the_policy_that_ships_holds_none() -> None:
    assert load_policy().folder == shipped_policy_folder()
