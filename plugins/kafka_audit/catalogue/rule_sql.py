"""Checks a rule's SQL before Spark sees it: it reads only its subject's columns and does nothing but compute from them.

Three readings must all be clean, and each allows a list instead of refusing what is known to be bad. The words (rule_words):
only listed functions, keywords and signs, so that no two parsers can read the text differently. The syntax tree: only listed kinds of
nodes, and columns, fields and keys that exist. The size (rule_size): what the expression can build from a row is bounded.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from kafka_audit.catalogue.row_types import element_of, fields_of, is_map, parse_type
from kafka_audit.catalogue.rows import Subject
from kafka_audit.catalogue.rule_size import check_size
from kafka_audit.catalogue.rule_words import FUNCTIONS, RuleSqlError, check_words

_DIALECT = "spark"
_KEYED = ("config", "broker_values")  # too large to be evidence as a whole: a rule names the keys it reads
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_VARIABLE = re.compile(r"[a-z][a-z0-9_]*")
_DEEPEST = 80  # operators and functions within each other; Spark walks the tree by recursion, too

_NODES: frozenset[type] = frozenset(
    {
        *(exp.Column, exp.Identifier, exp.Dot, exp.Bracket, exp.Literal, exp.Null, exp.Boolean, exp.Paren, exp.Tuple, exp.Lambda),
        *(exp.And, exp.Or, exp.Not, exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.Is, exp.In, exp.Between),
        *(exp.Like, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.DPipe, exp.Case, exp.If, exp.Coalesce),
        *(exp.Nvl2, exp.Nullif, exp.Least, exp.Greatest, exp.Cast, exp.TryCast, exp.DataType, exp.Anonymous),
        *(exp.Abs, exp.Ceil, exp.Floor, exp.Round, exp.Sign, exp.Concat, exp.ConcatWs, exp.Lower, exp.Upper, exp.Trim, exp.Length),
        *(exp.Substring, exp.Left, exp.Right, exp.RegexpSplit, exp.SplitPart, exp.StartsWith, exp.EndsWith, exp.Contains),
        *(exp.StrPosition, exp.ArraySize, exp.Array, exp.ArrayContains, exp.ArrayDistinct, exp.ArrayExcept, exp.ArrayIntersect),
        *(exp.ArrayToString, exp.ArrayMax, exp.ArrayMin, exp.ArrayPosition, exp.ArrayRemove, exp.ArraySort, exp.ArrayCompact),
        *(exp.ArrayAppend, exp.ArrayPrepend, exp.ArraySlice, exp.Flatten, exp.Reverse, exp.ArrayFilter, exp.Exists, exp.Transform),
        *(exp.MapKeys, exp.MapContainsKey),
    }
)
"""What a syntax tree may be made of: the operators, and what the allowed functions become in it (one without a type of its own is
Anonymous, whose name has been read as a word)."""


@dataclass(frozen=True, kw_only=True, order=True)
class Reference:
    """One thing a rule reads: a column, a column's struct field, or one key of a map column.

    Its parts are made of letters, digits, '.', '_' and '-', so that :attr:`sql` and a quoted :attr:`label` can be nothing else in SQL.
    """

    column: str
    field: str | None = None
    key: str | None = None

    def __post_init__(self) -> None:
        if not all(part is None or _NAME.fullmatch(part) for part in (self.column, self.field, self.key)):
            raise RuleSqlError(f"reads {self.label!r}; a key may hold letters, digits, '.', '_' and '-' only, and at most 200 of them")

    @property
    def label(self) -> str:
        """The name people and the evidence JSON see, like ``isr``, ``policy.tier`` or ``config.retention.ms``."""
        return ".".join(part for part in (self.column, self.field, self.key) if part is not None)

    @property
    def sql(self) -> str:
        """The SQL that reads it."""
        if self.key is not None:
            return f"`{self.column}`['{self.key}']"
        return f"`{self.column}`" + (f".`{self.field}`" if self.field is not None else "")


def references_of(sql: str, subject: Subject) -> tuple[Reference, ...]:
    """Check one expression against its subject and return what it reads, in order of first use.

    RuleSqlError names the first thing that is wrong.
    """
    return _references(sql, subject.name, tuple((name, column.type) for name, column in subject.columns.items()))


@lru_cache(maxsize=1024)
def _references(sql: str, subject: str, types: tuple[tuple[str, str], ...]) -> tuple[Reference, ...]:
    """The same by (column, type) pairs: an audit asks for what a rule reads several times."""
    tree = _parsed(sql)
    _check_nodes(tree)
    reading = _References(subject, dict(types))
    found = tuple(dict.fromkeys(reading.read(tree)))
    check_size(tree, reading.type_of_column)
    return found


def _parsed(sql: str) -> exp.Expression:
    if not sql.strip():
        raise RuleSqlError("must be exactly one SQL expression without ';'")
    checked = check_words(sql)
    try:
        trees = sqlglot.parse(checked, read=_DIALECT)
    except SqlglotError as problem:
        raise RuleSqlError(f"is not valid SQL: {_plain(str(problem))}") from problem
    except RecursionError as problem:
        raise RuleSqlError("is nested too deeply; split it with AND or OR") from problem
    except (LookupError, TypeError, ValueError, AttributeError) as problem:  # its parser trips over some texts that are no SQL
        raise RuleSqlError(
            "is not valid SQL: it cannot be parsed; look for a missing operand or a function with wrong arguments"
        ) from problem
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        raise RuleSqlError("must be exactly one SQL expression without ';'")
    return trees[0]


def _plain(message: str) -> str:
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", message).split())


def _check_nodes(tree: exp.Expression) -> None:
    deep = [(tree, 1)]
    while deep:
        node, depth = deep.pop()
        if type(node) not in _NODES:
            raise RuleSqlError(f"holds {type(node).__name__}, which is not allowed in a rule; write it with {', '.join(sorted(FUNCTIONS))}")
        if depth > _DEEPEST:
            raise RuleSqlError("is nested too deeply; split it with AND or OR, or into two controls")
        if isinstance(node, exp.Lambda):
            _check_lambda(node)
        if _of_each(node) and [type(part) is exp.Lambda for part in node.iter_expressions()] != [False, True]:
            raise RuleSqlError(
                "calls filter, exists, forall or transform without a list and a lambda; write it like exists(list, x -> x > 1)"
            )
        deep += [(child, depth + 1) for child in node.iter_expressions()]


def _of_each(node: exp.Expr) -> bool:
    """Whether it is a function that asks a lambda of each element of a list."""
    forall = isinstance(node, exp.Anonymous) and node.name.lower() == "forall"
    return forall or isinstance(node, exp.ArrayFilter | exp.Exists | exp.Transform)


def _check_lambda(node: exp.Lambda) -> None:
    if node.parent is None or not _of_each(node.parent) or node.find_ancestor(exp.Lambda):
        raise RuleSqlError("holds a lambda where none may be; write one in filter, exists, forall or transform, and none inside of another")
    for part in node.expressions:
        if not _VARIABLE.fullmatch(part.name) or part.name in FUNCTIONS:
            raise RuleSqlError(f"names a lambda's variable {part.name}; write a lower-case name that no function has")


class _References:
    """Walks a syntax tree and yields what is read; lambda variables are known by scope."""

    def __init__(self, subject: str, types: Mapping[str, str]) -> None:
        self._subject = subject
        self._types = types

    def read(self, node: exp.Expression, scope: frozenset[str] = frozenset()) -> Iterator[Reference]:
        if isinstance(node, exp.Lambda):
            names = {part.name for part in node.expressions}
            yield from self.read(node.this, scope | names)
        elif isinstance(node, exp.Column):
            yield self._column(node)[0]
        elif isinstance(node, exp.Bracket):
            yield from self._bracket(node, scope)
        elif isinstance(node, exp.Dot):
            self._type_of(node)
            yield from self.read(node.this, scope)
        elif isinstance(node, exp.Identifier):
            if node.name not in scope:
                raise RuleSqlError(f"reads {node.name}, which is not a column of subject {self._subject}")
        else:
            for child in node.iter_expressions():
                if not isinstance(child, exp.DataType):
                    yield from self.read(child, scope)

    def type_of_column(self, node: exp.Column) -> exp.DataType:
        """The type of what a name or a dotted chain of names reads."""
        return self._column(node)[1]

    def _bracket(self, node: exp.Bracket, scope: frozenset[str]) -> Iterator[Reference]:
        if len(node.expressions) != 1:
            raise RuleSqlError(f"reads {node.sql(_DIALECT)}; write one index or key in the brackets")
        base, key = node.this, node.expressions[0]
        self._type_of(node)
        if isinstance(base, exp.Column) and len(base.parts) == 1 and is_map(self._column(base)[1]):
            if isinstance(key, exp.Literal) and key.is_string:
                yield Reference(column=base.name, key=key.this)
                return
            if base.name in _KEYED:
                raise RuleSqlError(f"reads {base.name} with a computed key; write the key as text, like {base.name}['retention.ms']")
        yield from self.read(base, scope)
        yield from self.read(key, scope)

    def _column(self, node: exp.Column) -> tuple[Reference, exp.DataType]:
        """What a name or a dotted chain of names reads, and its type."""
        names = [part.name for part in node.parts]
        columns = self._types
        if names[0] not in columns:
            listed = ", ".join(columns)
            raise RuleSqlError(f"reads {names[0]}, which is not a column of subject {self._subject}; write one of {listed}")
        kind = parse_type(columns[names[0]])
        if is_map(kind) and len(names) > 1:
            raise RuleSqlError(f"reads {'.'.join(names)}; write {names[0]}['{'.'.join(names[1:])}']")
        parent = node.parent
        whole = len(names) == 1 and not (isinstance(parent, exp.Bracket) and parent.this is node)
        if whole and names[0] in _KEYED:
            raise RuleSqlError(f"reads all of {names[0]}; name the key, like {names[0]}['retention.ms']")
        for name in names[1:]:
            kind = _field(kind, name, ".".join(names))
        return Reference(column=names[0], field=names[1] if len(names) > 1 else None), kind

    def _type_of(self, node: exp.Expression) -> exp.DataType | None:
        """The type of a path of columns, keys and fields; None for anything that is computed. Raises when a field does not exist."""
        if isinstance(node, exp.Column):
            return self._column(node)[1]
        if isinstance(node, exp.Bracket):
            base = self._type_of(node.this)
            return element_of(base) if base is not None else None
        if isinstance(node, exp.Dot):
            base = self._type_of(node.this)
            return None if base is None else _field(base, node.expression.name, node.sql(_DIALECT))
        return None


def _field(kind: exp.DataType, name: str, path: str) -> exp.DataType:
    fields = fields_of(kind)
    if is_map(kind):
        raise RuleSqlError(f"reads {path}; write ['{name}'] for a key of a map")
    if fields is None or name not in fields:
        known = f"; its fields are {', '.join(fields)}" if fields else ", which has no fields"
        raise RuleSqlError(f"reads {path}, but there is no field {name}{known}")
    return fields[name]
