"""A control can read only its rows: no environment variables, Java properties or commands, whatever its texts contain.

The checker refuses such texts (tests/unit/test_catalogue.py, test_rule_sql.py). These tests bypass the checker to test the engine alone.
"""

from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from kafka_audit.catalogue import control as control_module
from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.catalogue.rule_sql import references_of
from kafka_audit.catalogue.rule_words import RuleSqlError
from spark_jobs.engine.session import hold_settings
from spark_jobs.judge.controls import judge, summarise

pytestmark = pytest.mark.spark

CANARY = "canary-in-the-environment"  # stands in the environment of the JVM (conftest.py)

GOOD = Control.model_validate(
    {
        "id": "isr_is_whole",
        "code": "TST-01",
        "title": "T",
        "subject": "partition",
        "severity": "high",
        "evidence": "observed",
        "evidence_of_row": "'observed'",
        "parameters": {"least": {"default": 2, "stricter": "higher", "meaning": "replicas"}},
        "needs": ["partitions"],
        "applies_when": "topic is not null",
        "pass_when": "isr_count >= 2",
        "observed": "topic",
        "expected": "at least 2",
        "not_assessed_reason": "'not known'",
        "baseline_when": "isr_count > 9",
        "undeclared_when": "isr_count > 9",
        "rationale": "r",
        "failure_scenario": "f",
        "remediation": {
            "text": "t",
            "commands": ["true"],
            "changes": [{"command": "true {lowest}", "does": "Nothing.", "decide": "Nothing."}],
            "values": {"lowest": "isr_count"},
        },
        "remediation_impact": "none",
        "references": ["KIP-966"],
        "false_positives": ["none"],
        "examples": [
            *({"name": status, "row": {}, "status": status} for status in ("pass", "not_assessed")),
            {"name": "fail", "row": {}, "status": "fail", "values": {"lowest": "1"}},
            {"name": "first", "row": {}, "status": "not_applicable", "first_audit": True, "reason": "baseline"},
            {"name": "undeclared", "row": {}, "status": "not_applicable", "reason": "not declared"},
        ],
    }
)
SQL_FIELDS = frozenset(name.partition(".")[0] for name in GOOD.expressions) - {"expected"}
CONDITIONS = frozenset({"baseline_when", "undeclared_when"})
READ = "${env:KAFKA_AUDIT_CANARY} ${system:kafka_audit.canary} ${spark:spark.kafka_audit.canary} ${hiveconf:spark.kafka_audit.canary}"
RUN = "${system:kafka_audit.command}"


def replaced(value: Any, text: str) -> Any:
    """The value with every text in it replaced, however deep."""
    if isinstance(value, str) and not isinstance(value, Enum):
        return text
    if isinstance(value, BaseModel):
        return value.model_copy(update={name: replaced(getattr(value, name), text) for name in type(value).model_fields})
    if isinstance(value, tuple):
        return tuple(replaced(part, text) for part in value)
    return {key: replaced(part, text) for key, part in value.items()} if isinstance(value, dict) else value


@pytest.fixture
def command(spark: SparkSession, tmp_path: Path) -> str:
    """SQL that breaks out of text in quotes and creates the file tmp_path / ran; canaries and it stand where Spark could look for them."""
    sql = f"' || (select a from (map 1 using 'touch {tmp_path / 'ran'}' as (a string))) || '"
    jvm: Any = spark._jvm
    jvm.System.setProperty("kafka_audit.canary", CANARY)
    jvm.System.setProperty("kafka_audit.command", sql)
    spark.conf.set("spark.kafka_audit.canary", CANARY)
    return sql


@pytest.fixture
def rows(spark: SparkSession) -> DataFrame:
    full = {**dict.fromkeys(SUBJECTS["partition"].columns), "resource": "t-0", "errors": {}, "topic": "t"}
    seen = [{**full, "isr_count": 2}, {**full, "resource": "t-1", "isr_count": 1}, {**full, "resource": "t-2", "isr_count": None}]
    return spark.createDataFrame(seen, SUBJECTS["partition"].ddl)


def test_the_canaries_are_in_reach_of_spark_and_commands_would_run(spark: SparkSession, command: str, tmp_path: Path) -> None:
    """Otherwise the other tests would show nothing."""
    other = spark.newSession()
    other.conf.set("spark.sql.variable.substitute", "true")
    assert other.sql("select '${env:KAFKA_AUDIT_CANARY}' a, '${system:kafka_audit.canary}' b").first() == (CANARY, CANARY)
    other.sql(f"select '{RUN}'").collect()
    assert (tmp_path / "ran").exists()


