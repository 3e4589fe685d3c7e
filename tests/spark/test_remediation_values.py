"""No command that a control prints can make a setting weaker than it is, whatever values the failing row has."""

import json
import re
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from test_control_mutations import variants

from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import Catalogue, load_catalogue
from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.findings import Status
from spark_jobs.check_examples import rows_ddl
from spark_jobs.engine.tables import table_of
from spark_jobs.judge.controls import judge

pytestmark = pytest.mark.spark

_ADDED = re.compile(r"--add-config ([a-z0-9.]+)=\{([a-z0-9_]+)\}")
_COLUMNS = {"retention.ms": "retention_ms", "retention.bytes": "retention_bytes"}
"""Where a row has no configuration, the columns that hold the setting."""
_UNLIMITED = -1
_MAY_BE_UNLIMITED = frozenset({"retention.ms", "retention.bytes", "local.retention.ms"})
_LOWER_IS_STRICTER = frozenset({"message.timestamp.after.max.ms"})
_STRICT_WORDS = {
    "unclean.leader.election.enable": "false",
    "transaction.partition.verification.enable": "true",
    "remote.log.copy.disable": "false",
    "message.timestamp.type": "LogAppendTime",
}
Row = dict[str, Any]


def failing_rows(control: Control) -> list[Row]:
    """The rows of all examples, and of the passing ones with each deciding value changed."""
    return [control.example_row(example) for example in control.examples] + [row for _, _, _, row in variants(control)]


def present_value(row: Row, key: str) -> str | None:
    for column in ("config", "group_config"):
        if key in (row.get(column) or {}):
            return str(row[column][key]["value"])
    value = row.get(_COLUMNS.get(key, ""))
    return None if value is None else str(value)


def is_weaker(key: str, new: str, present: str | None, row: Row) -> bool:
    """Whether a setting would be weaker afterwards; a value whose present one is not known counts as weaker."""
    if key == "cleanup.policy":
        return sorted(new.strip("[]").split(",")) != sorted(row["policy"]["cleanup_policy"].split(","))
    if key in _STRICT_WORDS:
        return new != _STRICT_WORDS[key]
    if present is None or not re.fullmatch(r"-?\d+", present):
        return True
    before, after = int(present), int(new)
    if key in _MAY_BE_UNLIMITED and _UNLIMITED in (before, after):
        return after != _UNLIMITED
    return after > before if key in _LOWER_IS_STRICTER else after < before


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="module")
def computed(spark: SparkSession, catalogue: Catalogue) -> list[tuple[Control, Row, dict[str, str]]]:
    """Every failing row with the values of its control's commands; one query for each subject."""
    found = []
    for subject in SUBJECTS:
        controls = [control for control in catalogue.of_subject(subject) if control.remediation.values]
        if not controls:
            continue
        judged = [(control, row) for control in controls for row in failing_rows(control)]
        texts = [(json.dumps({**row, "resource": json.dumps([control.id, number])}),) for number, (control, row) in enumerate(judged)]
        parsed = F.from_json("row", rows_ddl(subject, controls), {"mode": "PERMISSIVE"}).alias("row")
        rows = table_of(spark, texts, "row string").select(parsed).select("row.*")
        of_its_own_control = F.col("control_id") == F.get_json_object("resource", "$[0]")
        for one in judge(rows, controls).where(of_its_own_control).select("resource", "status", "remediation").collect():
            control, row = judged[json.loads(one["resource"])[1]]
            if one["status"] == Status.FAIL.value:
                values = json.loads(one["remediation"])
                found.append((control, row, {name: value for name, value in values.items() if value is not None}))
            else:
                assert one["remediation"] is None
    return found


def test_a_command_never_makes_a_setting_weaker(computed: list[tuple[Control, Row, dict[str, str]]]) -> None:
    weaker, compared = [], set()
    for control, row, values in computed:
        for change in control.remediation.changes:
            for key, name in _ADDED.findall(change.command):
                if name not in values:
                    continue
                compared.add((control.code, key))
                if is_weaker(key, values[name], present_value(row, key), row):
                    weaker.append(f"{control.code}: {key}={values[name]} instead of {present_value(row, key)}")
    assert "\n".join(weaker) == ""
    # Not by luck: every command that sets something was printed for some row.
    commands = {
        (one.code, key) for one, _, _ in computed for change in one.remediation.changes for key, _ in _ADDED.findall(change.command)
    }
    assert compared == commands
