"""Fills the placeholders of a control's commands with names from the cluster, so that pasting one runs nothing else.

Names are quoted for a POSIX shell. A name with invisible characters is written as ``$'...'`` (bash, zsh, ksh), so that a person can
read it before pasting. A name that no shell can pass becomes a variable, such as ``"$GROUP"``.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from kafka_audit.catalogue.shell_template import PLACEHOLDER, takes_quoted_names
from kafka_audit.safe_text import is_invisible

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
_LONGEST_NAME = 1000


def shell_word(text: str) -> str | None:
    """``text`` as one shell word; None if no shell can pass it (NUL) or it is too long to read (over 1,000 characters)."""
    if "\0" in text or len(text) > _LONGEST_NAME:
        return None
    if not any(is_invisible(character) for character in text):
        return shlex.quote(text)
    written = []
    for character in text:
        if character in "'\\":
            written.append("\\" + character)
        elif is_invisible(character):
            written += [f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass")]
        else:
            written.append(character)
    return "$'" + "".join(written) + "'"


def fill(template: str, names: Mapping[str, str]) -> str:
    """Fill the placeholders of one command, in a single pass, so that a name that looks like a placeholder stays a name.

    ``names`` maps topic, partition, group and broker to their text; a placeholder without a name becomes a variable.
    """
    simple = all(_PLAIN.fullmatch(name) for name in names.values())
    usable = names if simple or takes_quoted_names(template) else {}

    def word(found: re.Match[str]) -> str:
        name = usable.get(found[1])
        quoted = shell_word(name) if name is not None else None
        return quoted if quoted is not None else f'"${found[1].upper()}"'

    return PLACEHOLDER.sub(word, template).strip()


def fill_all(templates: Sequence[str], resources: Iterable[Mapping[str, str]]) -> tuple[list[str], list[str]]:
    """The commands for the first resource, and the further commands for the other resources; each command once, in order."""
    filled = [[fill(template, names) for template in templates] for names in resources]
    first = dict.fromkeys(command for commands in filled[:1] for command in commands)
    return list(first), list(dict.fromkeys(command for commands in filled[1:] for command in commands if command not in first))
