"""The result of an integrity check: one line per checked item, and the problems among them."""

from dataclasses import dataclass, field
from pathlib import Path

from kafka_audit.errors import IntegrityError

INTACT, CHANGED, GONE, NOTE = "intact", "changed", "gone", "note"


@dataclass(kw_only=True)
class Checked:
    """Collects the results of a check, in order: (state, text). ``problems``: those for which the check fails."""

    lines: list[tuple[str, str]] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    def intact(self, text: str) -> None:
        self.lines.append((INTACT, text))

    def note(self, text: str) -> None:
        """Something a reader must know that is no problem."""
        self.lines.append((NOTE, text))

    def gone(self, text: str) -> None:
        """Something that was deleted, and of which the audit has a copy."""
        self.lines.append((GONE, text))

    def problem(self, text: str, state: str = CHANGED) -> None:
        self.lines.append((state, text))
        self.problems.append(text)

    def counted(self, state: str) -> int:
        return sum(1 for one, _ in self.lines if one == state)

    def raise_problems(self, what: Path | str) -> None:
        """IntegrityError (exit 5) that lists every problem; nothing without one."""
        if self.problems:
            listed = "\n  ".join(self.problems)
            raise IntegrityError(f"{what} cannot be relied on:\n  {listed}\nDo not use it as evidence; restore it from a copy")
