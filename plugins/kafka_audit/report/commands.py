"""Fills the placeholders of a control's commands with names from the cluster and values of the row, so that pasting one runs nothing else.

All are quoted for a POSIX shell. A name with invisible characters is written as ``"$(printf '...')"``, so that a person can read it
before pasting. A name that no shell can pass becomes a variable, such as ``"$GROUP"``.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kafka_audit.catalogue.remediation import NAMES
from kafka_audit.catalogue.shell_template import PLACEHOLDER, takes_quoted_names
from kafka_audit.safe_text import is_invisible

if TYPE_CHECKING:
    from kafka_audit.catalogue.remediation import Remediation

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_OF_SETTING = re.compile(r"--(?:add|delete)-config\s+(?:[a-z0-9.]+=)?\{([a-z][a-z0-9_]*)\}")
_ONE_VALUE = re.compile(r"\[[^\[\]]*\]|[^,\[\]]*")
"""A value that cannot become a second setting: kafka-configs separates settings by commas outside of brackets."""
_LONGEST_NAME = 1000
_FOR_PRINTF = {"'": "'\\''", "\\": "\\\\", "%": "%%"}


def shell_word(text: str) -> str | None:
    """``text`` as one shell word; None if no shell can pass it (NUL), or not readably (a line break at its end, over 1,000 characters)."""
    if "\0" in text or len(text) > _LONGEST_NAME:
        return None
    if not any(is_invisible(character) for character in text):
        return shlex.quote(text)
    if text.endswith("\n"):  # which a shell removes from the output of a command
        return None
    written = []
    for character in text:
        if is_invisible(character):
            written += [f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogatepass")]
        else:
            written.append(_FOR_PRINTF.get(character, character))
    option = "-- " if text.startswith("-") else ""
    return f"\"$(printf {option}'{''.join(written)}')\""


def fill(template: str, known: Mapping[str, str]) -> str | None:
    """Fill the placeholders of one command, in a single pass, so that a name that looks like a placeholder stays a name.

    ``known`` maps placeholders to their text. Without topic, partition, group or broker the command gets a variable in its place; without
    a computed value there is no command, nor with one that would set more than the one setting.
    """
    if any(not _ONE_VALUE.fullmatch(known.get(name, "")) for name in _OF_SETTING.findall(template)):
        return None
    simple = all(_PLAIN.fullmatch(text) for text in known.values())
    usable = known if simple or takes_quoted_names(template) else {}
    words = {name: shell_word(usable[name]) for name in PLACEHOLDER.findall(template) if name in usable}
    if any(words.get(name) is None for name in PLACEHOLDER.findall(template) if name not in NAMES):
        return None
    return PLACEHOLDER.sub(lambda found: words.get(found[1]) or f'"${found[1].upper()}"', template).strip()


def commands_of(remediation: "Remediation", known: Mapping[str, str]) -> Iterator[str]:
    """The commands for one failure: those that look, then those that change something, with a comment where a person decides first."""
    for template in remediation.commands:
        command = fill(template, known)
        if command is not None:
            yield command
    for change in remediation.changes:
        command = fill(change.command, known)
        if command is not None:
            yield f"# Decide first: {' '.join(change.decide.split())}\n{command}" if change.decide else command


def no_change_for(remediation: "Remediation", known: Mapping[str, str]) -> bool:
    """Whether the control knows commands that change something, and none of them can be filled for this failure."""
    return bool(remediation.changes) and all(fill(change.command, known) is None for change in remediation.changes)


def first_and_further(commands: Iterable[Iterable[str]]) -> tuple[list[str], list[str]]:
    """The commands for the first resource, and the further commands for the other resources; each command once, in order."""
    filled = [list(of_resource) for of_resource in commands]
    first = dict.fromkeys(command for of_resource in filled[:1] for command in of_resource)
    return list(first), list(dict.fromkeys(command for of_resource in filled[1:] for command in of_resource if command not in first))
