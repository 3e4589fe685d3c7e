"""The conformance cases: they are complete, and docs/conformance.md shows every case on which this project is wrong."""

from pathlib import Path

import pytest
from conformance.adapters import TOOLS
from conformance.cases import UNKNOWN, Answer, Case, load_cases, load_questions
from conformance.ours import answers
from conformance.score import render
from pyspark.sql import SparkSession

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    return load_cases()


@pytest.fixture(scope="module")
def ours(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, cases: list[Case]) -> dict[str, Answer]:
    return answers(spark, tmp_path_factory.mktemp("conformance"), cases)


def test_there_are_at_least_150_cases_and_each_says_why_it_is_right_and_where_that_is_written(cases: list[Case]) -> None:
    assert len(cases) >= 150
    assert [case.id for case in cases if not (case.title and case.answer != "" and case.why and case.source)] == []


def test_every_question_has_a_case_and_every_answer_of_another_tool_belongs_to_a_question(cases: list[Case]) -> None:
    asked = {case.question for case in cases}
    assert asked == set(load_questions())
    assert {question for rules in TOOLS.values() for question in rules} <= asked


@pytest.mark.spark
def test_this_project_says_unknown_only_where_evidence_is_missing(cases: list[Case], ours: dict[str, Answer]) -> None:
    assert set(ours) == {case.id for case in cases}
    assert [case.id for case in cases if ours[case.id] == UNKNOWN and not case.is_right(UNKNOWN)] == []


@pytest.mark.spark
def test_the_page_lists_every_wrong_answer_of_this_project_and_of_the_other_tools(cases: list[Case], ours: dict[str, Answer]) -> None:
    assert PAGE.read_text() == render(cases, ours), "run make conformance"
