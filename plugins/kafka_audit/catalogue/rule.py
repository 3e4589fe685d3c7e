"""The rule of a control: what it asks of a row. Each result carries the rule's hash, and two audits are compared by their rules.

Two results can be compared only if both were asked the same. A title, a reason or a remediation may change; the rule may not.
``docs/results.md`` says how to compute the hash without this project.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.input_files.read import read_input, refuse_outside
from kafka_audit.input_files.strict_yaml import parse_yaml

if TYPE_CHECKING:
    from kafka_audit.catalogue.control import Control

ASKS = ("subject", "needs", "applies_when", "pass_when", "baseline_when", "undeclared_when", "evidence_of_row")
"""The fields of a control that decide which status a row gets, and of which class its evidence is."""

_FROM_POLICY = re.compile(r"\b(attestations|attested_\w+|undeclared|declared_(consumers|producers)|destructive_grant\w*)\b")
"""Columns of a row in which values of the policy are, and not in ``policy`` or ``parameters``."""
_COUNTS_LOSS = re.compile(r"\blost\b")
_KEPT_RULES = 256


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One control as an audit judged it. ``fields``: what it asks; ``defaults``: its parameters as the catalogue sets them."""

    code: str
    title: str
    subject: str
    fields: Mapping[str, Any]
    defaults: Mapping[str, Any]

    @property
    def reads_policy_itself(self) -> bool:
        """Whether its verdict depends on the policy in a way that a finding does not show."""
        return any(_FROM_POLICY.search(str(value)) for value in self.fields.values())

    @property
    def counts_loss(self) -> bool:
        """Whether it fails for lost records, whose number is in the evidence of each finding."""
        return _COUNTS_LOSS.search(str(self.fields["pass_when"])) is not None

    def changed_fields(self, other: "Rule") -> list[str]:
        """The fields in which two rules differ."""
        return [name for name in ASKS if self.fields[name] != other.fields[name]]

    @cached_property
    def sha256(self) -> str:
        """The hash of what the control asks, as hexadecimal digits: SQL as it is written, and parameters before the policy sets them.

        What the policy set is in the evidence of each finding, because it depends on the tier of the resource.
        """
        return hashlib.sha256(json.dumps([self.fields, self.defaults], sort_keys=True).encode()).hexdigest()


def rule_of(control: "Control") -> Rule:
    """The rule of a control that was loaded."""
    return _rule(control.model_dump(mode="json", include={*ASKS, "code", "title", "parameters"}))


def rules_of(controls: Sequence["Control"]) -> dict[str, Rule]:
    """The rules of a catalogue that was loaded, by control id."""
    return {one.id: rule_of(one) for one in controls}


def rule_set_sha256(rules: Mapping[str, Rule]) -> str:
    """The hash of rules by control id: over a line ``<control id> <hash of its rule>`` for each, in the order of the ids."""
    lines = (f"{control_id} {rules[control_id].sha256}\n" for control_id in sorted(rules))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def read_rules(folder: Path) -> dict[str, Rule] | None:
    """The rules in an audit's copies of its controls, by control id; None if it has none.

    Only what is compared is read, so that controls of another release can be read too. IntegrityError when one is not a control.
    """
    if not folder.is_dir():
        return None
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            refuse_outside(folder, path)
            found[path.stem] = _rule_in(read_input(path, "name a YAML file"))
        except (OSError, ConfigurationError, yaml.YAMLError, AttributeError, KeyError, TypeError) as problem:
            raise IntegrityError(f"{path}: is not a control that can be compared ({problem!s:.200})") from problem
    return found


@lru_cache(maxsize=_KEPT_RULES)
def _rule_in(raw: bytes) -> Rule:
    """The rule in a control's file. Kept, because audits mostly have the same controls, and parsing a catalogue takes most of a second."""
    return _rule(parse_yaml(raw))


def _rule(value: Mapping[str, Any]) -> Rule:
    parameters = value.get("parameters") or {}
    return Rule(
        code=str(value["code"]),
        title=str(value["title"]).strip(),
        subject=str(value["subject"]),
        fields={name: _plain(value.get(name)) for name in ASKS},
        defaults={str(name): one["default"] for name, one in parameters.items()},
    )


def _plain(value: object) -> object:
    return value.strip() if isinstance(value, str) else sorted(map(str, value)) if isinstance(value, list | tuple) else value
