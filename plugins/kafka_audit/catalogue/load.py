"""Loads controls: each is one YAML file, checked completely before any rule runs, so that none is silently skipped."""

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError

from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.rule import Rule, rule_set_sha256, rules_of
from kafka_audit.errors import ConfigurationError
from kafka_audit.input_files.yaml_file import explain, read_model
from kafka_audit.shipped import shipped_folder

_FILE = re.compile(r"[a-z][a-z0-9_]*\.yaml")
_KNOWN: dict[bytes, Control] = {}
"""Controls by the bytes of their files: several steps of one process load the same catalogue, and to read it takes half a second."""


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """All controls, ordered by code, and the sha256 over the content of their files."""

    controls: tuple[Control, ...]
    sha256: str

    @cached_property
    def rules(self) -> dict[str, Rule]:
        """The rule of every control, by control id."""
        return rules_of(self.controls)

    @property
    def rule_set_sha256(self) -> str:
        """The hash of all rules. Unlike ``sha256`` it stays the same when only texts or examples of controls change."""
        return rule_set_sha256(self.rules)

    def of_subject(self, subject: str) -> tuple[Control, ...]:
        """The controls that judge one subject, ordered by code."""
        return tuple(control for control in self.controls if control.subject == subject)

    def of_part(self, part: str) -> tuple[Control, ...]:
        """The controls that one part of a verification judges, ordered by code."""
        return tuple(control for control in self.controls if control.wide_row.part == part)


def shipped_controls() -> Path:
    """The folder of the controls that come with the product."""
    return shipped_folder("spark_jobs/controls")


def load_catalogue(folders: Sequence[Path] | None = None) -> Catalogue:
    """Load every control of the folders (default: the shipped one; a folder named twice is read once).

    ConfigurationError (exit 2) lists all problems of all files: file, field, reason and what to write instead.
    """
    places = list(dict.fromkeys(_resolved(folder) for folder in (folders if folders is not None else [shipped_controls()])))
    problems: list[str] = []
    read: list[tuple[Path, Control]] = []
    digest = hashlib.sha256()
    for path in sorted((path for folder in places for path in _control_files(folder, problems)), key=lambda path: (path.name, str(path))):
        try:
            control, raw = read_model(path, Control, within=path.parent, explained=_explained, known=_KNOWN)
        except ConfigurationError as problem:
            problems.append(str(problem))
            continue
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(raw).digest())
        read.append((path, control))
        if control.id != path.stem:
            problems.append(f"{path}: id: is {control.id!r}; write {path.stem!r}, the file's name, or rename the file")
    problems += _twice(read, "id", lambda control: control.id) + _twice(read, "code", lambda control: control.code)
    problems += _shared_parameters(read)
    if not read and not problems:
        problems.append(
            f"{', '.join(map(str, places)) or 'no folder'}: holds no control (*.yaml), so nothing could be verified; name one that does"
        )
    if problems:
        raise ConfigurationError("the control catalogue is not valid:\n  " + "\n  ".join(problems))
    return Catalogue(controls=tuple(sorted((control for _, control in read), key=lambda control: control.code)), sha256=digest.hexdigest())


def _resolved(folder: Path) -> Path:
    try:
        return folder.resolve()
    except (OSError, ValueError, RuntimeError) as problem:  # too long, a NUL in it, links in a circle
        raise ConfigurationError(f"{str(folder)[:200]!r}: is no name of a folder; name a folder of control files") from problem


def _control_files(folder: Path, problems: list[str]) -> list[Path]:
    """The control files of a folder; anything else in it that could be meant as one is a problem."""
    try:
        found = sorted(folder.iterdir())
    except OSError as problem:
        problems.append(f"{folder}: is not a folder that can be read ({problem.strerror}); name a folder of control files")
        return []
    files, others = [], 0
    for path in found:
        if path.name.startswith((".", "__")) or path.name == "README.md":
            continue
        if _FILE.fullmatch(path.name) and path.is_file():
            files.append(path)
        else:
            others += 1
    if others:
        # Counted and not named: the folder may be any that this process can read, and its names none of the caller's business.
        problems.append(
            f"{folder}: holds {others} entries that are not control files and would be left out: rename each to <id>.yaml, "
            "with an id of lower-case letters, digits and _, or move it away"
        )
    return files


def _explained(path: Path, problem: ValidationError) -> list[str]:
    """pydantic's problems as lines; those that the control's own checks found already name their field."""
    if problem.errors()[0]["type"] == "model_type":
        return [f"{path}: (whole file): must be a mapping of fields; write `id: {path.stem}` and the other fields"]
    lines = []
    own = [error for error in problem.errors() if error["type"] == "value_error" and not error["loc"]]
    for error in own:
        lines += [f"{path}: {line}" for line in error["msg"].removeprefix("Value error, ").split("\n")]
    if len(own) < problem.error_count():
        lines += [line for line in explain(path, problem) if ": (whole file): " not in line]
    return lines


def _twice(read: list[tuple[Path, Control]], field: str, value_of: Callable[[Control], str]) -> list[str]:
    files: dict[str, list[str]] = {}
    for path, control in read:
        files.setdefault(value_of(control), []).append(str(path))
    return [
        f"{' and '.join(paths)}: {field}: {value!r} is used by each; give every control its own"
        for value, paths in files.items()
        if len(paths) > 1
    ]


def _shared_parameters(read: list[tuple[Path, Control]]) -> list[str]:
    """Parameters of one subject that two controls name alike: one row holds them all, so one of the two would get the other's value."""
    owners: dict[tuple[str, str], Path] = {}
    problems = []
    for path, control in read:
        for name in control.parameters:
            owner = owners.setdefault((control.subject, name), path)
            if owner != path:
                problems.append(f"{path}: parameters.{name}: {owner} names one like it for the same subject; choose another name")
    return problems
