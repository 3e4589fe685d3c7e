"""The schema of one control: its rule, its examples, and the texts that people need to act on a failure."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

from kafka_audit.catalogue.remediation import Remediation
from kafka_audit.catalogue.row_types import expand_row, row_problems
from kafka_audit.catalogue.rows import SUBJECTS, Column, Subject
from kafka_audit.catalogue.rule_sql import Reference, references_of
from kafka_audit.catalogue.rule_words import RuleSqlError
from kafka_audit.collect.config_keys import BROKER_KEYS, CONTROLLER_KEYS, TOPIC_KEYS
from kafka_audit.collect.datasets import DATASETS
from kafka_audit.findings import EvidenceClass, Severity, Status

PARAMETERS = "parameters"
"""The column in which a rule finds its parameters."""

_SQL_PREFIX = "sql:"
_REQUIRED_EXAMPLES = (Status.PASS, Status.FAIL, Status.NOT_ASSESSED)

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Parameter(_Strict):
    """A number in a rule that a tier of the policy may set; looser than the default is printed with every result it judged."""

    default: int | float
    stricter: Literal["lower", "higher"]
    meaning: _Text

    @field_validator("default", mode="before")
    @classmethod
    def _is_a_number(cls, value: object) -> object:
        # A number in a YAML file is finite and has 64 bits at most (kafka_audit.input_files.strict_yaml).
        if type(value) not in (int, float):
            raise ValueError("is not a number: write one without quotes")
        return value

    @property
    def type(self) -> str:
        """The Spark SQL type of the value."""
        return "bigint" if isinstance(self.default, int) else "double"

    def loosened(self, value: float) -> bool:
        """Whether a value is less strict than the default."""
        return value > self.default if self.stricter == "lower" else value < self.default


class Example(_Strict):
    """One wide row and the verdict it must get. Columns that are left out are NULL; ``reason`` is a part of the expected reason.

    ``values``: the values that the commands of the remediation must get, as text; the others must be NULL.
    ``first_audit``: the row is judged as in the first audit of its cluster.
    """

    name: _Text
    row: dict[str, Any]
    status: Status
    reason: str | None = None
    values: dict[str, str] | None = None
    first_audit: bool = False


class Control(_Strict):
    """One rule with all that people need to act on it; ``references`` are documents, :attr:`reads` is what the rule reads.

    ``parameters`` are read in the rule as ``parameters.<name>``. ``evidence_of_row`` is SQL for the evidence class of one row, where it
    is not the same for all; NULL stands for ``evidence``. ``baseline_when`` is SQL that is true where nothing but earlier snapshots is
    missing for a verdict: in the first audit of a cluster such a row is not applicable, in any later one it is not assessed.
    ``undeclared_when`` is SQL that is true where nothing but an owner's declaration is missing: such a row is not applicable, because
    PRD-05 asks for all these declarations in one result.
    """

    id: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$")]
    code: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}-\d{2}$")]
    title: _Text
    subject: _Text
    severity: Severity
    evidence: EvidenceClass
    evidence_of_row: _Text | None = None
    parameters: dict[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)], Parameter] = {}
    needs: tuple[str, ...] = Field(min_length=1)
    applies_when: _Text | None = None
    pass_when: _Text
    observed: _Text
    expected: _Text
    not_assessed_reason: _Text | None = None
    baseline_when: _Text | None = None
    undeclared_when: _Text | None = None
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
        unknown = sorted(set(value) - DATASETS.keys())
        if unknown:
            raise ValueError(f"{', '.join(unknown)} is not a dataset: write some of {', '.join(sorted(DATASETS))}")
        return value

    @model_validator(mode="after")
    def _is_coherent(self) -> "Control":
        found = [*self._sql_problems(), *self._example_problems(), *self.remediation.problems(self.subject, self.wide_row.columns)]
        if found:
            raise ValueError("\n".join(found))
        return self

    @property
    def wide_row(self) -> Subject:
        """The subject whose rows the rule reads, with the control's own parameters as one more column."""
        subject = SUBJECTS[self.subject]
        if not self.parameters:
            return subject
        fields = ",".join(f"{name}:{parameter.type}" for name, parameter in self.parameters.items())
        column = Column(type=f"struct<{fields}>", meaning="the control's parameters, as the policy's tier sets them")
        return replace(subject, columns={**subject.columns, PARAMETERS: column})

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
            "evidence_of_row": self.evidence_of_row,
            **{f"remediation.values.{name}": sql for name, sql in self.remediation.values.items()},
            "baseline_when": self.baseline_when,
            "undeclared_when": self.undeclared_when,
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
        shown = [sql for name, sql in self.expressions.items() if name in ("observed", "expected", "baseline_when", "undeclared_when")]
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
        found += [
            f"examples.{example.name}: values: {name} is no name of remediation.values"
            for example in self.examples
            for name in sorted((example.values or {}).keys() - self.remediation.values.keys())
        ]
        filled = {name for example in self.examples if example.status is Status.FAIL for name in example.values or {}}
        found += [
            f"examples: no failing one has a value for remediation.values.{name}" for name in self.remediation.values if name not in filled
        ]
        set_aside = [example for example in self.examples if example.status is Status.NOT_APPLICABLE]
        if self.baseline_when is not None and not any(example.first_audit for example in set_aside):
            found.append("examples: baseline_when has none with first_audit: true and status not_applicable; add one")
        if self.undeclared_when is not None and not any(example.reason for example in set_aside):
            found.append("examples: undeclared_when has none with status not_applicable and a reason; add one")
        names = Counter(example.name for example in self.examples)
        return found + [f"examples: {name!r} stands there twice; give each its own name" for name, count in names.items() if count > 1]

    def example_row(self, example: Example) -> dict[str, Any]:
        """The full wide row of an example: every column of the subject, None where the example is silent; parameters by default."""
        row = expand_row(self.wide_row, example.row)
        if self.parameters:
            row[PARAMETERS] = {name: one.default for name, one in self.parameters.items()} | (example.row.get(PARAMETERS) or {})
        return row


def _unkept_keys(subject: Subject, read: Sequence[Reference]) -> list[str]:
    """Configuration keys that no snapshot holds: a rule on one would never be assessed, and nobody would know why."""
    kept = {
        "config": BROKER_KEYS if subject.name == "broker" else TOPIC_KEYS,
        "broker_values": BROKER_KEYS,
        "controller_values": CONTROLLER_KEYS,
    }
    unkept = [one for one in read if one.column in kept and one.key not in kept[one.column]]
    return [f"reads {one.label}, a key that snapshots do not keep; write one of {', '.join(sorted(kept[one.column]))}" for one in unkept]
