"""Loads controls: each is one YAML file that is checked as a whole before any rule runs, so that none is skipped in silence."""

import hashlib
import importlib.util
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator, model_validator

from kafka_audit.collect.config_keys import BROKER_KEYS, TOPIC_KEYS
from kafka_audit.errors import ConfigurationError
from kafka_audit.findings import EvidenceClass, Severity, Status
from kafka_audit.policy import explain, load_yaml
from kafka_audit.row_types import expand_row, row_problems
from kafka_audit.rule_sql import Reference, RuleSqlError, references_of
from kafka_audit.subjects import SUBJECTS, Subject

DATASETS = frozenset(
    {
        "cluster",
        "brokers",
        "broker_configs",
        "topics",
        "partitions",
        "reassignments",
        "topic_configs",
        "quorum",
        "log_dirs",
        "replica_sizes",
    }
    | {"groups", "members", "committed_offsets", "offsets", "producers", "transactions", "errors", "capabilities"}
)
"""The datasets of a snapshot, as ``needs`` names them."""

_SQL_PREFIX = "sql:"
_REQUIRED_EXAMPLES = (Status.PASS, Status.FAIL, Status.NOT_ASSESSED)
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]+)\}")
_PLACEHOLDER_COLUMNS = {"topic": "topic", "partition": "partition", "group": "group_id", "broker": "broker_id"}

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Remediation(_Strict):
    """What to do about a failure; in ``commands`` the names ``{topic}``, ``{partition}``, ``{group}`` and ``{broker}`` are filled."""

    text: _Text
    commands: tuple[_Text, ...] = ()


class Example(_Strict):
    """One wide row and the verdict it must get. Columns that are left out are NULL; ``reason`` is a part of the expected reason."""

    name: _Text
    row: dict[str, Any]
    status: Status
    reason: str | None = None


