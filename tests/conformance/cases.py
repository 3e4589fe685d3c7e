"""Conformance cases: a state of a cluster, or a history of states, a question about it, and the right answer. They name no tool.

``questions.yaml`` lists the questions; every other YAML file here is a list of cases on one topic (README.md has their fields).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from kafka_audit.input_files.strict_yaml import parse_yaml

HERE = Path(__file__).parent
UNKNOWN = "unknown"
Answer = str | int | float


@dataclass(frozen=True, kw_only=True)
class Case:
    """One case. ``about``: what the question is about (topic, partition, group, broker or client); else the first of the state."""

    id: str
    title: str
    question: str
    answer: Answer
    why: str
    source: str
    state: Mapping[str, Any]
    about: Mapping[str, Any] = field(default_factory=dict)
    tolerance: float = 0
    also_right: Sequence[Answer] = ()
    """Words that say the same less exactly."""

    @cached_property
    def minutes_ago(self) -> tuple[float, ...]:
        """When the samples of the history were taken, oldest first; the last one is now."""
        if "minutes_ago" in self.state:
            return tuple(self.state["minutes_ago"])
        step = self.state.get("every_minutes", 5)
        return tuple(step * age for age in reversed(range(_length(self.state) or 1)))

    @cached_property
    def samples(self) -> list[dict[str, Any]]:
        """The states of the history, oldest first; the last one is the present."""
        plain = {name: value for name, value in self.state.items() if name not in ("minutes_ago", "every_minutes")}
        return [_at(plain, number) for number in range(len(self.minutes_ago))]

    @property
    def now(self) -> dict[str, Any]:
        return self.samples[-1]

    def place(self, kind: str) -> Any:
        """What the question is about: its topic, partition, group, broker or client."""
        if kind in self.about:
            return self.about[kind]
        return 0 if kind == "partition" else next(iter(self.now[f"{kind}s"]))

    def is_right(self, given: Answer) -> bool:
        if isinstance(given, int | float) and isinstance(self.answer, int | float):
            return abs(given - self.answer) <= self.tolerance
        return given in (self.answer, *self.also_right)


def _length(value: Any) -> int | None:
    """The length of the series in a state; they must all be as long."""
    if not isinstance(value, dict):
        return None
    if "over" in value:
        return len(value["over"])
    found = {length for one in value.values() if (length := _length(one)) is not None}
    if len(found) > 1:
        raise ValueError(f"series of different lengths: {sorted(found)}")
    return found.pop() if found else None


def _at(value: Any, number: int) -> Any:
    """A state as it was at one sample: each ``{over: [...]}`` becomes its value of that sample."""
    if isinstance(value, dict):
        return _at(value["over"][number], number) if "over" in value else {name: _at(one, number) for name, one in value.items()}
    return value


def load_questions() -> dict[str, dict[str, Any]]:
    return parse_yaml((HERE / "questions.yaml").read_bytes())


def load_cases() -> list[Case]:
    """All cases in the order of their files, each checked: its id is used once, its question is known, and its series fit together."""
    questions, cases = load_questions(), []
    for path in sorted(HERE.glob("*.yaml")):
        if path.name == "questions.yaml":
            continue
        for fields in parse_yaml(path.read_bytes()):
            try:
                case = Case(**fields)
                if case.question not in questions:
                    raise ValueError(f"no question {case.question}")
                if _length(case.state) not in (None, len(case.minutes_ago)):
                    raise ValueError("minutes_ago and the series differ in length")
            except (TypeError, ValueError) as problem:
                raise ValueError(f"{path.name}, case {fields.get('id')}: {problem}") from problem
            cases.append(case)
    twice = {case.id for case in cases if sum(case.id == other.id for other in cases) > 1}
    if twice:
        raise ValueError(f"ids of several cases: {sorted(twice)}")
    return cases
