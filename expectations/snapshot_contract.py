"""Compares the columns of a stored dataset with those that the collector writes."""

import pyarrow as pa

EVIDENCE_BY_ERROR = frozenset({"SECURITY_DISABLED"})
"""Errors that answer the question: a cluster without an authorizer has no ACLs, and nothing was left unread."""


def schema_problem(found: pa.Schema, expected: pa.Schema) -> str:
    """``ok``, or every expected column that is missing or of another type. Further columns are allowed."""
    problems: list[str] = []
    for column in expected:
        if column.name not in found.names:
            problems.append(f"column {column.name} is missing")
        elif found.field(column.name).type != column.type:
            problems.append(f"column {column.name} is {found.field(column.name).type} where {column.type} is expected")
    return "; ".join(problems) or "ok"
