"""The policy: what an installation demands of its topics and groups, read from ``tiers.yaml`` and ``slas.yaml``.

A folder given by the user replaces the shipped one as a whole. Every file is validated when it is loaded and every
problem in both files is reported at once, with file, field and what to write instead (exit code 2).
"""

import fnmatch
import hashlib
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kafka_audit.errors import ConfigurationError

_Name = Annotated[str, Field(min_length=1, max_length=100)]
_Pattern = Annotated[str, Field(min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Tier(_Strict):
    """What one tier asks of a topic. ``retention_ms``: floor in milliseconds, -1 means unlimited is required."""

    replication_factor: int = Field(ge=1)
    min_insync_replicas: int = Field(ge=1)
    retention_ms: int = Field(ge=-1)

    @model_validator(mode="after")
    def _survives_a_restart(self) -> "Tier":
        if self.min_insync_replicas > self.replication_factor:
            raise ValueError("min_insync_replicas is above replication_factor, so no topic could ever pass: lower it")
        return self


class TopicRule(_Strict):
    """An ordered rule: topics whose name matches the glob belong to the tier; the first match wins."""

    pattern: _Pattern
    tier: _Name


class TierFile(_Strict):
    """The content of ``tiers.yaml``."""

    version: Literal[1]
    default_tier: _Name
    tiers: dict[str, Tier] = Field(min_length=1)
    topics: list[TopicRule] = []
    declared_topics: list[_Name] = []
    declared_groups: list[_Name] = []

    @model_validator(mode="after")
    def _names_exist(self) -> "TierFile":
        known = ", ".join(sorted(self.tiers))
        if self.default_tier not in self.tiers:
            raise ValueError(f"default_tier {self.default_tier!r} is not one of the tiers: write one of {known}")
        for rule in self.topics:
            if rule.tier not in self.tiers:
                raise ValueError(f"topics: pattern {rule.pattern!r} names tier {rule.tier!r}: write one of {known}")
        for field in ("declared_topics", "declared_groups"):
            names: list[str] = getattr(self, field)
            twice = sorted({name for name in names if names.count(name) > 1})
            if twice:
                raise ValueError(f"{field}: {twice} stand there twice: keep one")
        return self


class LagSla(_Strict):
    """A lag SLA: groups whose id matches the glob may be at most ``max_lag_records`` behind, summed over their partitions."""

    pattern: _Pattern
    name: _Name
    max_lag_records: int = Field(ge=0)


class SlaFile(_Strict):
    """The content of ``slas.yaml``."""

    version: Literal[1]
    groups: list[LagSla] = []


class Policy(_Strict):
    """Both files together, and the sha256 over their bytes."""

    tier_file: TierFile
    sla_file: SlaFile
    sha256: str
    folder: Path

    @property
    def tiers(self) -> dict[str, Tier]:
        return self.tier_file.tiers

    @property
    def default_tier(self) -> str:
        return self.tier_file.default_tier

    @property
    def topics(self) -> list[TopicRule]:
        return self.tier_file.topics

    @property
    def declared_topics(self) -> list[str]:
        return self.tier_file.declared_topics

    @property
    def declared_groups(self) -> list[str]:
        return self.tier_file.declared_groups

    @property
    def slas(self) -> list[LagSla]:
        return self.sla_file.groups


def glob_to_regex(pattern: str) -> str:
    """A shell glob as a regular expression that matches whole names, in the syntax that Python and Java share.

    ``*`` any run of characters (newlines too), ``?`` one character, ``[ab]`` and ``[!ab]`` one of a set.
    """
    translated = fnmatch.translate(pattern)
    return "^(?s:" + translated.removeprefix("(?s:").removesuffix(r")\Z").removesuffix(r")\z") + r")\z"


def shipped_policy_folder() -> Path:
    """The folder of the shipped defaults, beside the Great Expectations suites."""
    import expectations  # noqa: PLC0415 - only its location is read; the package imports nothing heavy itself

    return Path(expectations.__path__[0]) / "policy"


class _NoDuplicates(yaml.SafeLoader):
    """PyYAML keeps the last of two equal keys without a word; in a policy that would drop a rule in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Any] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise yaml.constructor.ConstructorError(None, None, f"key {key!r} stands there twice: keep one", key_node.start_mark)
            seen.add(key)
        return super().construct_mapping(node, deep)


def load_yaml(path: Path) -> tuple[Any, bytes]:
    """Parse one YAML file that may not repeat a key; returns the value and the raw bytes. ConfigurationError with line and column."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError as problem:
        raise ConfigurationError(f"{path}: the file is missing") from problem
    except OSError as problem:
        raise ConfigurationError(f"{path}: cannot be read ({problem.strerror})") from problem
    try:
        return yaml.load(raw, Loader=_NoDuplicates), raw  # a SafeLoader
    except (yaml.YAMLError, UnicodeDecodeError) as problem:
        raise ConfigurationError(f"{path}: is not valid YAML: {' '.join(str(problem).split())}") from problem


def explain(path: Path, problem: ValidationError) -> list[str]:
    """One sentence for each problem pydantic found: file, field and fix."""
    lines = []
    for error in problem.errors():
        field = ".".join(str(part) for part in error["loc"]) or "(whole file)"
        message = error["msg"].removeprefix("Value error, ")
        if error["type"] == "extra_forbidden":
            message = "is not a known field: remove it or correct its spelling"
        elif error["type"] == "missing":
            message = "is missing: add it"
        else:
            message = f"{message} (found {error['input']!r:.80})"
        lines.append(f"{path}: {field}: {message}")
    return lines


def load_policy(folder: Path | None = None) -> Policy:
    """Load and check ``tiers.yaml`` and ``slas.yaml`` of a folder (default: the shipped one).

    ConfigurationError (exit 2) lists every problem of both files.
    """
    place = folder or shipped_policy_folder()
    problems: list[str] = []
    parsed: dict[str, Any] = {}
    digest = hashlib.sha256()
    models: dict[str, type[_Strict]] = {"tiers.yaml": TierFile, "slas.yaml": SlaFile}
    for name, model in models.items():
        try:
            value, raw = load_yaml(place / name)
            digest.update(name.encode() + b"\0" + hashlib.sha256(raw).digest())
            parsed[name] = model.model_validate(value)
        except ConfigurationError as problem:
            problems.append(str(problem))
        except ValidationError as problem:
            problems += explain(place / name, problem)
    known = {*models, "README.md"}
    if place.is_dir():
        problems += [
            f"{path}: is not a policy file of this release ({', '.join(models)}): rename or remove it"
            for path in sorted(place.glob("*.y*ml"))
            if path.name not in known
        ]
    if problems:
        raise ConfigurationError("the policy is not valid:\n  " + "\n  ".join(problems))
    return Policy(tier_file=parsed["tiers.yaml"], sla_file=parsed["slas.yaml"], sha256=digest.hexdigest(), folder=place)
