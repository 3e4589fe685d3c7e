"""The engine that judges clusters gives every control's examples the verdicts that they name."""

import json

import pytest
from pyspark.sql import SparkSession

from kafka_audit.catalogue.load import Catalogue, load_catalogue
from kafka_audit.findings import Status
from spark_jobs.check_examples import differences, judged_examples

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue()


@pytest.fixture(scope="module")
def verdicts(spark: SparkSession, catalogue: Catalogue) -> dict[tuple[str, str], dict]:
    return judged_examples(spark, catalogue)


def test_every_example_gets_the_verdict_it_names(catalogue: Catalogue, verdicts: dict[tuple[str, str], dict]) -> None:
    assert differences(catalogue, verdicts) == []


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
