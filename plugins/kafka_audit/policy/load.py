"""Loads a policy folder: checks every file and reports the problems of all files at once (exit code 2)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from kafka_audit.clients.declared import Client, ClientFile
from kafka_audit.clients.settings import effective
from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.fields import Strict
from kafka_audit.input_files.glob import matches
from kafka_audit.input_files.yaml_file import read_model
from kafka_audit.policy.attestations import Attestation, AttestationFile
from kafka_audit.policy.frameworks import Framework
from kafka_audit.policy.managed_service import ManagedService
from kafka_audit.policy.slas import LagSla, SlaFile
from kafka_audit.policy.tiers import GroupRule, History, Tier, TierFile, TopicRule
from kafka_audit.policy.waivers import Waiver, WaiverFile
from kafka_audit.shipped import shipped_folder

_REQUIRED: dict[str, type[Strict]] = {"tiers.yaml": TierFile, "slas.yaml": SlaFile}
_OPTIONAL: dict[str, type[Strict]] = {"clients.yaml": ClientFile, "waivers.yaml": WaiverFile, "attestations.yaml": AttestationFile}
_FRAMEWORKS = "frameworks"
_KNOWN_FRAMEWORKS: dict[bytes, Framework] = {}
"""Framework files that this process has read, by their bytes: they seldom differ, and to parse them is most of what loading takes."""
_LEVELS = ("read_committed", "read_uncommitted")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The content of all files of a policy folder, and the sha256 over their bytes."""

    default_tier: str
    tiers: dict[str, Tier]
    topics: list[TopicRule]
    groups: list[GroupRule]
    declared_topics: list[str]
    declared_groups: list[str]
    approved_principals: list[str]
    managed_service: ManagedService | None
    history: History
    slas: list[LagSla]
    clients: list[Client]
    waivers: list[Waiver]
    attestations: list[Attestation]
    frameworks: tuple[Framework, ...]
    sha256: str
    folder: Path

    def lag_sla(self, group_id: str, topic: str) -> LagSla | None:
        """The first lag SLA whose group pattern, topic pattern and tier match; None if none does."""
        for sla in self.slas:
            if matches(sla.pattern, group_id) and matches(sla.topics, topic) and sla.tier in (None, self._stricter_tier(group_id, topic)):
                return sla
        return None

    def isolation_levels(self) -> dict[str, str]:
        """Consumer group -> isolation.level, as its consumers are declared; without groups whose consumers differ or leave it open."""
        found: dict[str, set[str | None]] = {}
        for client in self.clients:
            if client.kind == "consumer" and client.group is not None:
                setting = effective(client).get("isolation.level")
                found.setdefault(client.group, set()).add(setting.value if setting is not None else None)
        return {group: level for group, levels in found.items() for level in levels if level in _LEVELS and len(levels) == 1}

    def _stricter_tier(self, group_id: str, topic: str) -> str:
        named = {tier or self.default_tier for tier in (_tier(self.groups, group_id), _tier(self.topics, topic))}
        return next(tier for tier in self.tiers if tier in named)


def _tier(rules: Sequence[TopicRule | GroupRule], name: str) -> str | None:
    """The tier of the first rule that matches a name."""
    return next((rule.tier for rule in rules if matches(rule.pattern, name)), None)


def shipped_policy_folder() -> Path:
    """The folder of the shipped defaults, beside the Great Expectations suites."""
    return shipped_folder("expectations/policy")