class Control(_Strict):
    """One rule with all that people need to act on it; ``references`` are documents, :attr:`reads` is what the rule reads."""

    id: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    code: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}-\d{2}$")]
    title: _Text
    subject: _Text
    severity: Severity
    evidence: EvidenceClass
    needs: tuple[str, ...] = Field(min_length=1)
    applies_when: _Text | None = None
    pass_when: _Text
    observed: _Text
    expected: _Text
    not_assessed_reason: _Text | None = None
    rationale: _Text
    failure_scenario: _Text
    remediation: Remediation
    remediation_impact: _Text
    references: tuple[_Text, ...] = ()
    false_positives: tuple[_Text, ...] = ()
    examples: tuple[Example, ...]

    @field_validator("false_positives", "references", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("subject")
    @classmethod
    def _subject_exists(cls, value: str) -> str:
        if value not in SUBJECTS:
            raise ValueError(f"is not a subject: write one of {', '.join(SUBJECTS)}")
        return value

    @field_validator("needs")
    @classmethod
    def _needs_exist(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = sorted(set(value) - DATASETS)
        if unknown:
            raise ValueError(f"{', '.join(unknown)} is not a dataset: write some of {', '.join(sorted(DATASETS))}")
        return value

    @model_validator(mode="after")
    def _is_coherent(self) -> "Control":
        found = [*self._sql_problems(), *self._example_problems(), *self._command_problems()]
        if found:
            raise ValueError("\n".join(found))
        return self

    @property
    def wide_row(self) -> Subject:
        """The subject whose rows the rule reads."""
        return SUBJECTS[self.subject]

    @property
    def expected_sql(self) -> str | None:
        """The SQL of ``expected`` when it is computed for each row, else None."""
        return self.expected[len(_SQL_PREFIX) :].strip() if self.expected.startswith(_SQL_PREFIX) else None

    @property
    def expressions(self) -> dict[str, str]:
        """Every SQL expression of the control by its field."""
        fields = {
            "applies_when": self.applies_when,
            "pass_when": self.pass_when,
            "observed": self.observed,
            "expected": self.expected_sql,
            "not_assessed_reason": self.not_assessed_reason,
        }
        return {name: sql for name, sql in fields.items() if sql is not None}

    @property
    def decides_on(self) -> tuple[Reference, ...]:
        """What the verdict depends on, in order of first use; a NULL among these explains a verdict of not_assessed."""
        rules = [sql for sql in (self.applies_when, self.pass_when) if sql is not None]
        return tuple(dict.fromkeys(reference for sql in rules for reference in references_of(sql, self.wide_row)))

    @property
    def reads(self) -> tuple[Reference, ...]:
        """Everything the control's expressions read: the evidence that is kept with a finding."""
        shown = [sql for name, sql in self.expressions.items() if name in ("observed", "expected")]
        more = [reference for sql in shown for reference in references_of(sql, self.wide_row)]
        return tuple(dict.fromkeys(reference for reference in (*self.decides_on, *more) if reference.column != "errors"))

    def _sql_problems(self) -> list[str]:
        found = []
        for name, sql in self.expressions.items():
            try:
                read = references_of(sql, self.wide_row)
            except RuleSqlError as problem:
                found.append(f"{name}: {problem}")
                continue
            found += [f"{name}: {line}" for line in _unkept_keys(self.wide_row, read)]
            if name == "pass_when" and not read:
                found.append(
                    f"{name}: reads no column, so its verdict would say nothing; write a condition on {', '.join(self.wide_row.columns)}"
                )
        return found

    def _example_problems(self) -> list[str]:
        found = [f"examples.{example.name}: {line}" for example in self.examples for line in row_problems(self.wide_row, example.row)]
        statuses = {example.status for example in self.examples}
        found += [f"examples: none has status {status.value}; add one" for status in _REQUIRED_EXAMPLES if status not in statuses]
        names = Counter(example.name for example in self.examples)
        return found + [f"examples: {name!r} stands there twice; give each its own name" for name, count in names.items() if count > 1]

    def _command_problems(self) -> list[str]:
        known = {name for name, column in _PLACEHOLDER_COLUMNS.items() if column in self.wide_row.columns}
        used = {name for command in self.remediation.commands for name in _PLACEHOLDER.findall(command)}
        hint = f"write one of {', '.join(sorted('{' + name + '}' for name in known))}" if known else "this subject fills none"
        return [f"remediation.commands: {{{name}}} cannot be filled for subject {self.subject}; {hint}" for name in sorted(used - known)]

    def example_row(self, example: Example) -> dict[str, Any]:
        """The full wide row of an example: every column of the subject, None where the example is silent."""
        return expand_row(self.wide_row, example.row)


def _unkept_keys(subject: Subject, read: Sequence[Reference]) -> list[str]:
    """Configuration keys that no snapshot holds: a rule on one would never be assessed, and nobody would know why."""
    kept = {"config": BROKER_KEYS if subject.name == "broker" else TOPIC_KEYS, "broker_values": BROKER_KEYS}
    unkept = [one for one in read if one.column in kept and one.key not in kept[one.column]]
    return [f"reads {one.label}, a key that snapshots do not keep; write one of {', '.join(sorted(kept[one.column]))}" for one in unkept]


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """All controls, ordered by code, and the sha256 over the content of their files."""

    controls: tuple[Control, ...]
    sha256: str

    def of_subject(self, subject: str) -> tuple[Control, ...]:
        """The controls that judge one subject, ordered by code."""
        return tuple(control for control in self.controls if control.subject == subject)

    def of_job(self, job: str) -> tuple[Control, ...]:
        """The controls that one job judges, ordered by code."""
        return tuple(control for control in self.controls if control.wide_row.job == job)


def shipped_controls() -> Path:
    """The folder of the controls that come with the product."""
    found = importlib.util.find_spec("spark_jobs")
    if found is None or not found.submodule_search_locations:
        raise ConfigurationError("the package spark_jobs is not installed: run `make install` in the project's folder")
    return Path(found.submodule_search_locations[0]) / "controls"


def load_catalogue(folders: Sequence[Path] | None = None) -> Catalogue:
    """Load every control of the folders (default: the shipped one; a folder named twice is read once).

    ConfigurationError (exit 2) lists all problems of all files: file, field, reason and what to write instead.
    """
    places = list(dict.fromkeys(folder.resolve() for folder in (folders if folders is not None else [shipped_controls()])))
    problems: list[str] = []
    read: list[tuple[Path, Control]] = []
    digest = hashlib.sha256()
    for path in sorted((path for folder in places for path in _control_files(folder, problems)), key=lambda path: (path.name, str(path))):
        control, raw = _load(path, problems)
        digest.update(path.name.encode() + b"\0" + hashlib.sha256(raw).digest())
        if control is not None:
            read.append((path, control))
    problems += _twice(read, "id", lambda control: control.id) + _twice(read, "code", lambda control: control.code)
    if not read and not problems:
        problems.append(
            f"{', '.join(map(str, places)) or 'no folder'}: holds no control (*.yaml), so nothing could be verified; name one that does"
        )
    if problems:
        raise ConfigurationError("the control catalogue is not valid:\n  " + "\n  ".join(problems))
    return Catalogue(controls=tuple(sorted((control for _, control in read), key=lambda control: control.code)), sha256=digest.hexdigest())


def _control_files(folder: Path, problems: list[str]) -> list[Path]:
    """The control files of a folder; anything else in it that could be meant as one is a problem."""
    if not folder.is_dir():
        problems.append(f"{folder}: is not a folder; name a folder of control files")
        return []
    files = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith((".", "__")) or path.name == "README.md":
            continue
        if path.is_file() and path.suffix == ".yaml":
            files.append(path)
        else:
            problems.append(f"{path}: is not a control file and would be left out; rename it to <id>.yaml or move it away")
    return files


def _load(path: Path, problems: list[str]) -> tuple[Control | None, bytes]:
    try:
        value, raw = load_yaml(path)
    except ConfigurationError as problem:
        problems.append(str(problem))
        return None, b""
    if not isinstance(value, dict):
        problems.append(f"{path}: (whole file): must be a mapping of fields; write `id: {path.stem}` and the other fields")
        return None, raw
    try:
        control = Control.model_validate(value)
    except ValidationError as problem:
        problems += _explained(path, problem)
        return None, raw
    if control.id != path.stem:
        problems.append(f"{path}: id: is {control.id!r}; write {path.stem!r}, the file's name, or rename the file")
    return control, raw


def _explained(path: Path, problem: ValidationError) -> list[str]:
    """pydantic's problems as lines; those that the control's own checks found already name their field."""
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


__all__ = ["DATASETS", "Catalogue", "Control", "Example", "Remediation", "load_catalogue", "shipped_controls"]
