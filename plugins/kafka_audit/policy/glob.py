"""Shell globs on topic names, group ids and resources: matched in linear time here and in Spark, and which of two makes the other useless.

``*`` is any run of characters (newlines too), ``?`` one character, ``[ab]``, ``[a-z]`` and ``[!ab]`` one of a set; a bracket that is not
closed is a character like any other. Names are matched as a whole and in their case, as :func:`fnmatch.fnmatchcase` does.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

_STAR, _ANY = "*", "?"
_SAMPLE = {_STAR: "\x00\x01\x02", _ANY: "\x00"}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Piece:
    """What stands between two stars: a regular expression that Python and Java read alike, and how many characters it matches."""

    regex: re.Pattern[str]
    length: int


def matches(pattern: str, name: str) -> bool:
    """Whether a glob matches a whole name.

    The pieces between stars are sought from left to right, each where it is found first: a later place can make nothing possible that an
    earlier one does not. So nothing is tried twice.
    """
    first, *more = _pieces(pattern)
    start = first.regex.match(name)
    if start is None or not more:
        return start is not None and start.end() == len(name)
    position = start.end()
    for piece in more[:-1]:
        found = piece.regex.search(name, position)
        if found is None:
            return False
        position = found.end()
    place = len(name) - more[-1].length
    return place >= position and more[-1].regex.match(name, place) is not None


def glob_to_regex(pattern: str) -> str:
    """A glob as a regular expression of Java for whole names; what was found for a piece is not sought again (atomic groups)."""
    first, *more = (piece.regex.pattern for piece in _pieces(pattern))
    middle = "".join(f"(?>.*?{piece})" for piece in more[:-1] if piece)
    return rf"^(?s:{first}{middle}{f'.*{more[-1]}' if more else ''})\z"


@lru_cache(maxsize=4096)
def _pieces(pattern: str) -> tuple[_Piece, ...]:
    pieces: list[list[str]] = [[]]
    for token in _tokens(pattern):
        if token == _STAR:
            pieces.append([])
        else:
            pieces[-1].append(_one_character(token))
    return tuple(_Piece(regex=re.compile("".join(piece), re.DOTALL), length=len(piece)) for piece in pieces)


def _tokens(pattern: str) -> Iterator[str]:
    """The parts of a glob: a star, or what matches one character. A character that stands for itself comes with a backslash before it."""
    position, no_set_after = 0, len(pattern)
    while position < len(pattern):
        character = pattern[position]
        end = -1
        if character == "[" and position < no_set_after:
            content = position + 1 + (pattern[position + 1 : position + 2] == "!")
            end = pattern.find("]", content + 1)  # a bracket that comes first belongs to the set
            if end < 0:
                no_set_after = position
        if end >= 0:
            yield pattern[position : end + 1]
        else:
            yield character if character in (_STAR, _ANY) else f"\\{character}"
        position = max(position, end) + 1


def _one_character(token: str) -> str:
    """A token as a regular expression."""
    if token == _ANY:
        return "."
    if token.startswith("\\"):
        return re.escape(token[1])
    negated = token.startswith("[!")
    members = token[2 if negated else 1 : -1]
    found, position = [], 0
    while position < len(members):
        first, last = members[position], members[position]
        is_range = members[position + 1 : position + 2] == "-" and position + 2 < len(members)
        if is_range:
            last = members[position + 2]
        position += 3 if is_range else 1
        if first <= last:  # a range the wrong way round holds nothing
            found.append(f"{re.escape(first)}-{re.escape(last)}" if is_range else re.escape(first))
    if not found:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(found)}]"


def covers(earlier: str, later: str) -> bool:
    """Whether every name that ``later`` matches is matched by ``earlier`` already; False also where that cannot be told."""
    return matches(earlier, _sample(later))


@lru_cache(maxsize=4096)
def _sample(pattern: str) -> str:
    """A name that a glob matches and that other globs match by their wildcards only."""
    return "".join(token[1] if token.startswith("\\") else _SAMPLE.get(token, "\x00") for token in _tokens(pattern))


def unreachable(patterns: list[str]) -> list[tuple[str, str]]:
    """The patterns of an ordered list that can never decide, each with the earlier one that covers it."""
    found = []
    for index, later in enumerate(patterns):
        earlier = next((one for one in patterns[:index] if covers(one, later)), None)
        if earlier is not None:
            found.append((later, earlier))
    return found
