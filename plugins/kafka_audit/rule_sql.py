"""Checks a rule's SQL before Spark sees it: it reads only its subject's columns and does nothing but compute from them.

Two readings must both be clean. The tokens: every name before a ``(`` must be a listed function, so an unknown, qualified or
back-quoted call cannot hide behind a parser's view of it. The syntax tree: columns, fields and keys exist, and there are no queries,
windows or parameters. Text that a reader could take for a comment is refused, because two parsers may differ on where it ends.
"""

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from kafka_audit.row_types import element_of, fields_of, is_map, parse_type
from kafka_audit.subjects import Subject

_DIALECT = "spark"
_KEYED = ("config", "broker_values")  # too large to be evidence as a whole: a rule names the keys it reads


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _words(
    """
    if nvl nvl2 ifnull nullif coalesce least greatest isnull isnotnull
    cast try_cast string int bigint double decimal boolean
    abs ceil ceiling floor round bround sign signum mod pmod pow power sqrt try_add try_subtract try_multiply try_divide
    concat concat_ws format_string printf format_number lower upper lcase ucase trim ltrim rtrim length char_length substring substr
    left right split split_part startswith endswith contains replace regexp_replace regexp_like regexp_extract regexp_count translate
    instr locate
    size cardinality array array_contains array_distinct array_except array_intersect array_union array_join array_max array_min
    array_position array_remove array_sort sort_array array_compact array_append array_prepend array_size arrays_overlap arrays_zip
    slice element_at try_element_at get flatten reverse
    filter exists forall aggregate reduce transform zip_with map_filter transform_keys transform_values
    map map_keys map_values map_entries map_contains_key map_from_entries map_concat struct named_struct to_json
    timestamp_millis date_format
    """
)
"""Spark's built-in functions a rule may call: each gives the same answer for the same row, and reads nothing else."""

_BEFORE_PARENTHESIS = _words("and or not in when then else case between like rlike ilike div is")
_SESSION_WORDS = _words(
    "current_date current_timestamp current_time current_user current_catalog current_database current_schema session_user user "
    "localtimestamp localtime now"
)
_WORD = re.compile(r"[A-Za-z_]\w*")
_CLOCK_TYPES = frozenset({"DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPLTZ", "TIMESTAMPNTZ", "DATETIME", "TIME"})
_FORBIDDEN: dict[type, str] = {
    exp.Query: "holds a query; a rule sees one row only",
    exp.Window: "holds a window function; a rule sees one row only",
    exp.Star: "holds *; name the columns",
    exp.Placeholder: "holds a parameter marker; write the value",
    exp.Parameter: "holds a parameter; write the value",
    exp.Alias: "holds AS; leave the name out",
    exp.Interval: "holds an interval; write milliseconds as a number",
}


@dataclass(frozen=True, kw_only=True, order=True)
class Reference:
    """One thing a rule reads: a column, a column's struct field, or one key of a map column."""

    column: str
    field: str | None = None
    key: str | None = None

    @property
    def label(self) -> str:
        """The name people and the evidence JSON see, like ``isr``, ``policy.tier`` or ``config.retention.ms``."""
        return ".".join(part for part in (self.column, self.field, self.key) if part is not None)

    @property
    def sql(self) -> str:
        """The SQL that reads it."""
        if self.key is not None:
            quoted = self.key.replace("\\", "\\\\").replace("'", "\\'")
            return f"`{self.column}`['{quoted}']"
        return f"`{self.column}`" + (f".`{self.field}`" if self.field is not None else "")


class RuleSqlError(ValueError):
    """An expression that may not run; the message says why and what to write instead."""


def references_of(sql: str, subject: Subject) -> tuple[Reference, ...]:
    """Check one expression against its subject and return what it reads, in order of first use.

    RuleSqlError names the first thing that is wrong.
    """
    try:
        _check_tokens(sqlglot.tokenize(sql, read=_DIALECT))
        trees = sqlglot.parse(sql, read=_DIALECT)
    except SqlglotError as problem:
        raise RuleSqlError(f"is not valid SQL: {_plain(str(problem))}") from problem
    except RecursionError as problem:
        raise RuleSqlError("is nested too deeply; split it with AND or OR") from problem
    if len(trees) != 1 or not isinstance(trees[0], exp.Expression):
        raise RuleSqlError("must be exactly one SQL expression without ';'")
    _check_nodes(trees[0])
    return tuple(dict.fromkeys(_References(subject).read(trees[0])))


