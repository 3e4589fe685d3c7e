"""Texts of control and policy files are data: nothing that reads them later may find something to replace in them."""

from collections.abc import Iterator

_MOST_PROBLEMS = 10


def unfit_texts(value: object) -> list[str]:
    """The texts of a YAML value that are refused, keys too, as lines that begin with the field; the first ten.

    Refused is ``${``, which shells, Java clients and Spark replace by environment variables and other values of their own, and what
    cannot be written as UTF-8.
    """
    found = []
    for field, text in _texts(value, ""):
        if "${" in text:
            found.append(f"{field}: holds ${{, which programs replace by values of their environment; write the text itself, or $NAME in a command")
        elif not _is_unicode(text):
            found.append(f"{field}: holds half of a surrogate pair, which is no character; write the character itself")
        if len(found) == _MOST_PROBLEMS:
            break
    return found


def _texts(value: object, field: str) -> Iterator[tuple[str, str]]:
    """Every text with its field; lists of lists go as deep as the file does."""
    open_ones: list[tuple[object, str]] = [(value, field)]
    while open_ones:
        one, where = open_ones.pop()
        if isinstance(one, str):
            yield where or "(whole file)", one
        elif isinstance(one, dict):
            for key, part in reversed(one.items()):
                open_ones.append((part, f"{where}.{key}" if where and isinstance(key, str) and "${" not in key else str(key)[:80] if not where else where))
                open_ones.append((key, where))
        elif isinstance(one, list | tuple | set):
            open_ones += [(part, f"{where}.{index}") for index, part in reversed(list(enumerate(one)))]


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
