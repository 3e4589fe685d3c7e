"""docs/results.md names every column of the results, and its queries run on an audit's files."""

import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from lag_rows import group_sla, sla_table
from report_audit import SUMMARY, FakeAudit, control, finding, group_partition

from kafka_audit.report.results import FINDING_COLUMNS
from spark_jobs.judge.controls import COLUMNS

TEXT = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
VIEWS, *QUERIES = re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)
TOPIC = control("replication_factor_sufficient", "TOP-02")
GROUP = control("lag_within_sla", "CON-01", subject="group")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """The views of the document over an audit."""
    fake = FakeAudit(tmp_path_factory.mktemp("results"), (TOPIC, GROUP))
    fake.settings(
        [
            finding(TOPIC, "orders"),
            finding(TOPIC, "dark", "not_assessed", reason="TIMEOUT"),
            finding(TOPIC, "cheap", "pass", loosened="2 instead of 3"),
        ]
    )
    partitions = [
        group_partition("billing", "orders", 0, lost=7, lag=3, time_to_loss_ms=7_200_000),
        group_partition("billing", "orders", 1, lag=None),
    ]
    fake.lag([finding(GROUP, "billing")], partitions, group_slas=sla_table([group_sla("billing")]))
    connection = duckdb.connect()
    connection.execute(VIEWS.replace("AUDIT", str(fake.audit.path)))
    return connection


def answers(tables: duckdb.DuckDBPyConnection, query: str) -> list[dict[str, object]]:
    """The rows of a query as dicts."""
    found: pa.Table = tables.sql(query).to_arrow_table()
    rows: list[dict[str, object]] = found.to_pylist()
    return rows


@pytest.mark.parametrize("number", range(len(QUERIES)))
def test_a_query_of_the_document_finds_rows(tables: duckdb.DuckDBPyConnection, number: int) -> None:
    assert answers(tables, QUERIES[number])


def test_the_document_has_a_dozen_queries() -> None:
    assert len(QUERIES) >= 12


def test_the_queries_answer_what_they_say(tables: duckdb.DuckDBPyConnection) -> None:
    said = [answers(tables, query) for query in QUERIES]
    assert {"severity": "critical", "code": "TOP-02", "title": "Replication factor sufficient", "failing": 1} in said[0]
    assert said[1] == [{"code": "TOP-02", "title": "Replication factor sufficient", "assessed": 2, "applicable": 3}]
    assert said[2] == [{"reason": "TIMEOUT", "results": 1, "controls": ["TOP-02"]}]
    lost = next(rows for rows in said if "lost" in rows[0])
    assert [(row["group_id"], int(str(row["lost"])), row["partitions"]) for row in lost] == [("billing", 7, 1)]
    assert next(rows for rows in said if "hours_to_loss" in rows[0])[0]["hours_to_loss"] == 2.0
    assert [row["partition"] for row in said[-1]] == [1]


@pytest.mark.parametrize(("heading", "columns"), [("Findings", COLUMNS), ("Summary", tuple(SUMMARY.names))])
def test_the_document_names_every_column(heading: str, columns: tuple[str, ...]) -> None:
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    named = [name for line in section.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert len(named) == len(set(named))
    assert set(columns) <= set(named)
    assert set(FINDING_COLUMNS) <= set(COLUMNS)
