"""Checks that the results of an audit name the rules that the audit keeps: each row has the hash of the rule that judged it."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafka_audit.catalogue.rule import Rule, rule_set_sha256
from kafka_audit.errors import IntegrityError
from kafka_audit.store.layout import Audit

_BATCH_ROWS = 32_768
_SHOWN = 80
_COLUMNS = {"findings": ("control_id", "rule_sha256", "rule_set_sha256"), "summary": ("control_id", "rule_sha256")}


def result_tables(audit: Audit) -> dict[str, tuple[str, ...]]:
    """The tables of results that the audit has, such as ``settings/findings.parquet``, each with the columns that name rules."""
    tables = {f"{part.name}/{name}.parquet": columns for part in (audit.settings, audit.lag) for name, columns in _COLUMNS.items()}
    return {table: columns for table, columns in tables.items() if any((audit.path / table).glob("*.parquet"))}


def other_rules(audit: Audit, rules: Mapping[str, Rule]) -> Iterator[str]:
    """What each table of results says of a rule that is not one of ``rules`` (by control id): the first such row of each table.

    IntegrityError when a table cannot be read, or does not say by which rules its rows were judged.
    """
    hashes = {control_id: rule.sha256 for control_id, rule in rules.items()}
    rule_set = rule_set_sha256(rules)
    for table, columns in result_tables(audit).items():
        said = (_problem(row, hashes, rule_set) for row in _rows(audit.path / table, table, columns))
        problem = next((one for one in said if one is not None), None)
        if problem is not None:
            yield f"{table}: {problem}"


def _problem(row: Mapping[str, Any], hashes: Mapping[str, str], rule_set: str) -> str | None:
    control_id = str(row["control_id"])
    if control_id not in hashes:
        return f"has results of control {control_id!r:.{_SHOWN}}, of which the audit keeps no copy"
    if row["rule_sha256"] != hashes[control_id]:
        return f"{control_id} was judged by the rule {row['rule_sha256']!r:.{_SHOWN}}, and the audit's copy has {hashes[control_id]}"
    if row.get("rule_set_sha256", rule_set) != rule_set:
        return f"was judged by the rule set {row['rule_set_sha256']!r:.{_SHOWN}}, and the audit's copies are {rule_set}"
    return None


def _rows(folder: Path, table: str, columns: tuple[str, ...]) -> Iterator[Mapping[str, Any]]:
    """The distinct rows of each batch, so that no more than a batch is in memory."""
    try:
        for path in sorted(folder.glob("*.parquet")):
            with pq.ParquetFile(path) as file:
                absent = sorted(set(columns) - set(file.schema_arrow.names))
                if absent:
                    raise IntegrityError(f"{table}: has no columns {', '.join(absent)}, so it does not say by which rules it was judged")
                for batch in file.iter_batches(_BATCH_ROWS, columns=list(columns)):
                    yield from pa.Table.from_batches([batch]).group_by(list(columns)).aggregate([]).to_pylist()
    except (OSError, pa.ArrowException) as problem:
        raise IntegrityError(f"{table}: cannot be read as Parquet ({problem!s:.200})") from problem