def load_policy(folder: Path | None = None) -> Policy:
    """Load and check the files of a folder (default: the shipped policy). The folder replaces the shipped policy as a whole.

    ``tiers.yaml`` and ``slas.yaml`` are required; ``clients.yaml``, ``waivers.yaml``, ``attestations.yaml`` and ``frameworks/`` are
    optional. Without ``frameworks/`` the shipped mappings apply; an empty ``frameworks/`` means no mappings.
    ConfigurationError (exit 2) names a folder that does not exist, or lists every problem of all files: file, field and what to write
    instead.
    """
    place = folder or shipped_policy_folder()
    try:
        is_folder = place.is_dir()
    except OSError as problem:  # such as a name that is too long, or a folder above it that may not be entered
        raise ConfigurationError(f"{place}: cannot be read ({problem.strerror}); name a policy folder") from problem
    if not is_folder:
        raise ConfigurationError(f"there is no folder {place}: name a policy folder, with tiers.yaml and slas.yaml")
    problems: list[str] = []
    digest = hashlib.sha256()

    def read(name: str, model: type[Strict], place: Path = place, known: dict[bytes, Any] | None = None) -> Any:  # noqa: ANN401 - of any file
        """A model of that type, or None when it is not valid."""
        try:
            found, raw = read_model(place / name, model, within=place, known=known)
            digest.update(name.encode() + b"\0" + hashlib.sha256(raw).digest())
            if isinstance(found, ClientFile):
                found, settings_sha256 = found.with_settings_files(place)
                digest.update(settings_sha256.encode())
            if isinstance(found, AttestationFile):
                found.check_files(place)
            return found
        except ConfigurationError as problem:
            problems.append(str(problem))
        return None

    files = {**_REQUIRED, **{name: model for name, model in _OPTIONAL.items() if (place / name).exists()}}
    parsed = {name: read(name, model) for name, model in files.items()}
    # Which controls support a requirement does not depend on the installation: a policy without frameworks/ gets the shipped mappings.
    mapped = place if (place / _FRAMEWORKS).is_dir() else shipped_policy_folder()
    names = sorted(path.name for path in (mapped / _FRAMEWORKS).glob("*.yaml"))
    frameworks = [cast(Framework, read(f"{_FRAMEWORKS}/{name}", Framework, mapped, _KNOWN_FRAMEWORKS)) for name in names]
    problems += [
        f"{mapped / _FRAMEWORKS / name}: id: is {one.id!r}; write {Path(name).stem!r}, the file's name, or rename the file"
        for name, one in zip(names, frameworks, strict=True)
        if one is not None and one.id != Path(name).stem
    ]
    problems += _unexpected_files(place)
    tiers: TierFile = parsed["tiers.yaml"]
    slas: SlaFile = parsed["slas.yaml"]
    problems += _unknown_tiers(place, tiers, slas)
    if problems:
        raise ConfigurationError("the policy is not valid:\n  " + "\n  ".join(problems))
    return Policy(
        **{name: value for name, value in tiers if name != "version"},
        slas=slas.groups,
        clients=parsed["clients.yaml"].clients if "clients.yaml" in parsed else [],
        waivers=parsed["waivers.yaml"].waivers if "waivers.yaml" in parsed else [],
        attestations=parsed["attestations.yaml"].attestations if "attestations.yaml" in parsed else [],
        frameworks=tuple(frameworks),
        sha256=digest.hexdigest(),
        folder=place,
    )


def _unknown_tiers(place: Path, tiers: TierFile | None, slas: SlaFile | None) -> list[str]:
    """A message for each SLA whose tier is not in tiers.yaml."""
    if tiers is None or slas is None:
        return []
    known = ", ".join(sorted(tiers.tiers))
    return [
        f"{place / 'slas.yaml'}: groups.{index}.tier: {sla.tier!r} is not one of the tiers: write one of {known}"
        for index, sla in enumerate(slas.groups)
        if sla.tier is not None and sla.tier not in tiers.tiers
    ]


def _unexpected_files(place: Path) -> list[str]:
    """A message for each YAML file of the folder that the policy would ignore, such as one with a misspelt name."""
    if not place.is_dir():
        return []
    known = {*_REQUIRED, *_OPTIONAL}
    names = f"{', '.join(sorted(known))}, {_FRAMEWORKS}/*.yaml"
    found = [path for path in place.glob("*.y*ml") if path.name not in known]
    found += (place / _FRAMEWORKS).glob("*.yml")
    return [f"{path}: is not a policy file of this release ({names}): rename or remove it" for path in sorted(found)]
