"""Shell globs on topic names and group ids, and which of two makes the other useless."""

import fnmatch
import re

_WILDCARD = re.compile(r"\[[^\]]+\]|[*?]")
_STAR = re.compile(r"\[!?\]?[^\]]*\]|\*")  # or a set, in which a star is a star
_SET = re.compile(r"\\.|\[\^?\]?[^\]]*\]", re.DOTALL)  # in translated text: an escaped character, or a set


def glob_to_regex(pattern: str) -> str:
    """A shell glob as a regular expression that matches whole names, in the syntax that Python and Java share.

    ``*`` any run of characters (newlines too), ``?`` one character, ``[ab]`` and ``[!ab]`` one of a set.
    """
    pieces, start = [], 0
    for found in _STAR.finditer(pattern):
        if found.group() == "*":
            pieces.append(pattern[start : found.start()])
            start = found.end()
    return "^(?s:" + ".*".join(_translated(piece) for piece in [*pieces, pattern[start:]]) + r")\z"


def _translated(piece: str) -> str:
    """A part of a glob without stars, for which Python 3.10 writes groups that Java does not know."""
    text = fnmatch.translate(piece).removeprefix("(?s:").removesuffix(r")\Z").removesuffix(r")\z")
    return _SET.sub(_without_inner_set, text)


def _without_inner_set(found: re.Match[str]) -> str:
    """Java takes a bracket inside of a set for another set."""
    text = found.group()
    return text if text.startswith("\\") else "[" + re.sub(r"(\\.)|\[", lambda one: one.group(1) or r"\[", text[1:], flags=re.DOTALL)


def covers(earlier: str, later: str) -> bool:
    """Whether every name that ``later`` matches is matched by ``earlier`` already; False also where that cannot be told."""
    sample = _WILDCARD.sub(lambda found: "\x00\x01\x02" if found.group() == "*" else "\x00", later)
    return fnmatch.fnmatchcase(sample, earlier)


def unreachable(patterns: list[str]) -> list[tuple[str, str]]:
    """The patterns of an ordered list that can never decide, each with the earlier one that covers it."""
    found = []
    for index, later in enumerate(patterns):
        earlier = next((one for one in patterns[:index] if covers(one, later)), None)
        if earlier is not None:
            found.append((later, earlier))
    return found
