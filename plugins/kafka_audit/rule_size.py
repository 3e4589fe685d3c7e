"""How much a rule may build: an upper bound, found without running it.

Whatever a part of a rule gives is at most ``times`` as large as the largest value of its row, plus ``plus`` characters that stand in the
rule itself. Text counts its characters, a number forty, and a list or a map one for each element and what it holds. No function of
kafka_audit.rule_words gives more than its arguments hold together, but those that are named here.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from sqlglot import exp

from kafka_audit.rule_words import RuleSqlError

_MOST_TIMES = 2_000
_MOST_PLUS = 50_000
_LONGEST_SEPARATOR = 20
_MOST_DIGITS = 20
_SEPARATOR = re.compile(r"[^\\.\[\]{}()*+?^$|]+")  # split() takes a regular expression
_PATTERN = re.compile(r"%?[^%_\\']*%?|[^%_\\']+%[^%_\\']+")  # what Spark compares without a regular expression
_NUMBERS = frozenset({exp.DataType.Type.INT, exp.DataType.Type.BIGINT, exp.DataType.Type.DOUBLE, exp.DataType.Type.BOOLEAN})
_GIVE_NUMBERS = (
    *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between, exp.Like),
    *(exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Abs, exp.Ceil, exp.Floor, exp.Round, exp.Sign),
    *(exp.Length, exp.StartsWith, exp.EndsWith, exp.Contains, exp.StrPosition, exp.ArraySize, exp.ArrayContains, exp.ArrayPosition),
    *(exp.Exists, exp.MapContainsKey, exp.Boolean, exp.Null),
)
_ANONYMOUS_NUMBERS = frozenset({"isnull", "isnotnull", "bround", "pmod", "cardinality", "arrays_overlap", "forall"})
_CHOOSE = (exp.Case, exp.If, exp.Coalesce, exp.Nvl2, exp.Nullif, exp.Least, exp.Greatest)


class Size(NamedTuple):
    """At most ``times`` the largest value of the row, plus ``plus`` characters."""

    times: int
    plus: int

    def scaled(self, factor: int) -> "Size":
        return Size(self.times * factor, self.plus * factor)


_OF_VALUE = Size(1, 0)
_OF_NUMBER = Size(0, 40)
_OF_FORMATTED = Size(0, 600)  # the largest double, with commas
TypeOf = Callable[[exp.Column], exp.DataType]


def check_size(tree: exp.Expression, type_of: TypeOf) -> None:
    """RuleSqlError when any part of the expression could build too much; ``type_of`` gives a column's type."""
    for node in tree.walk():
        _check_arguments(node, type_of)
    _Bound(type_of).of(tree)


def _check_arguments(node: exp.Expr, type_of: TypeOf) -> None:
    """Arguments on which the bound stands must be written out."""
    if isinstance(node, exp.Like) and not _matches(_PATTERN, node.expression):
        raise RuleSqlError("holds LIKE with another pattern than 'x', 'x%', '%x', '%x%' or 'x%y'; use several, or split()")
    if isinstance(node, exp.RegexpSplit) and (not _matches(_SEPARATOR, node.expression) or node.args.get("limit")):
        raise RuleSqlError("splits by a pattern; write the separator as text of plain characters, like split(x, ',')")
    for separator in _separators(node):
        if not (isinstance(separator, exp.Literal) and separator.is_string and len(separator.this) <= _LONGEST_SEPARATOR):
            raise RuleSqlError(f"joins with a computed or long separator; write it as text of at most {_LONGEST_SEPARATOR} characters")
    digits = _digits(node)
    if digits is not None and not (isinstance(digits, exp.Literal) and not digits.is_string and _few(digits.this)):
        raise RuleSqlError(f"rounds or formats to a computed number of digits; write a whole number from 0 to {_MOST_DIGITS}")
    if isinstance(node, exp.Lambda):
        for column in node.this.find_all(exp.Column):
            kind = type_of(column).this
            if kind not in _NUMBERS and (isinstance(node.parent, exp.Transform) or _is_list(column, type_of)):
                raise RuleSqlError(
                    f"reads {column.sql()} for every element of a list; a lambda reads its own element, and outside of it numbers (in "
                    "filter, exists and forall also text): write other text around the joined list, and compare lists with array_except"
                )


