"""Computes an upper bound for the size of the values that a rule builds, without running it.

Whatever a part of a rule gives is at most ``times`` as large as the largest value of its row, plus ``plus`` characters that stand in the
rule itself; what a lambda computes is counted for all elements of its list together. Text counts its characters, a number or a NULL forty,
and a list or a map one for each element, key and field, and what it holds. No function of rule_words gives more than its
arguments hold together, but those that are named here. Text is sought by short literals only, so that a search takes a time that grows with
the text alone.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from sqlglot import exp

from kafka_audit.catalogue.rule_words import RuleSqlError

_MOST_TIMES = 100
_MOST_ITEMS = 20  # an element takes more memory than a character
_MOST_SPLIT = 3  # and each character can become one
_MOST_PLUS = 50_000
_LONGEST_SEPARATOR = 20
_LONGEST_SOUGHT = 200
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


_SEARCHES = (exp.Contains, exp.StrPosition, exp.Trim, exp.RegexpSplit, exp.SplitPart, exp.Like)
_COMPARE = (exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between, exp.StartsWith, exp.EndsWith)
"""What reads no more of its larger text than it reads of its smaller one."""


class Size(NamedTuple):
    """At most ``times`` the largest value of the row plus ``plus`` characters, and ``items`` times that value plus ``more`` elements."""

    times: int
    plus: int
    items: int = 0
    more: int = 0

    def for_each_of(self, of_list: "Size") -> "Size":
        """What is computed of each element of a list, all of it together."""
        return Size(
            of_list.times * self.times + of_list.items * self.plus,
            of_list.plus * self.times + of_list.more * self.plus,
            of_list.items * (1 + self.items + self.more),
            of_list.more * (1 + self.items + self.more),
        )

    def with_each(self, characters: int) -> "Size":
        """As one text, with so many characters more at each element."""
        return Size(self.times + self.items * characters, self.plus + (self.more + 1) * characters)


_OF_TEXT = Size(1, 0)
_OF_VALUE = Size(1, 0, 1, 0)
_OF_NUMBER = Size(0, 40)
_OF_CAST = Size(0, 24)  # a 64-bit number: -2.2250738585072014E-308
_OF_FORMATTED = Size(0, 600)  # the largest double, with commas
_IN_BRACKETS = 8  # characters that a list's text has for each element: a comma or an arrow, brackets, null
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
    if isinstance(node, _SEARCHES) and len([part for part in node.iter_expressions() if not _is_short(part)]) > 1:
        raise RuleSqlError(f"seeks a computed or long text; write what is sought as text of at most {_LONGEST_SOUGHT} characters")
    if isinstance(node, exp.RegexpSplit) and (not _matches(_SEPARATOR, node.expression) or node.args.get("limit")):
        raise RuleSqlError("splits by a pattern; write the separator as text of plain characters, like split(x, ',')")
    for separator in _separators(node):
        if not (isinstance(separator, exp.Literal) and separator.is_string and len(separator.this) <= _LONGEST_SEPARATOR):
            raise RuleSqlError(f"joins with a computed or long separator; write it as text of at most {_LONGEST_SEPARATOR} characters")
    digits = _digits(node)
    if digits is not None and not (isinstance(digits, exp.Literal) and not digits.is_string and _few(digits.this)):
        raise RuleSqlError(f"rounds or formats to a computed number of digits; write a whole number from 0 to {_MOST_DIGITS}")
    if isinstance(node, exp.Lambda):
        if isinstance(node.parent, exp.Transform) and node.this.find(exp.Array, exp.ArrayAppend, exp.ArrayPrepend):
            raise RuleSqlError("makes a list of each element; transform elements to text or numbers")
        for column in node.this.find_all(exp.Column):
            if type_of(column).this not in _NUMBERS and not _is_compared(column, node, type_of):
                raise RuleSqlError(
                    f"reads {column.sql()} for every element of a list; a lambda reads its own element, and outside of it numbers (in "
                    "filter, exists and forall it may also compare with a text as it stands): write other text around the joined list, and "
                    "compare lists with array_except"
                )


def _is_compared(column: exp.Column, function: exp.Lambda, type_of: TypeOf) -> bool:
    """Whether a text from outside of a lambda is only compared there, or read as a number for the elements of a list as it stands."""
    if isinstance(function.parent, exp.Transform) or _is_list(column, type_of):
        return False
    path: exp.Expr = column
    while isinstance(path.parent, exp.Bracket | exp.Dot) and path.parent.this is path:
        path = path.parent
    if isinstance(path.parent, exp.Cast) and path.parent.to.this in _NUMBERS and function.parent is not None:
        return isinstance(next(function.parent.iter_expressions()), exp.Column | exp.Bracket | exp.Dot)
    return isinstance(path.parent, _COMPARE)


def _is_short(node: exp.Expr) -> bool:
    literal = node.this if isinstance(node, exp.Neg) else node
    return isinstance(literal, exp.Literal) and len(literal.this) <= _LONGEST_SOUGHT


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
    """Finds the size of a node from those of its parts; every part is compared with the limits."""

    def __init__(self, type_of: TypeOf, of_list: Size | None = None, place: str | None = None) -> None:
        self._type_of = type_of
        self._of_list = of_list  # in a lambda: the list whose elements it is asked of
        self._place = place  # and the variable that is the element's place in it

    def of(self, node: exp.Expr) -> Size:
        found = self._of(node)
        held = found if self._of_list is None or found in (_OF_NUMBER, _OF_CAST) else found.for_each_of(self._of_list)
        if held.times > _MOST_TIMES or max(held.plus, held.more) > _MOST_PLUS:
            raise RuleSqlError(
                f"can build text or a list {held.times} times as large as the largest value of a row, plus "
                f"{max(held.plus, held.more)} characters; allowed are {_MOST_TIMES} times and {_MOST_PLUS}: join and transform less"
            )
        if held.items > (_MOST_SPLIT if isinstance(node, exp.RegexpSplit) else _MOST_ITEMS):
            raise RuleSqlError(
                f"can build a list with {held.items} times as many elements as the largest value of a row has characters; allowed are "
                f"{_MOST_ITEMS}, from split() {_MOST_SPLIT}: split a column as it stands, and join fewer lists"
            )
        return found

    def _of(self, node: exp.Expr) -> Size:
        if isinstance(node, exp.Literal | exp.Column | exp.Identifier):
            return self._of_leaf(node)
        if isinstance(node, exp.Dot):
            return self.of(node.this)
        parts = [part for part in node.iter_expressions() if not isinstance(part, exp.DataType)]
        if parts and isinstance(parts[-1], exp.Lambda):
            return self._of_each(node, parts[0], parts[-1])
        return _of_parts(node, [self.of(part) for part in parts])

    def _of_leaf(self, node: exp.Literal | exp.Column | exp.Identifier) -> Size:
        if isinstance(node, exp.Literal):
            return Size(0, len(node.this) + 1)
        if isinstance(node, exp.Column):
            kind = self._type_of(node).this
            return _OF_CAST if kind in _NUMBERS else _OF_TEXT if kind in exp.DataType.TEXT_TYPES else _OF_VALUE
        return _OF_CAST if node.name == self._place else _OF_VALUE  # a lambda's variable: all elements together are the list

    def _of_each(self, node: exp.Expr, its_list: exp.Expr, function: exp.Lambda) -> Size:
        of_list = self.of(its_list)
        variables = [variable.name for variable in function.expressions]
        of_element = _Bound(self._type_of, of_list, variables[1] if len(variables) > 1 else None).of(function.this)
        if isinstance(node, exp.Transform):
            return of_element.for_each_of(of_list)
        return of_list if isinstance(node, exp.ArrayFilter) else _OF_NUMBER


def _of_parts(node: exp.Expr, parts: list[Size]) -> Size:
    name = node.name.lower() if isinstance(node, exp.Anonymous) else ""
    if name == "format_number":
        return _OF_FORMATTED
    if isinstance(node, exp.Cast) and node.to.this in _NUMBERS:
        return _OF_CAST
    if isinstance(node, _GIVE_NUMBERS) or name in _ANONYMOUS_NUMBERS:
        return _OF_NUMBER
    if isinstance(node, _CHOOSE):
        return Size(*(max(values) for values in zip(*parts, strict=True)))
    return _of_all(node, Size(*(sum(values) for values in zip(Size(0, 0), *parts, strict=True))), len(parts))


def _of_all(node: exp.Expr, every: Size, parts: int) -> Size:
    """What a function makes of all its arguments together."""
    separators = _separators(node)
    if separators:
        return every._replace(more=every.more + parts).with_each(sum(len(part.this) for part in separators))
    if isinstance(node, exp.Cast) and node.to.this in exp.DataType.TEXT_TYPES:
        return every.with_each(_IN_BRACKETS) if every.items or every.more else every
    if isinstance(node, exp.Lower | exp.Upper):
        return every._replace(times=every.times * 3, plus=every.plus * 3)  # one letter can become three
    if isinstance(node, exp.RegexpSplit):  # each piece is an element
        return Size(every.times, every.plus, every.times, every.plus + 1)
    return every._replace(more=every.more + parts) if isinstance(node, exp.Array | exp.ArrayAppend | exp.ArrayPrepend) else every
