"""Every control depends on the values that it names: if a deciding value of a passing example is changed it fails, if removed it is not assessed."""

import copy
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_audit.catalogue.control import Control
from kafka_audit.catalogue.load import Catalogue, load_catalogue
from kafka_audit.catalogue.rows import SUBJECTS
from kafka_audit.catalogue.rule_sql import Reference
from kafka_audit.findings import Status
from spark_jobs.check_examples import rows_ddl
from spark_jobs.engine.tables import table_of
from spark_jobs.judge.controls import judge

pytestmark = pytest.mark.spark

_NUMBERS = (0, 1, -1, 2, 3, 1_000_000, 2**31 - 1)
_TEXTS = ("", "true", "false", "0", "1", "-1", "60001", "9223372036854775807", "something else")
Row = dict[str, Any]


def value_of(row: Row, reference: Reference) -> Any:
    value = row.get(reference.column)
    for step in (reference.field, reference.key):
        value = value if step is None or value is None else value.get(step)
    return value


def replaced(row: Row, reference: Reference, value: Any) -> Row:
    """The row with one value changed; a configuration entry keeps its source."""
    changed = copy.deepcopy(row)
    step = reference.field or reference.key
    if step is None:
        changed[reference.column] = value
    elif value is None and reference.key is not None:
        del changed[reference.column][step]
    else:
        changed[reference.column][step] = value
    return changed


def others(control: Control, reference: Reference, value: Any) -> Iterator[Any]:
    """Other values for it: those of the control's other examples, and neighbours and extremes of its kind."""
    for example in control.examples:
        yield value_of(control.example_row(example), reference)
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1, value * 10, *_NUMBERS)
    elif isinstance(value, float):
        yield from (value + 1, value - 1, value / 10, 0.0, 1e12)
    elif isinstance(value, str):
        yield from _TEXTS
    elif isinstance(value, list):
        yield from ([], value[:1], [*value, *value], [*value, 99] if all(isinstance(one, int) for one in value) else [*value, "x"])
    elif isinstance(value, dict) and set(value) >= {"value"}:
        yield from ({**value, "value": text} for text in _TEXTS)


def variants(control: Control) -> Iterator[tuple[str, Reference | None, str, Row]]:
    """(passing example, reference, "changed" or "removed", row) for all that its verdict may hang on."""
    for example in control.examples:
        if example.status is not Status.PASS:
            continue
        row = control.example_row(example)
        for reference in control.decides_on:
            value = value_of(row, reference)
            if value is None or reference.column == "errors":
                continue
            yield example.name, reference, "removed", replaced(row, reference, None)
            seen = {json.dumps(value)}
            for other in others(control, reference, value):
                text = json.dumps(other)
                if other is not None and text not in seen:
                    seen.add(text)
                    yield example.name, reference, "changed", replaced(row, reference, other)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="module")
def statuses(spark: SparkSession, catalogue: Catalogue) -> dict[tuple[str, str, str, str], set[str]]:
    """(control, example, reference, changed or removed) -> the statuses that its variants got; one query for each subject."""
    found: dict[tuple[str, str, str, str], set[str]] = defaultdict(set)
    for subject in SUBJECTS.values():
        controls = catalogue.of_subject(subject.name)
        texts, keys = [], []
        for control in controls:
            for example, reference, kind, row in variants(control):
                resource = json.dumps([control.id, len(keys)])
                keys.append((control.id, example, reference.label if reference else "", kind))
                texts.append((json.dumps({**row, "resource": resource}),))
        rows = table_of(spark, texts, "row string").select(
            F.from_json("row", rows_ddl(subject.name, controls), {"mode": "PERMISSIVE"}).alias("row")
        )
        of_its_own_control = F.col("control_id") == F.get_json_object("resource", "$[0]")
        for finding in judge(rows.select("row.*"), controls).where(of_its_own_control).select("resource", "status").collect():
            found[keys[json.loads(finding["resource"])[1]]].add(finding["status"])
    return found


def test_every_passing_example_hangs_on_something(catalogue: Catalogue, statuses: dict[tuple[str, str, str, str], set[str]]) -> None:
    flipped = {control for (control, _, _, kind), found in statuses.items() if kind == "changed" and Status.FAIL.value in found}
    assert [control.code for control in catalogue.controls if control.id not in flipped] == []


def test_what_decides_and_is_missing_is_not_assessed(statuses: dict[tuple[str, str, str, str], set[str]]) -> None:
    wrong = []
    for (control, example, reference, kind), found in statuses.items():
        if kind == "changed" and Status.FAIL.value in found:
            without = statuses[control, example, reference, "removed"]
            # What the policy does not ask for is no missing evidence: then the control may have nothing to judge.
            allowed = {Status.NOT_ASSESSED.value, *([Status.NOT_APPLICABLE.value] if reference.startswith("policy.") else [])}
            if not without <= allowed:
                wrong.append(f"{control}, {example!r} without {reference}: {', '.join(sorted(without))}")
    assert "\n".join(wrong) == ""