def _matches(pattern: re.Pattern[str], node: exp.Expression) -> bool:
    return isinstance(node, exp.Literal) and node.is_string and pattern.fullmatch(node.this) is not None


def _few(digits: str) -> bool:
    return digits.isdecimal() and int(digits) <= _MOST_DIGITS


def _separators(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.ArrayToString):
        return [part for part in (node.expression, node.args.get("null")) if part is not None]
    return [node.expressions[0]] if isinstance(node, exp.ConcatWs) else []


def _digits(node: exp.Expr) -> exp.Expression | None:
    if isinstance(node, exp.Round | exp.Ceil | exp.Floor):
        found: exp.Expression | None = node.args.get("decimals")
        return found
    if isinstance(node, exp.Anonymous) and node.name.lower() in ("bround", "format_number"):
        return node.expressions[1] if len(node.expressions) > 1 else None
    return None


def _is_list(column: exp.Column, type_of: TypeOf) -> bool:
    """Whether a list or a map is read as a whole, and not one entry of it."""
    entry = isinstance(column.parent, exp.Bracket) and column.parent.this is column
    return not entry and type_of(column).this in (exp.DataType.Type.ARRAY, exp.DataType.Type.MAP)


class _Bound:
    """Finds the size of a node from those of its parts; every part is held against the limits."""

    def __init__(self, type_of: TypeOf) -> None:
        self._type_of = type_of

    def of(self, node: exp.Expression) -> Size:
        found = self._of(node)
        if found.times > _MOST_TIMES or found.plus > _MOST_PLUS:
            raise RuleSqlError(
                f"can build text or a list {found.times} times as large as the largest value of a row, plus {found.plus} characters; "
                f"allowed are {_MOST_TIMES} times and {_MOST_PLUS}: join and transform less"
            )
        return found

    def _of(self, node: exp.Expression) -> Size:
        if isinstance(node, exp.Literal):
            return Size(0, len(node.this) + 1) if node.is_string else _OF_NUMBER
        if isinstance(node, exp.Column):
            return _OF_NUMBER if self._type_of(node).this in _NUMBERS else _OF_VALUE
        if isinstance(node, exp.Identifier):  # a lambda's variable: all elements together are the list
            return _OF_VALUE
        if isinstance(node, exp.Dot | exp.Lambda):
            return self.of(node.this)
        parts = [self.of(part) for part in node.iter_expressions() if not isinstance(part, exp.DataType)]
        return _of_parts(node, parts)


def _of_parts(node: exp.Expression, parts: list[Size]) -> Size:
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if isinstance(node, exp.Transform):
        of_list, of_element = parts
        return of_list.scaled(of_element.times + of_element.plus)
    if name == "format_number":
        return _OF_FORMATTED
    if isinstance(node, _GIVE_NUMBERS) or name in _ANONYMOUS_NUMBERS or (isinstance(node, exp.Cast) and node.to.this in _NUMBERS):
        return _OF_NUMBER
    if isinstance(node, _CHOOSE):
        return Size(max(part.times for part in parts), max(part.plus for part in parts))
    every = Size(sum(part.times for part in parts), sum(part.plus for part in parts) + len(parts))
    return every.scaled(_factor(node))


def _factor(node: exp.Expression) -> int:
    """How often its arguments' size a function can give."""
    separators = _separators(node)
    if separators:
        return 1 + sum(len(part.this) for part in separators)
    if isinstance(node, exp.Lower | exp.Upper | exp.Cast | exp.RegexpSplit):
        return 3  # one letter can become three, a list's elements are written with commas, and each piece counts as an element
    return 1
