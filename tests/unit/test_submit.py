"""Modules that callers of spark-submit import must work without Spark."""

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_audit import submit
from kafka_audit.errors import ConfigurationError
from kafka_audit.submit import DEFAULT_CONF, JOBS, job_path, with_class_data


def test_every_job_has_its_script() -> None:
    assert all(job_path(job).is_file() for job in JOBS)


def test_an_unknown_job_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="write one of verify, roll_up_offsets, read_commits"):
        job_path("../verify")


def test_importing_it_does_not_import_spark() -> None:
    code = "import sys, kafka_audit.submit; sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_settings_that_verdicts_depend_on_are_in_the_default_configuration() -> None:
    assert (DEFAULT_CONF["spark.sql.ansi.enabled"], DEFAULT_CONF["spark.sql.legacy.sizeOfNull"]) == ("false", "false")
    assert DEFAULT_CONF["spark.sql.variable.substitute"] == "false"


def test_an_archive_of_classes_is_used_only_if_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive, size = tmp_path / "an archive.jsa", tmp_path / "an archive.bytes"
    monkeypatch.setattr(submit, "CLASS_DATA", archive)
    monkeypatch.setattr(submit, "CLASS_DATA_BYTES", size)
    assert with_class_data("-Xint") == "-Xint", "there is none"
    archive.write_bytes(bytes(10))
    assert with_class_data("-Xint") == "-Xint", "its size was not recorded: it is being written"
    size.write_text("10\n")
    assert with_class_data("-Xint") == f'-Xint "-XX:SharedArchiveFile={archive}" -Xlog:disable'
    archive.write_bytes(bytes(9))
    assert with_class_data("-Xint") == "-Xint", "it was cut short, which would kill the JVM"
