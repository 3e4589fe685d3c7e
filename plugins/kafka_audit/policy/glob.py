"""Shell globs on topic names and group ids, and which of two makes the other useless."""

import fnmatch
import re

_WILDCARD = re.compile(r"\[[^\]]+\]|[*?]")


def glob_to_regex(pattern: str) -> str:
    """A shell glob as a regular expression that matches whole names, in the syntax that Python and Java share.

    ``*`` any run of characters (newlines too), ``?`` one character, ``[ab]`` and ``[!ab]`` one of a set.
    """
    translated = fnmatch.translate(pattern)
    return "^(?s:" + translated.removeprefix("(?s:").removesuffix(r")\Z").removesuffix(r")\z") + r")\z"


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
