"""Every control's own examples, judged by the engine that judges clusters."""

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from kafka_audit.catalogue import Catalogue, load_catalogue
from kafka_audit.findings import Status
from kafka_audit.subjects import SUBJECTS
from spark_jobs.evaluate import judge

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="module")
def verdicts(spark: SparkSession, catalogue: Catalogue) -> dict[tuple[str, str], dict]:
    """(control id, example name) -> finding; one query for each subject."""
    found = {}
    for subject in SUBJECTS.values():
        controls = catalogue.of_subject(subject.name)
        rows = [
            {**control.example_row(example), "resource": json.dumps([control.id, example.name])}
            for control in controls
            for example in control.examples
        ]
        texts = spark.createDataFrame([(json.dumps(row),) for row in rows], "row string")
        wide = texts.select(F.from_json("row", subject.ddl, {"mode": "FAILFAST"}).alias("row")).select("row.*")
        for finding in judge(wide, controls).collect():
            control_id, example = json.loads(finding["resource"])
            if control_id == finding["control_id"]:
                found[control_id, example] = finding.asDict()
    return found


def test_every_example_gets_the_verdict_it_names(catalogue: Catalogue, verdicts: dict[tuple[str, str], dict]) -> None:
    wrong = []
    for control in catalogue.controls:
        for example in control.examples:
            finding = verdicts[control.id, example.name]
            if finding["status"] != example.status.value or (example.reason or "") not in (finding["reason"] or ""):
                wrong.append(
                    f"{control.code} {example.name!r}: {finding['status']} ({finding['reason']}), not {example.status.value} ({example.reason})"
                )
    assert wrong == []


def test_every_finding_shows_what_was_observed_and_what_was_expected(verdicts: dict[tuple[str, str], dict]) -> None:
    mute = [
        key for key, finding in verdicts.items() if not finding["observed"] or not finding["expected"] or finding["expected"] == "not known"
    ]
    assert mute == []


def test_every_example_that_is_not_assessed_says_why(verdicts: dict[tuple[str, str], dict]) -> None:
    unexplained = {
        key: finding["reason"]
        for key, finding in verdicts.items()
        if finding["status"] == Status.NOT_ASSESSED.value and (not finding["reason"] or "no answer" in finding["reason"])
    }
    assert unexplained == {}


def test_evidence_holds_exactly_what_the_control_reads(catalogue: Catalogue, verdicts: dict[tuple[str, str], dict]) -> None:
    for control in catalogue.controls:
        for example in control.examples:
            evidence = json.loads(verdicts[control.id, example.name]["evidence"])
            assert list(evidence) == [reference.label for reference in control.reads]
