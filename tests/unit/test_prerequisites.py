"""The check of prerequisites: which programs are missing and how to install them."""

import subprocess
import sys
from pathlib import Path

import pytest

from kafka_audit import prerequisites


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ("The operation couldn't be completed. Unable to locate a Java Runtime.", None),
    ],
)
def test_javas_own_words_give_its_major_version(printed: str, major: int | None) -> None:
    assert prerequisites.java_major(printed) == major


def fake_java(folder: Path, version: str) -> None:
    java = folder / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)


def test_an_old_java_is_named_with_the_way_to_a_new_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    (problem,) = prerequisites.missing_prerequisites()
    assert "Java 11 was found" in problem
    assert "apt-get install openjdk-17" in problem


def test_no_java_at_all_is_said_and_the_command_ends_with_an_error(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, prerequisites.__file__], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "No `java` was found. Java 17 or newer is needed" in done.stderr


def test_a_new_enough_java_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path, "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert prerequisites.missing_prerequisites() == []
