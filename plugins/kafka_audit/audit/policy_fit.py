"""Checks whether an audit may use a policy: the controls that it names must exist, its dates be valid, its clients hold no secret."""

import re
from datetime import datetime
from typing import TYPE_CHECKING

from kafka_audit.clients.secrets import secret_problems
from kafka_audit.collect.config_keys import BROKER_KEYS, TOPIC_KEYS
from kafka_audit.errors import ConfigurationError
from kafka_audit.findings import EvidenceClass, Severity
from kafka_audit.policy.load import Policy
from kafka_audit.policy.waivers import WaiverState, is_future

if TYPE_CHECKING:
    from kafka_audit.catalogue.control import Control
    from kafka_audit.catalogue.load import Catalogue

_WILDCARDS = frozenset("*?[")
_ESCAPED_WILDCARD = re.compile(r"\[[*?[]\]")


def check_policy(policy: Policy, catalogue: "Catalogue") -> None:
    """Check that every control and parameter named by the policy is in the catalogue, and that no client's settings hold a secret;
    ConfigurationError (exit 2) lists all problems.
    """
    refuse_secrets(policy)
    controls = {control.code: control for control in catalogue.controls}
    problems = [
        *_tier_problems(policy, controls),
        *_waiver_problems(policy, controls),
        *_attestation_problems(policy, controls),
        *_framework_problems(policy, controls),
        *_service_problems(policy),
    ]
    if problems:
        raise ConfigurationError("the policy does not fit the catalogue:\n  " + "\n  ".join(f"{policy.folder}/{line}" for line in problems))


def refuse_secrets(policy: Policy) -> None:
    """ConfigurationError (exit 2) when settings of the policy's clients hold secrets, which every audit would keep; lists their names."""
    found = [line for client in policy.clients for line in secret_problems(client, policy.folder)]
    if found:
        raise ConfigurationError("the policy holds secrets:\n  " + "\n  ".join(f"{policy.folder}/{line}" for line in found))


def check_dates(policy: Policy, at: datetime) -> None:
    """Check a policy's dates before it is adopted; ConfigurationError (exit 2) lists what has expired, and dates in the future.

    An audit does not check this: it lists an expired waiver or attestation and does not apply it.
    """
    problems = []
    for waiver in policy.waivers:
        where = f"{policy.folder}/waivers.yaml: {waiver.id}"
        if waiver.state(at) is WaiverState.EXPIRED:
            problems.append(f"{where}: expires: {waiver.expires.isoformat()} is past: remove the waiver or have it approved again")
        elif waiver.state(at) is WaiverState.NOT_YET_APPROVED:
            problems.append(f"{where}: approved_on: {waiver.approved_on} is in the future: write the day on which it was approved")
    problems += [
        f"{policy.folder}/clients.yaml: {client.name}: declared_on: {client.declared_on} is in the future: write the day of the declaration"
        for client in policy.clients
        if is_future(client.declared_on, at)
    ]
    for one in policy.attestations:
        where = f"{policy.folder}/attestations.yaml: {one.id}"
        if is_future(one.attested_on, at):
            problems.append(f"{where}: attested_on: {one.attested_on} is in the future: write the day of the attestation")
        elif not one.in_force(at):
            problems.append(f"{where}: expires: {one.expires.isoformat()} is past: remove it, or file a new attestation")
    if problems:
        raise ConfigurationError("the policy has invalid dates:\n  " + "\n  ".join(problems))


def _tier_problems(policy: Policy, controls: "dict[str, Control]") -> list[str]:
    problems = []
    for name, tier in policy.tiers.items():
        where = f"tiers.yaml: tiers.{name}"
        for field in ("severities", "parameters"):
            problems += [
                f"{where}.{field}: {code} is not a control of the catalogue" for code in getattr(tier, field) if code not in controls
            ]
        for code, values in tier.parameters.items():
            known = controls[code].parameters if code in controls else {}
            for parameter, value in values.items():
                if code in controls and parameter not in known:
                    hint = f"write one of {', '.join(known)}" if known else "this control has none"
                    problems.append(f"{where}.parameters.{code}: {parameter} is not one of its parameters; {hint}")
                elif parameter in known and isinstance(known[parameter].default, int) and not isinstance(value, int):
                    problems.append(f"{where}.parameters.{code}.{parameter}: write a whole number (found {value!r})")
    return problems


def _waiver_problems(policy: Policy, controls: "dict[str, Control]") -> list[str]:
    problems = []
    for waiver in policy.waivers:
        where = f"waivers.yaml: {waiver.id}"
        if waiver.control not in controls:
            problems.append(f"{where}: control {waiver.control} is not in the catalogue")
            continue
        raised = [tier.severities.get(waiver.control) for tier in policy.tiers.values()]
        critical = Severity.CRITICAL in (controls[waiver.control].severity, *raised)
        if critical and _WILDCARDS.intersection(_ESCAPED_WILDCARD.sub("", waiver.pattern)):
            problems.append(
                f"{where}: resource: {waiver.control} is critical, so {waiver.resource!r} must name one thing, without * and ? "
                "(write [*] for a star that is part of the name)"
            )
    return problems


def _attestation_problems(policy: Policy, controls: "dict[str, Control]") -> list[str]:
    manual = [code for code, control in controls.items() if control.evidence is EvidenceClass.MANUAL]
    return [
        f"attestations.yaml: {one.id}: control {one.control} is not a control that a person attests: write one of {', '.join(manual)}"
        for one in policy.attestations
        if one.control not in manual
    ]


def _service_problems(policy: Policy) -> list[str]:
    if policy.managed_service is None:
        return []
    kept = {"broker_configs": BROKER_KEYS, "topic_configs": TOPIC_KEYS}
    return [
        f"tiers.yaml: managed_service.hides: {dataset}.{key} is not a setting that snapshots keep: correct its name, or remove it"
        for dataset, keys in kept.items()
        for key in sorted(policy.managed_service.settings(dataset) - keys)
    ]


def _framework_problems(policy: Policy, controls: "dict[str, Control]") -> list[str]:
    problems = []
    for framework in policy.frameworks:
        for requirement in framework.requirements:
            unknown = [code for code in requirement.supported_by if code not in controls]
            if unknown:
                where = f"frameworks/{framework.id}.yaml: {requirement.id}: supported_by"
                problems.append(f"{where}: {', '.join(unknown)} not in the catalogue: correct the code, or add --controls with its folder")
    return problems
