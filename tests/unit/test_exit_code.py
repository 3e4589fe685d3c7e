"""The message and exit code of a job that fails."""

from pathlib import Path

import pytest

from kafka_audit.errors import AuditError, CollectionError, IntegrityError
from spark_jobs.engine.exit_code import exit_code_of, failure_of


def test_what_the_file_system_refuses_is_one_line_that_names_the_path(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of("read_commits", (tmp_path / "missing").read_text) == 1
    said = capsys.readouterr().err
    assert said.startswith("kafka-audit: read_commits: ") and str(tmp_path / "missing") in said
    assert said.count("\n") == 1


def test_an_error_of_the_audit_keeps_its_exit_code_and_the_whole_of_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise IntegrityError("x" * 5000 + "\nwhat to do")

    assert exit_code_of("read_commits", fail) == 5
    assert capsys.readouterr().err == f"kafka-audit: {'x' * 5000} what to do\n"


def test_a_failure_that_nobody_foresaw_ends_in_one_clear_line_below_its_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code_of("verify", lambda: {}["cluster"]) == 1
    *traceback, last = capsys.readouterr().err.splitlines()
    assert traceback[0] == "Traceback (most recent call last):"
    assert last.startswith("kafka-audit: verify: KeyError: 'cluster'. This is a fault of kafka-audit: report it")


def test_it_is_not_taken_for_a_cluster_that_could_not_be_read() -> None:
    problem = failure_of("read_commits", lambda: int("ten"))
    assert isinstance(problem, AuditError) and not isinstance(problem, CollectionError)
