"""Shell globs on topic names, group ids and resources: linear-time matching in Python and Spark, and finding rules that can never match.

``*`` is any run of characters (newlines too), ``?`` one character, ``[ab]``, ``[a-z]`` and ``[!ab]`` one of a set; a bracket that is not
closed is an ordinary character. The whole name must match, case-sensitively, as with :func:`fnmatch.fnmatchcase`.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

_Rule = TypeVar("_Rule")
_STAR, _ANY = "*", "?"
_SAMPLE = {_STAR: "\x00\x01\x02", _ANY: "\x00"}


@dataclass(frozen=True, kw_only=True, slots=True)
class _Piece:
    """The text between two stars, as a regular expression that is the same in Python and Java, and the number of characters it matches."""

    regex: re.Pattern[str]
    length: int


def matches(pattern: str, name: str) -> bool:
    """Whether a glob matches a whole name.

    The pieces between stars are searched for from left to right, and the first occurrence is taken: taking a later one could only leave
    less of the name for the next pieces. So nothing is tried twice.
    """
    if pattern == _STAR:  # the pattern of most rules
        return True
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
    """A glob as a Java regular expression for whole names; atomic groups keep it from backtracking."""
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
    """The parts of a glob: a star, or something that matches one character. A literal character is returned with a backslash before it."""
    position, no_set_after = 0, len(pattern)
    while position < len(pattern):
        character = pattern[position]
        end = -1
        if character == "[" and position < no_set_after:
            content = position + 1 + (pattern[position + 1 : position + 2] == "!")
            end = pattern.find("]", content + 1)  # a closing bracket in first place belongs to the set
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
        if first <= last:  # a reversed range such as z-a matches nothing
            found.append(f"{re.escape(first)}-{re.escape(last)}" if is_range else re.escape(first))
    if not found:
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{''.join(found)}]"


def covers(earlier: str, later: str) -> bool:
    """Whether ``earlier`` already matches every name that ``later`` matches; False also if that cannot be decided."""
    return matches(earlier, _sample(later))


@lru_cache(maxsize=4096)
def _sample(pattern: str) -> str:
    """A name that this glob matches, and that other globs can match only with their wildcards."""
    return "".join(token[1] if token.startswith("\\") else _SAMPLE.get(token, "\x00") for token in _tokens(pattern))


def hidden(rules: Sequence[_Rule], hides: Callable[[_Rule, _Rule], bool]) -> tuple[_Rule, _Rule] | None:
    """The first of ordered rules that can never be the first match, and the earlier one that hides it; None if each can."""
    return next(((later, earlier) for index, later in enumerate(rules) for earlier in rules[:index] if hides(earlier, later)), None)
