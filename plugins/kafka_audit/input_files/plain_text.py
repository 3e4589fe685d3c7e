"""Texts of control and policy files are data: nothing that reads them later may find something to replace in them."""

import re
from collections.abc import Iterator

_MOST_PROBLEMS = 10
_LONGEST_KEY = 80
_OF_CLIENT = re.compile(r"clients\.[0-9]+\.settings\..*", re.DOTALL)


def unfit_texts(value: object) -> list[str]:
    """The texts of a YAML value that are refused, keys too, as lines that begin with the field; the first ten.

    Refused is ``${``, which shells, Java clients and Spark replace by environment variables and other values of their own, and what
    cannot be written as UTF-8.
    """
    found = []
    for field, text in _texts(value, ""):
        if "${" in text:
            # A client's value that is known only when it starts cannot be written here; as a file, its settings are taken as they are.
            inline = _OF_CLIENT.fullmatch(field)
            advice = "remove the setting, or name a settings_file" if inline else "write the text itself ($NAME in a command)"
            found.append(f"{field}: holds ${{, which programs replace by values of their environment; {advice}")
        elif not _is_unicode(text):
            found.append(f"{field}: holds half of a surrogate pair, which is no character; write the character itself")
        if len(found) == _MOST_PROBLEMS:
            break
    return found


def _texts(value: object, field: str) -> Iterator[tuple[str, str]]:
    """Every text with its field; a part that the file names twice is read once, so that no alias makes it long or endless."""
    waiting, seen = [(value, field)], set()
    while waiting:
        one, where = waiting.pop()
        if isinstance(one, str):
            yield where or "(whole file)", one
        elif isinstance(one, dict | list) and id(one) not in seen:
            seen.add(id(one))
            parts = list(one.items() if isinstance(one, dict) else enumerate(one))
            if isinstance(one, dict):
                waiting += [(key, where) for key in one]
            waiting += [(part, f"{where}.{_shown(key)}".lstrip(".")) for key, part in reversed(parts)]


def _shown(key: object) -> str:
    text = str(key)
    return text if len(text) <= _LONGEST_KEY and "${" not in text and _is_unicode(text) else "..."


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
