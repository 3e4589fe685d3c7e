"""What an audit asked of a resource: the rule of the control, its parameters, and what the policy demands.

Two results can be compared only if both audits asked the same. A title, a reason or a remediation may change; the rule may not.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kafka_audit.audit.inputs import policy_files
from kafka_audit.catalogue.control import Control
from kafka_audit.errors import ConfigurationError, IntegrityError
from kafka_audit.input_files.yaml_file import load_yaml
from kafka_audit.policy import Policy
from kafka_audit.store.durable_files import sha256_of

_ASKS = ("subject", "needs", "applies_when", "pass_when", "baseline_when", "undeclared_when", "evidence_of_row")
_FROM_POLICY = re.compile(r"\b(attestations|undeclared|destructive_grant\w*)\b")
"""Columns of a row in which values of the policy are, and not in ``policy`` or ``parameters``."""
_COUNTS_LOSS = re.compile(r"\blost\b")
_NO_ASK = ("frameworks/", "waivers.yaml")
"""Policy files that change no verdict."""
_PREFIXES = ("policy", "parameters")
_ENCODER = json.JSONEncoder(sort_keys=True)


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
        return [name for name in _ASKS if self.fields[name] != other.fields[name]]

    @property
    def sha256(self) -> str:
        """The hash of what the control asks."""
        return hashlib.sha256(json.dumps([self.fields, self.defaults], sort_keys=True).encode()).hexdigest()


def rules_of(controls: Sequence[Control]) -> dict[str, Rule]:
    """The rules of a catalogue that was loaded, by control id."""
    return {one.id: _rule(one.model_dump(mode="json", include={*_ASKS, "code", "title", "parameters"})) for one in controls}


def read_rules(folder: Path) -> dict[str, Rule] | None:
    """The rules in an audit's copies of its controls, by control id; None if it has none.

    Only what is compared is read, so that controls of another release can be read too. IntegrityError when one is not a control.
    """
    if not folder.is_dir():
        return None
    found = {}
    for path in sorted(folder.glob("*.yaml")):
        try:
            value = load_yaml(path, within=folder)[0]
            found[path.stem] = _rule(value)
        except (ConfigurationError, AttributeError, KeyError, TypeError) as problem:
            raise IntegrityError(f"{path}: is not a control that can be compared ({problem!s:.200})") from problem
    return found


def _rule(value: Mapping[str, Any]) -> Rule:
    parameters = value.get("parameters") or {}
    return Rule(
        code=str(value["code"]),
        title=str(value["title"]).strip(),
        subject=str(value["subject"]),
        fields={name: _plain(value.get(name)) for name in _ASKS},
        defaults={str(name): one["default"] for name, one in parameters.items()},
    )


def _plain(value: object) -> object:
    return value.strip() if isinstance(value, str) else sorted(map(str, value)) if isinstance(value, list | tuple) else value


def policy_hashes(policy: Policy | Path) -> dict[str, str]:
    """The sha256 of every file of a policy, or of an audit's copy of it, by name."""
    if isinstance(policy, Path):
        files = {path.relative_to(policy).as_posix(): path for path in policy.rglob("*") if path.is_file()}
    else:
        files = policy_files(policy)
    return {name: sha256_of(path) for name, path in sorted(files.items())}


def changes_verdicts(name: str) -> bool:
    """Whether a policy file of that name can change what is asked."""
    return not name.startswith(_NO_ASK)


def asked_of(evidence: str | None) -> str | None:
    """What a finding's evidence says that the policy and the parameters asked of the resource, as JSON; None if it does not say."""
    try:
        value = json.loads(evidence or "")
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict):
        return None
    asked = {name: one for name, one in value.items() if name.startswith(_PREFIXES) and name.split(".")[0] in _PREFIXES}
    return _ENCODER.encode(asked) if asked else "{}"


def differences(before: str, now: str) -> list[str]:
    """What two askings differ in, by name: ``parameters.max_skew_ms was 5000 and is 3000``."""
    old, new = json.loads(before), json.loads(now)
    names = sorted(name for name in {*old, *new} if name not in old or name not in new or old[name] != new[name])
    return [f"{name} was {_shown(old, name)} and is {_shown(new, name)}" for name in names]


def lost_in(evidence: str | None) -> int | None:
    """The number of lost records in a finding's evidence; None if it does not say."""
    try:
        value = json.loads(evidence or "").get("lost")
    except (ValueError, RecursionError, AttributeError):
        return None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _shown(values: Mapping[str, Any], name: str) -> str:
    return json.dumps(values[name], ensure_ascii=False)[:80] if name in values else "not asked"
