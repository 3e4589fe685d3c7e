"""Offsets are added, subtracted and compared in one place: a reading of the code."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OFFSETS = frozenset(
    {
        *("committed", "log_start", "log_end", "last_stable", "position", "record_offset", "base_offset", "last_offset", "start_offset"),
        *("committed_before", "log_start_before", "log_end_before", "highest_commit", "headroom_offset"),
    }
)
ALLOWED = {
    "spark_jobs/lag/positions.py": "within a sample",
    "spark_jobs/lag/steps.py": "from one sample to the next",
    "spark_jobs/lag/movement.py": "over the newest samples",
    "spark_jobs/lag/passing.py": "when the log passed a position",
    "plugins/kafka_audit/lag/position.py": "the same as positions.py without Spark",
    "plugins/kafka_audit/lag/reading.py": "from one reading to the next",
    "plugins/kafka_audit/lag/standings.py": "the same as position.py for Arrow columns",
    "plugins/kafka_audit/lag/sla_standings.py": "the same as seconds.py for Arrow columns",
}
OTHER_OFFSETS = {
    "plugins/kafka_audit/cluster": "reads offsets from brokers",
    "plugins/kafka_audit/collect": "decides which offsets to ask brokers for next",
    "plugins/kafka_audit/sample": "makes up where groups stand",
    "plugins/kafka_audit/sandbox": "produces and commits records of the demo",
    "plugins/kafka_audit/cli/timeline.py": "lists single commits from the offsets topic",
    "spark_jobs/commit_history": "describes single commits from the offsets topic, and the offsets of that topic itself",
    "spark_jobs/read_commits.py": "how far the offsets topic itself was read",
}
_IN_SQL = re.compile(
    rf"\b({'|'.join(sorted(OFFSETS))})\b\s*(<|>|=|\+|-|!=)(?!>)|(<|>|=|\+|-)\s*\b({'|'.join(sorted(OFFSETS))})\b|\b(greatest|least)\([^)]*\b({'|'.join(sorted(OFFSETS))})\b"
)


def modules() -> list[Path]:
    found = [*(ROOT / "spark_jobs").rglob("*.py"), *(ROOT / "plugins" / "kafka_audit").rglob("*.py")]
    without = {*ALLOWED, *OTHER_OFFSETS}
    return sorted(path for path in found if not without & {str(one) for one in (place(path), *place(path).parents)})


def place(path: Path) -> Path:
    return path.relative_to(ROOT)


def is_offset(node: ast.expr) -> bool:
    """Whether an expression is an offset: a variable, an attribute, a column or a field of that name; many things are called position."""
    if isinstance(node, ast.Name | ast.Attribute):
        return (node.id if isinstance(node, ast.Name) else node.attr) in OFFSETS - {"position"}
    named = node.slice if isinstance(node, ast.Subscript) else node.args[0] if isinstance(node, ast.Call) and len(node.args) == 1 else None
    return isinstance(named, ast.Constant) and named.value in OFFSETS


def operands(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
        return [node.left, node.right]
    if isinstance(node, ast.Compare) and not isinstance(node.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in {"max", "min", "greatest", "least"}:
        names = [one for one in node.args if isinstance(one, ast.Constant) and one.value in OFFSETS]
        return [*(one for one in node.args if len(node.args) > 1), *(ast.Name(id=str(one.value)) for one in names if len(node.args) > 1)]
    return []


def arithmetic(source: str, *, in_sql: bool = True) -> Iterator[str]:
    tree = ast.parse(source)
    documented = [node for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    texts = {id(node.value) for node in documented}
    for node in ast.walk(tree):
        if any(is_offset(one) for one in operands(node)):
            yield ast.unparse(node)
        elif (
            in_sql
            and isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in texts
            and _IN_SQL.search(node.value)
        ):
            yield node.value


@pytest.mark.parametrize(
    "source",
    [
        "lag = end - max(committed, start)",
        "F.col('log_end') - F.col('committed')",
        "row['committed'] < start",
        "one.log_start > 5",
        "F.greatest('committed', 'log_start')",
        "F.expr('highest_commit > committed')",
        "F.expr('greatest(committed, x)')",
    ],
)
def test_the_reading_finds_arithmetic(source: str) -> None:
    assert list(arithmetic(source))


@pytest.mark.parametrize("source", ["committed is None", "F.col('committed').isNotNull()", "lag + lost", "'''log_end - committed'''"])
def test_the_reading_lets_all_else_pass(source: str) -> None:
    assert not list(arithmetic(source))


def test_the_places_that_are_left_out_exist() -> None:
    assert [name for name in (*ALLOWED, *OTHER_OFFSETS) if not (ROOT / name).exists()] == []


def test_no_other_module_adds_subtracts_or_compares_offsets() -> None:
    found = {
        str(place(path)): list(arithmetic(path.read_text(encoding="utf-8"), in_sql=place(path).parts[0] == "spark_jobs"))
        for path in modules()
    }
    assert {name: lines for name, lines in found.items() if lines} == {}
