"""Reads a rule's text word by word: which words and signs it may hold, and which may stand side by side.

Spark's grammar is large and grows with each version; this one is small and closed. In it a value is never followed by another value, and
no word begins a query, a command, a type or a literal of its own, so Spark cannot read such a text as anything but an expression.
"""

import re
from dataclasses import dataclass

LONGEST = 10_000
"""Characters of one expression."""
_DEEPEST = 40  # brackets and CASE within each other


class RuleSqlError(ValueError):
    """An expression that may not run; the message says why and what to write instead."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTIONS = _words(
    """
    if nvl nvl2 ifnull nullif coalesce least greatest isnull isnotnull cast try_cast
    abs ceil ceiling floor round bround sign signum mod pmod
    concat concat_ws format_number lower upper lcase ucase trim ltrim rtrim length char_length substring substr left right
    split split_part startswith endswith contains instr locate
    size cardinality array array_contains array_distinct array_except array_intersect array_union array_join array_max array_min
    array_position array_remove array_sort sort_array array_compact array_append array_prepend array_size arrays_overlap
    slice element_at try_element_at get flatten reverse
    filter exists forall transform
    map_keys map_values map_entries map_contains_key
    """
)
"""Spark's built-in functions a rule may call: each gives the same answer for the same row, reads nothing else, and cannot build much more
than it is given (rule_size). Left out on purpose: aggregate, repeat, replace and format_string, which build without bound,
and regular expressions, which can take for ever on a hostile name."""

_VALUES = _words("null true false")
_KEYWORDS = _VALUES | _words("and or not in is between like div case when then else end as")
_ENDS_VALUE = _VALUES | {"end"}
_STARTS_VALUE = _VALUES | {"case"}
_SESSION_WORDS = _words(
    "current_date current_timestamp current_time current_user current_catalog current_database current_schema current_path session_user "
    "user localtimestamp localtime now"
)
_TYPE = re.compile(r"\s+(?:array\s*<\s*)?(?:string|int|bigint|double|boolean)\b(?:\s*>)?(?=\s*\))", re.IGNORECASE)
_TOKEN = re.compile(
    r"""(?P<space>[ \t\r\n]+)
    | (?P<comment>--|/\*)
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*)(?!['"A-Za-z0-9_])
    | (?P<number>[0-9]{1,19}(?:\.[0-9]{1,18})?)(?![A-Za-z0-9_.])
    | (?P<text>'(?:[^'\\\x00-\x08\x0b-\x1f]|\\[\\'"nt]|'')*')
    | (?P<sign><=>|->|<=|>=|<>|!=|\|\||[-+*/%=<>(),.\[\]])""",
    re.VERBOSE,
)
_QUOTE = re.compile(r"\\.|''", re.DOTALL)
_NEED_VALUE = frozenset([",", "[", ".", "<=>", "->", "<=", ">=", "<>", "!=", "||", "+", "*", "/", "%", "=", "<", ">"])
_ADVICE = {
    "`": "holds a name in back-quotes; write the name alone",
    '"': 'holds "; write text in single quotes',
    ";": "must be exactly one SQL expression without ';'",
    ":": "holds a parameter marker or a path with ':'; write the value, or a field with '.'",
    "?": "holds a parameter marker; write the value, and coalesce() for ??",
    "'": r"is not valid SQL: text begins that does not end, or holds a control character or an escape other than '', \', \\, \n and \t",
}


@dataclass(frozen=True, kw_only=True)
class _Token:
    """One word, number, text or sign of a rule."""

    kind: str
    text: str

    @property
    def keyword(self) -> bool:
        return self.kind == "word" and self.text.lower() in _KEYWORDS

    @property
    def ends_value(self) -> bool:
        if self.kind == "sign":
            return self.text in (")", "]")
        return not self.keyword or self.text.lower() in _ENDS_VALUE

    @property
    def starts_value(self) -> bool:
        return self.kind != "sign" and (not self.keyword or self.text.lower() in _STARTS_VALUE)


def check_words(sql: str) -> str:
    """The text with quotes in text written as \\' (which sqlglot and Spark read alike, unlike ''); RuleSqlError names the first word or
    sign that may not stand where it does."""
    if len(sql) > LONGEST:
        raise RuleSqlError(f"has {len(sql)} characters; write at most {LONGEST}, or split the rule into two controls")
    before, depth = _Token(kind="sign", text="("), 0
    position, field = 0, False
    written = []
    while position < len(sql):
        start = position
        token, position = _next(sql, start)
        written.append(_written(sql[start:position]))
        if token is None:
            continue
        if field and token.kind != "word":
            raise RuleSqlError("holds a '.' without a field's name behind it" + ("; name the columns" if token.text == "*" else ""))
        if field:
            token = _Token(kind="field", text=token.text)
        else:
            _check_pair(before, token)
            depth += _opens(token)
            if depth > _DEEPEST:
                raise RuleSqlError(f"is nested more than {_DEEPEST} deep; split it with AND or OR")
        field = token.kind == "sign" and token.text == "."
        before = token
    if depth or field:
        raise RuleSqlError("is not valid SQL: a bracket or CASE is not closed, or it ends with '.'")
    if not before.ends_value:  # Spark would take the last word for a name of the expression
        raise RuleSqlError(f"is not valid SQL: it ends with {before.text}")
    return "".join(written)


def _written(token: str) -> str:
    if not token.startswith("'"):
        return token
    return "'" + _QUOTE.sub(lambda found: "\\'" if found.group() == "''" else found.group(), token[1:-1]) + "'"


def _next(sql: str, position: int) -> tuple[_Token | None, int]:
    found = _TOKEN.match(sql, position)
    if sql.startswith("${", position) or (found is not None and "${" in found.group()):
        raise RuleSqlError("holds ${, which Spark and shells replace by values of their own; write the text without it")
    if found is None:
        word = re.match(r"\w+['\"]?|.", sql[position:], re.DOTALL)
        shown = word.group() if word else ""
        raise RuleSqlError(_ADVICE.get(shown, f"holds {shown!r}, which a rule may not; write names, numbers, '...' and plain operators"))
    kind, end = str(found.lastgroup), found.end()
    if kind == "space":
        return None, end
    if kind == "comment":
        raise RuleSqlError("holds a comment; put the explanation into rationale")
    if kind == "word" and found.group().lower() == "as":
        of_type = _TYPE.match(sql, end)
        if of_type is None:
            raise RuleSqlError(
                "holds AS without a type; cast to string, int, bigint, double, boolean or array<one of these>, and name nothing"
            )
        end = of_type.end()
    return _Token(kind=kind, text=found.group()), end


def _opens(token: _Token) -> int:
    text = token.text.lower()
    if token.kind == "word":
        return (text == "case") - (text == "end")
    return 0 if token.kind != "sign" else (text in ("(", "[")) - (text in (")", "]"))


def _check_pair(before: _Token, token: _Token) -> None:
    name = before.text.lower()
    if token.kind == "word" and token.text.lower() in _SESSION_WORDS:
        raise RuleSqlError(
            f"reads {token.text.lower()}; a rule may use only what the snapshot holds, so that it gives the same answer again"
        )
    if token.text == "(" and token.kind == "sign" and before.kind in ("word", "field") and before.ends_value:
        if before.kind == "field":
            raise RuleSqlError(f"calls {name}() by a name with a dot; write the function's name alone")
        if name not in FUNCTIONS:
            raise RuleSqlError(f"calls {name}(), which is not allowed in a rule; allowed are {', '.join(sorted(FUNCTIONS))}")
    elif token.kind == "sign" and token.text == "(" and before.ends_value:
        raise RuleSqlError(f"holds ( behind {before.text}; write an operator between them")
    elif token.kind == "sign" and token.text in _NEED_VALUE and not before.ends_value:
        raise RuleSqlError(f"holds {token.text} without a value before it")
    elif token.starts_value and before.ends_value:
        raise RuleSqlError(f"holds {token.text} behind {before.text}; write an operator between them")
