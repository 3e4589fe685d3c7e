"""docs/results.md names every column of the results, and its queries run on an audit's files."""

import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from lag_rows import group_sla, sla_table
from report_audit import AUDIT_ID, FINDINGS, SUMMARY, FakeAudit, control, finding, group_partition, spark_folder

from kafka_audit.catalogue.load import load_catalogue, shipped_controls
from kafka_audit.catalogue.rule import rule_of
from kafka_audit.report.results import FINDING_COLUMNS
from spark_jobs.judge.controls import COLUMNS

TEXT = (Path(__file__).parents[2] / "docs" / "results.md").read_text()
VIEWS, *QUERIES = re.findall(r"```sql\n(.*?)```", TEXT, re.DOTALL)
TOPIC = control("replication_factor_above_min_insync", "TOP-03")
TOPIC_BEFORE = control("replication_factor_above_min_insync", "TOP-03", pass_when="replication_factor_min >= 2")
GROUP = control("lag_within_sla", "CON-01", subject="group")
EARLIER_ID = "20261119T231600Z-0badcafe0badcafe"


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> duckdb.DuckDBPyConnection:
    """The views of the document over an audit; in the one before it, TOP-03 had another rule."""
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
    for part, row in (("settings", finding(TOPIC_BEFORE, "orders", "pass")), ("lag", finding(GROUP, "billing", "pass"))):
        earlier = fake.audit.path.with_name(EARLIER_ID) / part / "findings.parquet"
        spark_folder(earlier, [{**row, "audit_id": EARLIER_ID}], FINDINGS)
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
    assert {"severity": "critical", "code": "TOP-03", "title": "Replication factor above min insync", "failing": 1} in said[0]
    assert said[1] == [{"code": "TOP-03", "title": "Replication factor above min insync", "assessed": 2, "applicable": 3}]
    assert said[2] == [{"reason": "TIMEOUT", "results": 1, "controls": ["TOP-03"]}]
    lost = next(rows for rows in said if "lost" in rows[0])
    assert [(row["group_id"], int(str(row["lost"])), row["partitions"]) for row in lost] == [("billing", 7, 1)]
    assert next(rows for rows in said if "hours_to_loss" in rows[0])[0]["hours_to_loss"] == 2.0
    assert [row["partition"] for row in said[-1]] == [1]


def test_findings_of_two_audits_are_grouped_by_the_rule_that_judged_them(tables: duckdb.DuckDBPyConnection) -> None:
    found = answers(tables, next(query for query in QUERIES if "last_audit" in query))
    assert found == [
        {
            **{"code": "CON-01", "rule_sha256": rule_of(GROUP).sha256, "first_audit": EARLIER_ID, "last_audit": AUDIT_ID},
            **{"failed": 1, "passed": 1},
        },
        *(
            {
                **{"code": "TOP-03", "rule_sha256": rule_of(rule).sha256, "first_audit": audit, "last_audit": audit},
                **{"failed": failed, "passed": 1},
            }
            for rule, audit, failed in ((TOPIC_BEFORE, EARLIER_ID, 0), (TOPIC, AUDIT_ID, 1))
        ),
    ]


def test_the_hash_of_the_rule_set_can_be_computed_from_the_summary(tables: duckdb.DuckDBPyConnection) -> None:
    [computed] = answers(tables, next(query for query in QUERIES if "sha256(" in query))
    assert [computed] == answers(tables, "select distinct rule_set_sha256 from findings")


def test_the_program_in_the_document_computes_the_hash_of_a_control(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    [program] = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    controls = load_catalogue().controls
    kinds = (
        next(one for one in controls if one.parameters),
        *(next(one for one in controls if getattr(one, name)) for name in ("baseline_when", "undeclared_when", "evidence_of_row")),
    )
    for one in kinds:
        monkeypatch.setattr("sys.argv", ["program", str(shipped_controls() / f"{one.id}.yaml")])
        exec(program, {})
        assert capsys.readouterr().out.strip() == rule_of(one).sha256


@pytest.mark.parametrize(("heading", "columns"), [("Findings", COLUMNS), ("Summary", tuple(SUMMARY.names))])
def test_the_document_names_every_column(heading: str, columns: tuple[str, ...]) -> None:
    section = TEXT.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    named = [name for line in section.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line.split("|")[1])]
    assert len(named) == len(set(named))
    assert set(columns) <= set(named)
    assert set(FINDING_COLUMNS) <= set(COLUMNS)