def test_no_field_of_a_control_brings_a_canary_into_any_output_or_starts_a_process(
    spark: SparkSession, rows: DataFrame, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_module, "references_of", lambda sql, subject: ())
    controls, refused = [], []
    words = f"{READ} {RUN} {command} \\' reflect('java.lang.System', 'getenv', 'KAFKA_AUDIT_CANARY')"
    for field in Control.model_fields:
        sql = f"'{READ} {RUN}' = ''" if field in CONDITIONS else f"'{READ} {RUN}'"
        changed = GOOD.model_copy(update={field: replaced(getattr(GOOD, field), sql if field in SQL_FIELDS else words)})
        if field == "remediation":  # its values are SQL, all else of it is text
            values = replaced(GOOD.remediation.values, sql)
            changed = GOOD.model_copy(update={field: replaced(GOOD.remediation, words).model_copy(update={"values": values})})
        try:
            judge(rows, [changed], first_audit=F.lit(True))
            controls.append(changed)
        except (KeyError, RuleSqlError):  # an unknown subject, a dataset that is no name
            refused.append(field)
    computed = GOOD.model_copy(update={"id": "computed", "expected": f"sql: '{READ} {RUN}'"})
    message = f"{READ} {RUN} {command}"
    found = judge(rows, [*controls, computed, GOOD.model_copy(update={"id": "raised"})], {"raised": message}, first_audit=F.lit(True))
    written = [row.asDict() for row in found.collect()]
    written += [row.asDict() for row in summarise(spark, found, [*controls, computed], {"partition": 3}).collect()]
    assert refused == ["subject", "needs"]
    assert CANARY not in repr(written)
    assert not (tmp_path / "ran").exists()
    # Not by luck: the texts are there, as they were written.
    assert {row["reason"] for row in written if row.get("control_id") == "raised" and "reason" in row} == {f"the rule raised: {message}"}
    for name in ("title", "expected", "observed", "reason", "evidence_class", "control_id", "code", "remediation"):
        assert any(READ in str(row.get(name)) for row in written), name


@pytest.mark.parametrize(
    "sql",
    [
        "exists(map 1 using 'touch {file}' as (a string))",
        "exists(reduce 1 using 'touch {file}' as (a string))",
        "(select count(a) from (select transform(1) using 'touch {file}' as (a string))) > 0",
        "map(topic) using 'touch {file}'",
        "transform(topic) using 'touch {file}'",
        "1 in (map 1 using 'touch {file}' as (a string))",
    ],
)
def test_a_rule_that_would_start_a_command_is_refused_before_spark_sees_it(sql: str, tmp_path: Path) -> None:
    with pytest.raises(RuleSqlError):
        references_of(sql.format(file=tmp_path / "ran"), SUBJECTS["partition"])


def test_settings_that_would_change_verdicts_go_back_to_what_the_product_was_tested_with(spark: SparkSession) -> None:
    other = spark.newSession()
    meant = {
        "spark.sql.ansi.enabled": "true",
        "spark.sql.variable.substitute": "true",
        "spark.sql.caseSensitive": "true",
        "spark.sql.parser.escapedStringLiterals": "true",
        "spark.sql.legacy.consecutiveStringLiterals.enabled": "true",
        "spark.sql.files.ignoreMissingFiles": "true",
        "spark.sql.files.ignoreCorruptFiles": "true",
        "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.ConstantFolding",
    }
    for name, value in {**meant, "spark.sql.autoBroadcastJoinThreshold": "1m", "spark.sql.streaming.stopTimeout": "7"}.items():
        other.conf.set(name, value)
    hold_settings(other, {"spark.sql.streaming.stopTimeout": "7"})
    assert [other.conf.get(name, None) for name in meant] == ["false", "false", *[None] * 6]  # None: Spark's own default
    assert other.conf.get("spark.sql.autoBroadcastJoinThreshold") == "1m"
    assert other.conf.get("spark.sql.streaming.stopTimeout") == "7"
    assert other.sql(r"select 'it''s \\ ${env:HOME}' as A").select("a").first() == ("it's \\ ${env:HOME}",)