def _plain(message: str) -> str:
    return " ".join(re.sub(r"\x1b\[[0-9;]*m", "", message).split())


def _check_tokens(tokens: list[Token]) -> None:
    for token, following in itertools.zip_longest(tokens, tokens[1:]):
        if token.comments:
            raise RuleSqlError("holds a comment; put the explanation into rationale")
        if token.token_type == TokenType.SEMICOLON:
            raise RuleSqlError("must be exactly one SQL expression without ';'")
        name = token.text.lower()
        is_name = token.token_type == TokenType.IDENTIFIER or (token.token_type != TokenType.STRING and _WORD.fullmatch(token.text))
        if not is_name:
            continue
        if name in _SESSION_WORDS:
            raise RuleSqlError(f"reads {name}; a rule may use only what the snapshot holds, so that it gives the same answer again")
        calls = following is not None and following.token_type == TokenType.L_PAREN
        plain_keyword = token.token_type != TokenType.IDENTIFIER and name in _BEFORE_PARENTHESIS
        if calls and name not in FUNCTIONS and not plain_keyword:
            raise RuleSqlError(f"calls {name}(), which is not allowed in a rule; allowed are {', '.join(sorted(FUNCTIONS))}")


def _check_nodes(tree: exp.Expression) -> None:
    for node in tree.walk():
        for kind, reason in _FORBIDDEN.items():
            if isinstance(node, kind):
                raise RuleSqlError(reason)
        if isinstance(node, exp.DataType) and node.this.name in _CLOCK_TYPES:  # timestamp 'now' is the clock in disguise
            raise RuleSqlError("makes a date or a timestamp; compare milliseconds as numbers")


class _References:
    """Walks a syntax tree and yields what is read; lambda variables are known by scope."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject

    def read(self, node: exp.Expression, scope: frozenset[str] = frozenset()) -> Iterator[Reference]:
        if isinstance(node, exp.Lambda):
            names = {part.name.lower() for part in node.expressions}
            yield from self.read(node.this, scope | names)
        elif isinstance(node, exp.Column):
            yield self._column(node)[0]
        elif isinstance(node, exp.Bracket):
            yield from self._bracket(node, scope)
        elif isinstance(node, exp.Dot):
            self._type_of(node)
            yield from self.read(node.this, scope)
        elif isinstance(node, exp.Identifier):
            if node.name.lower() not in scope:
                raise RuleSqlError(f"reads {node.name}, which is not a column of subject {self._subject.name}")
        else:
            for child in node.iter_expressions():
                if not isinstance(child, exp.DataType):
                    yield from self.read(child, scope)

    def _bracket(self, node: exp.Bracket, scope: frozenset[str]) -> Iterator[Reference]:
        base = node.this
        self._type_of(node)
        if isinstance(base, exp.Column) and len(base.parts) == 1 and is_map(self._column(base)[1]):
            keys = node.expressions
            if len(keys) == 1 and isinstance(keys[0], exp.Literal) and keys[0].is_string:
                yield Reference(column=base.name, key=keys[0].this)
                return
            if base.name in _KEYED:
                raise RuleSqlError(f"reads {base.name} with a computed key; write the key as text, like {base.name}['retention.ms']")
        yield from self.read(base, scope)
        for part in node.expressions:
            yield from self.read(part, scope)

    def _column(self, node: exp.Column) -> tuple[Reference, exp.DataType]:
        """What a name or a dotted chain of names reads, and its type."""
        names = [part.name for part in node.parts]
        columns = self._subject.columns
        if names[0] not in columns:
            listed = ", ".join(columns)
            raise RuleSqlError(f"reads {names[0]}, which is not a column of subject {self._subject.name}; write one of {listed}")
        kind = parse_type(columns[names[0]].type)
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
