"""Texts of a policy are data: what a program could replace by a value of its environment is refused."""

import shutil
from pathlib import Path

import pytest

from kafka_audit.errors import ConfigurationError
from kafka_audit.policy import load_policy
from kafka_audit.policy.load import shipped_policy_folder

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
