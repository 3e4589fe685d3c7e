"""What a control says about repairing a failure: text, commands that only look, and commands that change something.

The values of a changing command are computed from the failing row, so that pasting it cannot replace a strict setting by a weaker one.
"""

import re
from collections.abc import Collection, Iterator
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from kafka_audit.catalogue.shell_template import PLACEHOLDER, takes_quoted_names

NAMES = {"topic": "topic", "partition": "partition", "group": "group_id", "broker": "broker_id"}
"""The placeholders that every row fills, and the columns they are taken from."""

_ANY_PLACEHOLDER = re.compile(r"\{([A-Za-z0-9_]+)\}")
_CHANGING = frozenset(
    {
        *("--alter", "--execute", "--create", "--delete", "--remove", "--add", "--reset-offsets", "--delete-offsets", "--election-type"),
        *("upgrade", "downgrade", "disable", "abort"),
    }
)
_ONE_COMMAND = re.compile(r"[a-z][a-z0-9._-]*(?: (?:\"\$[A-Z_]+\"|[A-Za-z0-9._:=/{}-]+))+")
"""A program and its words: nothing that a shell could read as a second command, a file to write or an expansion."""
_ONE_SETTING_STRONGER = re.compile(
    r'kafka-configs\.sh --bootstrap-server "\$BOOTSTRAP" --alter --entity-type \S+ (?:--entity-name \S+|--entity-default) --add-config \S+'
)
"""What may be run without a decision."""
_SETTING = re.compile(r"--(?:add|delete)-config\s+(\S+)")
_ONE_SETTING = re.compile(r"(?:[a-z0-9.]+=)?\{[a-z][a-z0-9_]*\}")

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Change(_Strict):
    """A command that changes something, and what it does. ``decide``: why a person has to decide first; None: it can be run as it is."""

    command: _Text
    does: _Text
    decide: _Text | None = None


class Remediation(_Strict):
    """What to do about a failure.

    ``commands`` only look. ``values`` maps names to SQL on the failing row; a command of ``changes`` whose value is NULL is left out.
    Placeholders are these names, and ``{topic}``, ``{partition}``, ``{group}`` and ``{broker}``.
    """

    text: _Text
    commands: tuple[_Text, ...] = ()
    changes: tuple[Change, ...] = ()
    values: dict[Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=100)], _Text] = {}

    def problems(self, subject: str, columns: Collection[str]) -> list[str]:
        """What is wrong with the commands for rows with these columns, as sentences."""
        known = {name for name, column in NAMES.items() if column in columns}
        return [
            *self._value_problems(),
            *_command_problems("commands", self.commands, subject, known),
            *_command_problems("changes", [change.command for change in self.changes], subject, known | self.values.keys()),
            *self._fixed_settings(),
            *self._more_than_one_command(),
            *(
                f"remediation.commands: {command!r:.80} changes something; write it under changes, with what it does"
                for command in self.commands
                if _CHANGING & set(command.split())
            ),
        ]

    def _value_problems(self) -> Iterator[str]:
        used = {name for change in self.changes for name in PLACEHOLDER.findall(change.command)}
        for name in self.values:
            if name in NAMES:
                yield f"remediation.values: {name} is a name that rows fill themselves; choose another name"
            elif name not in used:
                yield f"remediation.values: {name} is used by no command of changes; write {{{name}}} in one, or remove it"

    def _fixed_settings(self) -> Iterator[str]:
        for change in self.changes:
            for setting in _SETTING.findall(change.command):
                if not _ONE_SETTING.fullmatch(setting):
                    yield (
                        f"remediation.changes: {setting!r:.80} sets a fixed value, which may be weaker than the present one, or several "
                        "settings at once; write one key={name} for each command and compute the value from the row in remediation.values"
                    )

    def _more_than_one_command(self) -> Iterator[str]:
        for change in self.changes:
            if not _ONE_COMMAND.fullmatch(change.command):
                yield (
                    f"remediation.changes: {change.command!r:.80} is not one command (a program, words without quotes "
                    'and variables like "$BOOTSTRAP"), so kafka-audit fix could not print it into a script'
                )
            elif change.decide is None and not _ONE_SETTING_STRONGER.fullmatch(change.command):
                yield (
                    f"remediation.changes: {change.command!r:.80} does more than to set one value of one resource "
                    '(kafka-configs.sh --bootstrap-server "$BOOTSTRAP" --alter --entity-type ... --add-config key={value}): '
                    "write in decide why a person decides"
                )


def _command_problems(field: str, commands: Collection[str], subject: str, known: Collection[str]) -> list[str]:
    used = {name for command in commands for name in _ANY_PLACEHOLDER.findall(command)}
    hint = f"write one of {', '.join(sorted('{' + name + '}' for name in known))}" if known else "this subject fills none"
    found = [f"remediation.{field}: {{{name}}} cannot be filled for subject {subject}; {hint}" for name in sorted(used - set(known))]
    return found + [
        f"remediation.{field}: {command!r:.80} has a placeholder inside of quotes, or beside a back-quote, #, <<, (( or an escape, "
        "where a name could run as a command; write the placeholder as a word of its own: names are quoted when it is filled"
        for command in commands
        if not takes_quoted_names(command)
    ]
